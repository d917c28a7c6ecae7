//! Cassandra's `cassandra-rackdc.properties`, which says where a node stands: `rackdc_file`.
//!
//! ```text
//!   # a comment
//!   dc = dc1
//!   rack: r1
//! ```
//!
//! A line is a name and a value, with `=`, `:` or a blank between them, as in Java's properties. What that format has
//! besides, and names of data centres have no use for, is refused rather than misread: `\` and lines that go on.

use std::path::Path;

use crate::config::{Config, together};
use crate::error::{ConfigError, Place};

/// What a file says.
#[derive(Debug, Default)]
struct Said {
    dc: Option<String>,
    rack: Option<String>,
}

impl Config {
    /// Takes over what the file that `rackdc_file` names says. `datacenter` and `rack` say the same, or nothing: their
    /// defaults are nothing here, so that a configuration with all defaults written out is no contradiction.
    ///
    /// # Errors
    /// The first thing wrong with the file, with its line; or that it and an option contradict each other.
    pub fn apply_rackdc(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let said = read(path, text)?;
        let whole = || Place::File { path: path.to_owned(), line: text.lines().count().max(1) };
        // Cassandra does not start without both, either.
        let missing = |name: &str| ConfigError::Syntax {
            place: whole(),
            message: format!("`{name}` is not set, and a node stands in a data centre and a rack"),
        };
        let dc = said.dc.ok_or_else(|| missing("dc"))?;
        let rack = said.rack.ok_or_else(|| missing("rack"))?;
        let defaults = Config::default();
        for (option, property, told, default, said) in [
            ("datacenter", "dc", &mut self.datacenter, defaults.datacenter, dc),
            ("rack", "rack", &mut self.rack, defaults.rack, rack),
        ] {
            if *told != default && *told != said {
                let problem = format!("{} says `{property}` = {said}: leave one of them out", path.display());
                return Err(together(option, told.clone(), problem));
            }
            *told = said;
        }
        Ok(())
    }
}

fn read(path: &Path, text: &str) -> Result<Said, ConfigError> {
    let mut said = Said::default();
    for (line, index) in text.lines().zip(1..) {
        let place = || Place::File { path: path.to_owned(), line: index };
        let wrong = |message: String| ConfigError::Syntax { place: place(), message };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        if line.contains('\\') {
            return Err(wrong("`\\` is not understood here".to_owned()));
        }
        let (name, value) = split(line);
        match name {
            "dc" => once(&mut said.dc, name, value).map_err(wrong)?,
            "rack" => once(&mut said.rack, name, value).map_err(wrong)?,
            // Cassandra reads it with its snitches of clouds only, which find the data centre out.
            "dc_suffix" if !value.is_empty() => {
                let message =
                    "`dc_suffix` is for data centres that Cassandra finds out in a cloud: write it into `dc`";
                return Err(wrong(message.to_owned()));
            }
            "prefer_local" if value.eq_ignore_ascii_case("true") => {
                let message = "`prefer_local` is not built: nodes reach each other by `broadcast_address`, also in one \
                               data centre";
                return Err(wrong(message.to_owned()));
            }
            "dc_suffix" | "prefer_local" => {}
            other => return Err(wrong(format!("unknown property `{other}`"))),
        }
    }
    Ok(said)
}

/// The name and the value of a line.
fn split(line: &str) -> (&str, &str) {
    let end = line.find(|letter: char| letter == '=' || letter == ':' || letter.is_whitespace());
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    (name, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim())
}

fn once(field: &mut Option<String>, name: &str, value: &str) -> Result<(), String> {
    match (value.is_empty(), &field) {
        (true, _) => Err(format!("`{name}` must not be empty")),
        (false, Some(before)) => Err(format!("`{name}` is set twice, to {before} before")),
        (false, None) => {
            *field = Some(value.to_owned());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a node stands that is told so by flags and by a file.
    fn placed(flags: &[(&str, &str)], text: &str) -> Result<(String, String), String> {
        let mut config = Config::default();
        for (flag, value) in flags {
            config.apply_flag(flag, value).expect("an option");
        }
        config.apply_rackdc("rackdc".as_ref(), text).map_err(|error| error.to_string())?;
        Ok((config.datacenter, config.rack))
    }

    fn place(dc: &str, rack: &str) -> Result<(String, String), String> {
        Ok((dc.to_owned(), rack.to_owned()))
    }

    /// The file that comes with Cassandra 5.0.
    #[test]
    fn cassandras_file_is_read() {
        let text = "# These properties are used with GossipingPropertyFileSnitch\ndc=dc1\nrack=rack1\n\n\
                    # Add a suffix to a datacenter name.\n#dc_suffix=\n! prefer\n# prefer_local=true\n";
        assert_eq!(placed(&[], text), place("dc1", "rack1"));
        assert_eq!(placed(&[], "dc : east one\r\n\track\tr 7 \r\n"), place("east one", "r 7"));
        assert_eq!(placed(&[], "dc=a=b\nrack=c\ndc_suffix=\nprefer_local=false"), place("a=b", "c"));
    }

    #[test]
    fn options_beside_it_say_the_same_or_nothing() {
        let text = "dc=dc1\nrack=r1";
        let same = [("datacenter", "dc1"), ("rack", "r1")];
        assert_eq!(placed(&same, text), place("dc1", "r1"));
        assert_eq!(placed(&[("datacenter", "datacenter1"), ("rack", "rack1")], text), place("dc1", "r1"));
        let refused = |flag, value| placed(&[(flag, value)], text).unwrap_err();
        assert_eq!(
            refused("datacenter", "dc2"),
            "configuration: `datacenter` = dc2: rackdc says `dc` = dc1: leave one of them out"
        );
        assert_eq!(
            refused("rack", "r2"),
            "configuration: `rack` = r2: rackdc says `rack` = r1: leave one of them out"
        );
    }

    #[test]
    fn what_has_no_effect_here_is_refused_with_its_line() {
        for (text, problem) in [
            (
                "dc=a\nrack=b\ndc_suffix=_x",
                "rackdc:3: `dc_suffix` is for data centres that Cassandra finds out",
            ),
            ("prefer_local=True\ndc=a\nrack=b", "rackdc:1: `prefer_local` is not built"),
            ("dc=a\nrack=b\nec2_naming_scheme=legacy", "rackdc:3: unknown property `ec2_naming_scheme`"),
            ("dc=a\nrack=\\u0041", "rackdc:2: `\\` is not understood here"),
            ("dc=a\ndc=b\nrack=c", "rackdc:2: `dc` is set twice, to a before"),
            ("dc=\nrack=c", "rackdc:1: `dc` must not be empty"),
            ("dc=a\n", "rackdc:1: `rack` is not set"),
            ("", "rackdc:1: `dc` is not set"),
        ] {
            let error = placed(&[], text).expect_err(text);
            assert!(error.starts_with(problem), "{text:?}: {error}");
        }
    }
}
