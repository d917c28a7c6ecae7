//! Options of a node that somebody wants to be other than they are by default: the same on every node of a cluster.

use std::collections::BTreeMap;
use std::str::FromStr;

use config::{Config, ConfigError};

/// What a cluster says of each node itself: where it is, whom it asks, its share of the machine.
const OF_THE_CLUSTER: [&str; 12] = [
    "data_dir",
    "listen",
    "management",
    "listen_address",
    "storage_port",
    "seeds",
    "cluster_name",
    "datacenter",
    "rack",
    "rackdc_file",
    "shards",
    "memory",
];

/// Values by the names of their options.
pub(super) type Settings = BTreeMap<String, String>;

/// An option with its value, which it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SettingError {
    #[error("neither an option nor its value: NAME=VALUE")]
    Shape,
    #[error("the cluster itself says `{0}` of each node")]
    OfTheCluster(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl FromStr for Setting {
    type Err = SettingError;

    /// Reads `NAME=VALUE`, where hyphens in the name do as they do in flags.
    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let (name, value) = text.split_once('=').ok_or(SettingError::Shape)?;
        let name = name.replace('-', "_");
        Config::default().apply_flag(&name, value)?;
        match OF_THE_CLUSTER.contains(&name.as_str()) {
            true => Err(SettingError::OfTheCluster(name)),
            false => Ok(Setting { name, value: value.to_owned() }),
        }
    }
}

/// Of two values for one option the later holds.
pub(super) fn settings(given: &[Setting]) -> Settings {
    given.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect()
}

/// As they were given, for people.
pub(super) fn shown(settings: &Settings) -> String {
    let words: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        text.parse::<Setting>().unwrap_err().to_string()
    }

    #[test]
    fn an_option_of_a_node_is_read_and_the_later_value_holds() {
        let given = ["commitlog-sync=batch", "commitlog_sync=periodic", "memory_pretouch=true"];
        let given: Vec<Setting> = given.into_iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(shown(&settings(&given)), "commitlog_sync=periodic memory_pretouch=true");
        assert_eq!(shown(&settings(&[])), "none");
    }

    #[test]
    fn what_no_node_could_be_started_with_is_refused() {
        assert_eq!(problem("commitlog_sync"), "neither an option nor its value: NAME=VALUE");
        assert_eq!(problem("memory=1GiB"), "the cluster itself says `memory` of each node");
        assert!(problem("commitlog_sink=group").contains("did you mean `commitlog_sync`?"));
        assert!(problem("commitlog_sync=never").starts_with("command line: `commitlog_sync` = never: "));
    }

    #[test]
    fn what_the_cluster_says_itself_are_options() {
        for name in OF_THE_CLUSTER {
            assert!(config::OPTIONS.iter().any(|option| option.name == name), "{name}");
        }
    }
}
