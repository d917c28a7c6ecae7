//! Which servers can be started.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::adapter::Adapter;
use super::error::PeerError;
use super::keeper::Keeper;
use super::own::OwnRing;
use super::place::Place;

/// A kind of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bench) enum PeerKind {
    /// This very program.
    Peristyle,
    /// Apache Cassandra, by the adapter that comes with the program.
    Cassandra,
    /// Any other, by an adapter of somebody's own.
    Adapter {
        /// What it is called in a report.
        name: String,
        /// Where the adapter is.
        program: PathBuf,
    },
}

impl PeerKind {
    /// What it is called in a report, where it names a folder, too.
    pub(in crate::bench) fn name(&self) -> &str {
        match self {
            PeerKind::Peristyle => "peristyle",
            PeerKind::Cassandra => "cassandra",
            PeerKind::Adapter { name, .. } => name,
        }
    }

    /// Who starts such servers in a place.
    pub(super) fn keeper(&self, place: &Place) -> Result<Box<dyn Keeper>, PeerError> {
        Ok(match self {
            PeerKind::Peristyle => Box::new(OwnRing::of_this_program()?),
            PeerKind::Cassandra => Box::new(Adapter::of_cassandra(place)?),
            PeerKind::Adapter { program, .. } => Box::new(Adapter::new(program)),
        })
    }
}

impl fmt::Display for PeerKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerKind::Adapter { name, program } => write!(out, "{name}={}", program.display()),
            kind => out.write_str(kind.name()),
        }
    }
}

impl FromStr for PeerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerKind, String> {
        match (text, text.split_once('=')) {
            ("peristyle", _) => Ok(PeerKind::Peristyle),
            ("cassandra", _) => Ok(PeerKind::Cassandra),
            (_, Some((name, path))) if !name.is_empty() && !name.contains(['/', '.']) => {
                // A name without a folder would be looked for elsewhere than the file that was meant.
                let program = std::path::absolute(path).map_err(|error| format!("{path}: {error}"))?;
                match program.is_file() {
                    true => Ok(PeerKind::Adapter { name: name.to_owned(), program }),
                    false => Err(format!("there is no program {path}")),
                }
            }
            _ => Err("peristyle, cassandra, or NAME=PATH of an adapter (docs/lab/peers.md)".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_as_it_is_written() {
        for text in ["peristyle", "cassandra", "scylla=/bin/sh"] {
            assert_eq!(text.parse::<PeerKind>().unwrap().to_string(), text);
        }
        assert_eq!("scylla=/bin/sh".parse::<PeerKind>().unwrap().name(), "scylla");
        for wrong in ["", "scylla", "=/bin/sh", "a/b=/bin/sh", "scylla=/no/such/program", "scylla=/bin"] {
            assert!(wrong.parse::<PeerKind>().is_err(), "{wrong}");
        }
    }
}
