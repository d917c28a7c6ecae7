//! A configuration: defaults, then a file over them, then flags over that.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::choices::{
    CommitFailurePolicy, CommitlogSync, DiskAccess, DiskFailurePolicy, InternodeCompression,
    InternodeEncryption,
};
use crate::error::{ConfigError, Place};
use crate::handoff::HandoffConfig;
use crate::internode::Seed;
use crate::nearest::nearest_option;
use crate::options::{OPTIONS, OptionSpec};

/// What a node is told. The options' effects are in [`OPTIONS`](crate::OPTIONS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `data_dir`.
    pub data_dir: PathBuf,
    /// `data_file_directories`; none are `data` in `data_dir`.
    pub data_file_directories: Vec<PathBuf>,
    /// `listen`.
    pub listen: SocketAddr,
    /// `broadcast_rpc_address`; `None` is that of `listen`.
    pub broadcast_rpc_address: Option<IpAddr>,
    /// `management`.
    pub management: SocketAddr,
    /// `management_token_file`; `None` asks for no token.
    pub management_token_file: Option<PathBuf>,
    /// `memory`; `None` is a quarter of the machine's.
    pub memory_limit: Option<u64>,
    /// What the machine, or the control group, can give; `None` where the system does not tell. No option.
    pub machine_bytes: Option<u64>,
    /// `memory_pretouch`.
    pub memory_pretouch: bool,
    /// `shards`; `None` is one per core.
    pub shards: Option<u16>,
    /// `commitlog_sync`.
    pub commitlog_sync: CommitlogSync,
    /// `commitlog_sync_period`, for [`CommitlogSync::Periodic`].
    pub commitlog_sync_period: Duration,
    /// `commitlog_sync_window`, for [`CommitlogSync::Group`].
    pub commitlog_sync_window: Duration,
    /// `compaction_throughput`; 0 is unlimited.
    pub compaction_bytes_per_second: u64,
    /// `concurrent_compactors`.
    pub concurrent_compactors: u32,
    /// `auto_snapshot`.
    pub auto_snapshot: bool,
    /// `incremental_backups`.
    pub incremental_backups: bool,
    /// `tombstone_warn_threshold`.
    pub tombstone_warn_threshold: u64,
    /// `tombstone_failure_threshold`.
    pub tombstone_failure_threshold: u64,
    /// `disk_access`.
    pub disk_access: DiskAccess,
    /// `disk_failure_policy`.
    pub disk_failure_policy: DiskFailurePolicy,
    /// `commit_failure_policy`.
    pub commit_failure_policy: CommitFailurePolicy,
    /// `connections_max` as it was given; see [`Config::connections_max`].
    pub connections_limit: Option<u32>,
    /// `connections_max_per_address` as it was given; see [`Config::connections_max_per_address`].
    pub connections_limit_per_address: Option<u32>,
    /// `frame_bytes_max` as it was given; see [`Config::frame_bytes_max`].
    pub frame_bytes_limit: Option<u64>,
    /// `in_flight_bytes_max` as it was given; see [`Config::in_flight_bytes_max`].
    pub in_flight_bytes_limit: Option<u64>,
    /// `request_wait_max`; `None` is for ever.
    pub request_wait_max: Option<Duration>,
    /// `read_request_timeout`, `range_request_timeout`, `write_request_timeout`, `truncate_request_timeout`,
    /// `cas_contention_timeout` and `counter_write_request_timeout`.
    pub request_timeouts: [Duration; 6],
    /// `slow_query_log_timeout`; `None` logs nothing.
    pub slow_query_log_timeout: Option<Duration>,
    /// `cluster_name`.
    pub cluster_name: String,
    /// `datacenter`.
    pub datacenter: String,
    /// `rack`.
    pub rack: String,
    /// `rackdc_file`, which the caller reads: see [`Config::apply_rackdc`].
    pub rackdc_file: Option<PathBuf>,
    /// `listen_address`; without one the node is alone.
    pub listen_address: Option<IpAddr>,
    /// `storage_port`.
    pub storage_port: u16,
    /// `broadcast_address` as it was given; see [`Config::internode_broadcast`].
    pub broadcast_address: Option<IpAddr>,
    /// `seeds` as they were given; see [`Config::seed_addresses`].
    pub seeds: Vec<Seed>,
    /// `internode_connections_max` as it was given; see [`Config::internode_connections_max`].
    pub internode_connections_limit: Option<u32>,
    /// `internode_connections_max_per_address` as it was given; see
    /// [`Config::internode_connections_max_per_address`].
    pub internode_connections_limit_per_address: Option<u32>,
    /// `replace_address` as it was given; see [`Config::replaced_address`].
    pub replace_address: Option<Seed>,
    /// `num_tokens`.
    pub num_tokens: u16,
    /// `initial_token`; none are chosen for the node.
    pub initial_tokens: Vec<i64>,
    /// `internode_secret_file`.
    pub internode_secret_file: Option<PathBuf>,
    /// `internode_encryption`.
    pub internode_encryption: InternodeEncryption,
    /// `internode_certificate_file`.
    pub internode_certificate_file: Option<PathBuf>,
    /// `internode_key_file`.
    pub internode_key_file: Option<PathBuf>,
    /// `internode_ca_file`.
    pub internode_ca_file: Option<PathBuf>,
    /// `internode_endpoint_verification`.
    pub internode_endpoint_verification: bool,
    /// `internode_compression`.
    pub internode_compression: InternodeCompression,
    /// What is done with what other nodes have missed.
    pub handoff: HandoffConfig,
}

impl Default for Config {
    fn default() -> Config {
        let mut config = Config {
            data_dir: PathBuf::new(),
            data_file_directories: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 9042)),
            broadcast_rpc_address: None,
            management: SocketAddr::from(([127, 0, 0, 1], 7199)),
            management_token_file: None,
            memory_limit: None,
            machine_bytes: None,
            memory_pretouch: false,
            shards: None,
            commitlog_sync: CommitlogSync::Group,
            commitlog_sync_period: Duration::ZERO,
            commitlog_sync_window: Duration::ZERO,
            compaction_bytes_per_second: 0,
            concurrent_compactors: 2,
            auto_snapshot: true,
            incremental_backups: false,
            tombstone_warn_threshold: 1_000,
            tombstone_failure_threshold: 100_000,
            disk_access: DiskAccess::Auto,
            disk_failure_policy: DiskFailurePolicy::Stop,
            commit_failure_policy: CommitFailurePolicy::Stop,
            connections_limit: None,
            connections_limit_per_address: None,
            frame_bytes_limit: None,
            in_flight_bytes_limit: None,
            request_wait_max: None,
            request_timeouts: [Duration::ZERO; 6],
            slow_query_log_timeout: None,
            cluster_name: String::new(),
            datacenter: String::new(),
            rack: String::new(),
            rackdc_file: None,
            listen_address: None,
            storage_port: 0,
            broadcast_address: None,
            seeds: Vec::new(),
            internode_connections_limit: None,
            internode_connections_limit_per_address: None,
            replace_address: None,
            num_tokens: 0,
            initial_tokens: Vec::new(),
            internode_secret_file: None,
            internode_encryption: InternodeEncryption::None,
            internode_certificate_file: None,
            internode_key_file: None,
            internode_ca_file: None,
            internode_endpoint_verification: true,
            internode_compression: InternodeCompression::None,
            handoff: HandoffConfig::default(),
        };
        // The table holds the defaults; a test sees to it that each of them is a value.
        for option in OPTIONS {
            let outcome = (option.set)(&mut config, option.default);
            debug_assert_eq!(outcome, Ok(()), "default of {}", option.name);
        }
        config
    }
}

impl Config {
    /// Takes over what a file says.
    ///
    /// # Errors
    /// The first thing wrong with it, with its line.
    pub fn apply_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let place = |offset: usize| Place::File { path: path.to_owned(), line: line_of(text, offset) };
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            place: place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        // The parser sorts by name; people read from the top.
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let option = find_option(key.get_ref(), || place(key.span().start))?;
            let value_text = match value.get_ref() {
                DeValue::Array(parts) if option.is_list() => {
                    list_text(parts.iter().map(|part| part.get_ref()))
                }
                value => value_text(value),
            };
            let written = &text[value.span()];
            let problem = match &value_text {
                Ok(value_text) => match (option.set)(self, value_text) {
                    Ok(()) => continue,
                    Err(problem) => problem,
                },
                Err(problem) => (*problem).to_owned(),
            };
            return Err(ConfigError::InvalidValue {
                place: place(value.span().start),
                name: option.name,
                value: shortened(written),
                problem,
            });
        }
        Ok(())
    }

    /// Takes over a flag, given without its two hyphens.
    ///
    /// # Errors
    /// There is no such option, or it has no such value.
    pub fn apply_flag(&mut self, flag: &str, value: &str) -> Result<(), ConfigError> {
        let option = find_option(&flag.replace('-', "_"), || Place::Flag)?;
        (option.set)(self, value).map_err(|problem| ConfigError::InvalidValue {
            place: Place::Flag,
            name: option.name,
            value: shortened(value),
            problem,
        })
    }

    /// Checks what only shows when everything is known.
    ///
    /// # Errors
    /// Two options contradict each other, or the machine.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |name: &'static str, bytes: u64, problem: &str| {
            Err(together(name, crate::quantity::show_size(bytes), problem.to_owned()))
        };
        // With more shards it is no larger.
        let frame_bytes_max = self.frame_bytes_max(self.shards.unwrap_or(1));
        if frame_bytes_max > self.memory_bytes() / 2 {
            return wrong("frame_bytes_max", frame_bytes_max, "more than half of `memory`");
        }
        match self.in_flight_bytes_limit {
            Some(bytes) if bytes < frame_bytes_max => {
                let problem =
                    "less than `frame_bytes_max`, so that the largest request could never be served";
                return wrong("in_flight_bytes_max", bytes, problem);
            }
            Some(bytes) if bytes > self.memory_bytes() / 2 => {
                return wrong("in_flight_bytes_max", bytes, "more than half of `memory`");
            }
            _ => {}
        }
        if self.listen == self.management && self.listen.port() != 0 {
            let value = self.listen.to_string();
            return Err(together("management", value, "the same as `listen`".to_owned()));
        }
        self.check_internode()?;
        match self.machine_bytes {
            Some(bytes) if bytes < self.memory_bytes() => {
                let mebibytes = bytes >> 20;
                let problem =
                    format!("more than the {mebibytes}MiB that this machine, or the control group, can give");
                wrong("memory", self.memory_bytes(), &problem)
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn together(name: &'static str, value: String, problem: String) -> ConfigError {
    ConfigError::InvalidValue { place: Place::Together, name, value, problem }
}

fn find_option(name: &str, place: impl Fn() -> Place) -> Result<&'static OptionSpec, ConfigError> {
    OPTIONS.iter().find(|option| option.name == name).ok_or_else(|| ConfigError::UnknownOption {
        place: place(),
        name: shortened(name),
        nearest: nearest_option(name),
    })
}

/// A value as a flag would give it; numbers need no quotes.
fn value_text(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Boolean(switch) => Ok(switch.to_string()),
        _ => Err("neither text in quotes, a whole number, true nor false"),
    }
}

/// A list of texts as a flag would give it.
fn list_text<'a>(parts: impl Iterator<Item = &'a DeValue<'a>>) -> Result<String, &'static str> {
    let text = |part: &DeValue<'a>| match part {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err("not a list of texts in quotes"),
    };
    Ok(parts.map(text).collect::<Result<Vec<_>, _>>()?.join(","))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// What was written, cut off where it stops helping.
fn shortened(written: &str) -> String {
    const SHOWN_BYTES_MAX: usize = 80;
    match written.len() > SHOWN_BYTES_MAX {
        true => format!("{}…", &written[..written.floor_char_boundary(SHOWN_BYTES_MAX)]),
        false => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        config.apply_file(Path::new("peristyle.toml"), text).map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn every_default_is_a_value_of_its_option_and_they_go_together() {
        for option in OPTIONS {
            assert_eq!((option.set)(&mut Config::default(), option.default), Ok(()), "{}", option.name);
        }
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(from_file(""), Ok(Config::default()));
    }

    #[test]
    fn a_file_sets_what_it_names() {
        let text = r#"
            # A comment.
            data_dir = "/var/lib/peristyle"
            listen = "0.0.0.0:9042"
            memory = "4GiB"
            shards = 3
            commitlog_sync = "periodic"
            commitlog_sync_period = "500ms"
            compaction_throughput = "100MiB/s"
            connections_max = 12
            in_flight_bytes_max = 33554432
            request_wait_max = "2s"
            rack = "r2"
        "#;
        let expected = Config {
            data_dir: "/var/lib/peristyle".into(),
            listen: "0.0.0.0:9042".parse().unwrap(),
            memory_limit: Some(4 << 30),
            shards: Some(3),
            commitlog_sync: CommitlogSync::Periodic,
            commitlog_sync_period: Duration::from_millis(500),
            compaction_bytes_per_second: 100 << 20,
            connections_limit: Some(12),
            in_flight_bytes_limit: Some(32 << 20),
            request_wait_max: Some(Duration::from_secs(2)),
            rack: "r2".to_owned(),
            ..Config::default()
        };
        assert_eq!(from_file(text), Ok(expected));
    }

    #[test]
    fn directories_are_a_list_or_one_text_with_commas() {
        let expected = Ok(vec![PathBuf::from("/disk1"), PathBuf::from("/disk2")]);
        let read = |text: &str| from_file(text).map(|config| config.data_file_directories);
        assert_eq!(read("data_file_directories = [\"/disk1\", \"/disk2\"]"), expected);
        assert_eq!(read("data_file_directories = \"/disk1, /disk2\""), expected);
        assert_eq!(read("data_file_directories = []"), Ok(Vec::new()));
        assert!(read("data_file_directories = [1]").is_err());
        assert!(read("data_file_directories = \"/disk1,,/disk2\"").is_err());
        assert!(from_file("rack = [\"a\"]").is_err());
    }

    #[test]
    fn a_switch_is_written_with_quotes_or_without() {
        let read =
            |text: &str| from_file(text).map(|config| (config.auto_snapshot, config.incremental_backups));
        assert_eq!(read("auto_snapshot = false\nincremental_backups = true"), Ok((false, true)));
        assert_eq!(read("auto_snapshot = \"false\"\nincremental_backups = \"true\""), Ok((false, true)));
        let error = "peristyle.toml:1: `auto_snapshot` = 0: neither true nor false";
        assert_eq!(read("auto_snapshot = 0"), Err(error.to_owned()));
        let error = "peristyle.toml:1: `shards` = true: neither auto nor a whole number from 1 to 1024";
        assert_eq!(read("shards = true"), Err(error.to_owned()));
    }

    #[test]
    fn more_memory_than_there_is_is_refused_with_both_figures() {
        let mut config = Config::default();
        config.apply_flag("memory", "900GiB").unwrap();
        config.machine_bytes = Some(24_025_116 << 10);
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "configuration: `memory` = 900GiB: more than the 23462MiB that this machine, or the control group, can give"
        );
        config.machine_bytes = Some(900 << 30);
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn without_a_word_on_memory_it_is_a_quarter_of_the_machine() {
        let on = |machine_bytes| Config { machine_bytes, ..Config::default() };
        assert_eq!(on(None).memory_bytes(), 1 << 30);
        assert_eq!(on(Some(24 << 30)).memory_bytes(), 6 << 30);
        assert_eq!(on(Some(100 << 20)).memory_bytes(), 64 << 20);
        assert_eq!(on(Some(100 << 20)).check(), Ok(()));
        let error = on(Some(50 << 20)).check().unwrap_err().to_string();
        assert!(error.contains("`memory` = 64MiB: more than the 50MiB"), "{error}");
        let told = Config { memory_limit: Some(2 << 30), ..on(Some(24 << 30)) };
        assert_eq!(told.memory_bytes(), 2 << 30);
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let mut config = from_file("shards = 3\nmemory = \"2G\"").unwrap();
        config.apply_flag("shards", "auto").unwrap();
        config.apply_flag("commitlog-sync", "batch").unwrap();
        assert_eq!(config.shards, None);
        assert_eq!(config.commitlog_sync, CommitlogSync::Batch);
        assert_eq!(config.memory_bytes(), 2 << 30);
    }

    #[test]
    fn errors_name_file_line_and_what_may_have_been_meant() {
        for (text, error) in [
            (
                "listen = \"127.0.0.1:9042\"\nmemmory = \"1G\"",
                "peristyle.toml:2: unknown option `memmory`: did you mean `memory`?",
            ),
            (
                "native_transport_port = 9042",
                "peristyle.toml:1: unknown option `native_transport_port`: did you mean `listen`?",
            ),
            ("hints_directory = \"x\"", "peristyle.toml:1: unknown option `hints_directory`"),
            (
                "\n\nmemory = \"lots\"",
                "peristyle.toml:3: `memory` = \"lots\": not a size: write a whole number and B, KiB, MiB, GiB or \
                 TiB, as in 512MiB or 1G",
            ),
            ("memory = \"1M\"", "peristyle.toml:1: `memory` = \"1M\": must be at least 64MiB"),
            ("shards = 0", "peristyle.toml:1: `shards` = 0: neither auto nor a whole number from 1 to 1024"),
            (
                "rack = \"r\"\nshards = 1.5",
                "peristyle.toml:2: `shards` = 1.5: neither text in quotes, a whole number, true nor false",
            ),
            (
                "commitlog_sync = \"never\"",
                "peristyle.toml:1: `commitlog_sync` = \"never\": neither group, periodic nor batch",
            ),
            (
                "listen = \"9042\"",
                "peristyle.toml:1: `listen` = \"9042\": not an address and a port, as in 127.0.0.1:9042 or \
                 [::1]:9042",
            ),
            ("[limits]\nconnections = 5", "peristyle.toml:1: unknown option `limits`"),
        ] {
            assert_eq!(from_file(text), Err(error.to_owned()));
        }
        let mut config = Config::default();
        assert_eq!(
            config.apply_flag("shrads", "2").unwrap_err().to_string(),
            "command line: unknown option `shrads`: did you mean `shards`?"
        );
    }

    #[test]
    fn a_broken_file_names_the_line() {
        let error = from_file("rack = \"a\"\nmemory = = 3").unwrap_err();
        assert!(error.starts_with("peristyle.toml:2: "), "{error}");
        let error = from_file("rack = \"a\"\nrack = \"b\"").unwrap_err();
        assert!(error.starts_with("peristyle.toml:2: "), "{error}");
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let problem = |flags: &[(&str, &str)]| {
            let mut config = Config::default();
            flags.iter().for_each(|(flag, value)| config.apply_flag(flag, value).unwrap());
            config.check().map_err(|error| error.to_string())
        };
        assert_eq!(problem(&[("memory", "64MiB")]), Ok(()));
        assert_eq!(
            problem(&[("in-flight-bytes-max", "8MiB")]),
            Err("configuration: `in_flight_bytes_max` = 8MiB: less than `frame_bytes_max`, so that the largest \
                 request could never be served"
                .to_owned())
        );
        assert_eq!(
            problem(&[("frame-bytes-max", "256MiB"), ("memory", "256MiB")]),
            Err("configuration: `frame_bytes_max` = 256MiB: more than half of `memory`".to_owned())
        );
        assert_eq!(
            problem(&[("in-flight-bytes-max", "1GiB")]),
            Err("configuration: `in_flight_bytes_max` = 1GiB: more than half of `memory`".to_owned())
        );
        let mut config = Config::default();
        config.apply_flag("management", "127.0.0.1:9042").unwrap();
        assert!(config.check().is_err());
    }
}
