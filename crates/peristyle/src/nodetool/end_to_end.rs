//! Commands against a node in this process: what they print after what was done.

use std::ffi::OsString;

use clap::{Args, Command, FromArgMatches};
use client::{ConnectOptions, Connection};
use config::Config;
use runtime::{Runtime, RuntimeOptions};
use server::{Server, ServerOptions};

use super::{NodetoolArguments, execute, with_long_options};

/// A running node, and a client of it.
struct Node {
    server: Option<Server>,
    client: Connection,
    _directory: tempfile::TempDir,
}

impl Node {
    fn start() -> Node {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        let path = directory.path().to_str().unwrap();
        let flags = [("data-dir", path), ("listen", "127.0.0.1:0"), ("management", "127.0.0.1:0")];
        for (flag, value) in flags.into_iter().chain([("memory", "64MiB"), ("shards", "2")]) {
            config.apply_flag(flag, value).unwrap();
        }
        let runtime = Runtime::real(RuntimeOptions::default()).unwrap();
        let server = Server::start(&runtime, ServerOptions::from_config(&config, 2)).unwrap();
        let client = Connection::open(server.listen(), &ConnectOptions::default()).unwrap();
        Node { server: Some(server), client, _directory: directory }
    }

    fn cql(&mut self, statement: &str) {
        self.client.query(statement).unwrap().checked().unwrap();
    }

    /// What a command prints.
    fn nodetool(&self, words: &str) -> String {
        let address = self.server.as_ref().unwrap().management().unwrap().to_string();
        let words = format!("peristyle nodetool --management {address} {words}");
        let words = with_long_options(words.split(' ').map(OsString::from));
        let matches = NodetoolArguments::augment_args(Command::new("nodetool")).get_matches_from(&words[1..]);
        let arguments = NodetoolArguments::from_arg_matches(&matches).unwrap();
        let mut out = Vec::new();
        execute(&arguments, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        waiting.block_on(self.server.take().unwrap().stop()).unwrap();
    }
}

#[test]
fn files_of_an_altered_table_are_told_of_and_written_anew_on_demand() {
    let mut node = Node::start();
    node.cql("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    node.cql("CREATE TABLE k.t (a int PRIMARY KEY, b text)");
    (0..20).for_each(|key| node.cql(&format!("INSERT INTO k.t (a, b) VALUES ({key}, 'value')")));
    assert_eq!(node.nodetool("flush k t"), "");
    let progress = |node: &Node| {
        let stats = node.nodetool("tablestats k.t");
        let line = stats.lines().find(|line| line.contains("Rewritten as the table asks"));
        line.map(|line| line.split(',').next().unwrap().trim().to_owned())
    };
    assert_eq!(progress(&node), None);
    node.nodetool("disableautocompaction k t");
    node.cql("ALTER TABLE k.t WITH compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': 64}");
    assert_eq!(progress(&node).as_deref(), Some("Rewritten as the table asks: 0 of 2 files"));
    assert_eq!(node.nodetool("upgradesstables k t"), "", "none is of an old version");
    assert_eq!(progress(&node).as_deref(), Some("Rewritten as the table asks: 0 of 2 files"));
    assert_eq!(node.nodetool("recompress_sstables -j 1 k t"), "");
    assert_eq!(progress(&node), None);
    let warning =
        "jobs (9) is bigger than configured concurrent_compactors (2) on the host, using at most 2 threads\n";
    assert_eq!(node.nodetool("upgradesstables -a -j 9 k t"), warning);
    let history = node.nodetool("compactionhistory");
    assert_eq!(history.matches("{compaction_type:Upgrade sstables}").count(), 4, "{history}");
    assert_eq!(node.nodetool("stop UPGRADE_SSTABLES"), "");
    assert!(node.nodetool("compactionstats").contains("pending tasks"));
}
