//! Nodes of this very program, by `peristyle cluster`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::PeerWish;
use super::error::PeerError;
use super::keeper::{Keeper, Server};
use super::place::{Place, Staying};
use super::ports::Ports;
use crate::cluster::{self, ClusterError, ProcessId};

/// The part of a limit that nodes are told of: what else they take, page cache above all, has room in the rest.
const BUDGET_PERCENT: u64 = 80;

/// A ring that `peristyle cluster` knows.
#[derive(Debug)]
pub(super) struct OwnRing {
    program: PathBuf,
}

impl OwnRing {
    pub(super) fn of_this_program() -> Result<OwnRing, PeerError> {
        let program = std::env::current_exe();
        let program = program.map_err(PeerError::file("find", Path::new("this program")))?;
        Ok(OwnRing { program })
    }

    /// `PROGRAM cluster --data-dir DATA` with more words.
    fn words(&self, place: &Place, words: &[&str]) -> Vec<OsString> {
        let mut all = vec![self.program.clone().into(), "cluster".into(), "--data-dir".into()];
        all.push(place.data().into());
        all.extend(words.iter().map(OsString::from));
        all
    }
}

impl Keeper for OwnRing {
    fn up(&self, place: &Place, wanted: &PeerWish, ports: Ports) -> Result<Vec<Server>, PeerError> {
        let words = up_words(wanted, ports, place.is_limited());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        place.run(place.limited(&self.words(place, &words)), Staying::UntilInterrupted)?;
        servers(place)
    }

    fn start(&self, place: &Place, number: usize) -> Result<Server, PeerError> {
        let words = self.words(place, &["start", &number.to_string()]);
        place.run(place.limited(&words), Staying::UntilInterrupted)?;
        match cluster::members(&place.data())?.into_iter().nth(number - 1) {
            Some((address, Some(process))) => Ok(Server { address: address.to_string(), process }),
            _ => Err(PeerError::NotRunning(number)),
        }
    }

    fn cut(&self, place: &Place, number: usize, others: &[usize]) -> Result<(), PeerError> {
        others.iter().try_for_each(|other| {
            let words = self.words(place, &["cut", &number.to_string(), &other.to_string()]);
            place.run(Place::plain(&words), Staying::UntilInterrupted).map(|_| ())
        })
    }

    fn heal(&self, place: &Place) -> Result<(), PeerError> {
        place.run(Place::plain(&self.words(place, &["heal"])), Staying::UntilInterrupted).map(|_| ())
    }

    fn down(&self, place: &Place) -> Result<(), PeerError> {
        match cluster::members(&place.data()) {
            Err(ClusterError::NoCluster(_)) => Ok(()),
            _ => place
                .run(Place::plain(&self.words(place, &["down", "--remove"])), Staying::ToTheEnd)
                .map(|_| ()),
        }
    }
}

/// What `peristyle cluster` is told; sizes in whole bytes.
fn up_words(wanted: &PeerWish, ports: Ports, is_limited: bool) -> Vec<String> {
    let sync = format!("commitlog_sync={}", wanted.commit_log_sync.name());
    let options = [
        ("--nodes", wanted.node_count.to_string()),
        ("--port", ports.cql.to_string()),
        ("--storage-port", ports.storage.to_string()),
        ("--management-port", ports.management.to_string()),
        ("--set", sync),
    ];
    let percent = if is_limited { BUDGET_PERCENT } else { 100 };
    let memory = wanted.memory_bytes.map(|bytes| ("--memory", (bytes / 100 * percent).to_string()));
    let options = options.into_iter().chain(memory).flat_map(|(name, value)| [name.to_owned(), value]);
    std::iter::once("up".to_owned()).chain(options).collect()
}

fn servers(place: &Place) -> Result<Vec<Server>, PeerError> {
    let server = |(number, (address, process)): (usize, (SocketAddr, Option<ProcessId>))| match process {
        Some(process) => Ok(Server { address: address.to_string(), process }),
        None => Err(PeerError::NotRunning(number)),
    };
    (1..).zip(cluster::members(&place.data())?).map(server).collect()
}

#[cfg(test)]
mod tests {
    use lab::CommitLogSync;

    use super::*;

    #[test]
    fn nodes_are_told_of_less_than_they_may_have() {
        let wanted = PeerWish {
            node_count: 3,
            memory_bytes: Some(1000 << 20),
            commit_log_sync: CommitLogSync::Batch,
            first_port: 0,
        };
        let ports = Ports { cql: 1, storage: 2, management: 3 };
        let words = |is_limited| up_words(&wanted, ports, is_limited).join(" ");
        let expected =
            "up --nodes 3 --port 1 --storage-port 2 --management-port 3 --set commitlog_sync=batch";
        assert_eq!(words(false), format!("{expected} --memory {}", (1000_u64 << 20) / 100 * 100));
        assert_eq!(words(true), format!("{expected} --memory {}", (1000_u64 << 20) / 100 * 80));
    }
}
