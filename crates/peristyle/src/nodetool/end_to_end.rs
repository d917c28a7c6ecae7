//! Commands against a node in this process: what they print after what was done.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use clap::{Args, Command, FromArgMatches};
use client::{ConnectOptions, Connection};
use config::Config;
use runtime::{Runtime, RuntimeOptions};
use server::{Server, ServerOptions};

use super::{NodetoolArguments, NodetoolError, execute, with_long_options};

/// A running node, and a client of it.
struct Node {
    server: Option<Server>,
    client: Connection,
    _directory: tempfile::TempDir,
}

impl Node {
    fn start() -> Node {
        Node::start_with(&[])
    }

    fn start_with(more: &[(&str, &str)]) -> Node {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        let path = directory.path().to_str().unwrap();
        let flags = [("data-dir", path), ("listen", "127.0.0.1:0"), ("management", "127.0.0.1:0")];
        let flags = flags.into_iter().chain([("memory", "64MiB"), ("shards", "2")]);
        for (flag, value) in flags.chain(more.iter().copied()) {
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
        self.try_nodetool(words).unwrap()
    }

    /// What a command prints, or why it does not work.
    fn try_nodetool(&self, words: &str) -> Result<String, NodetoolError> {
        let address = self.server.as_ref().unwrap().management().unwrap().to_string();
        let words = format!("peristyle nodetool --management {address} {words}");
        let words = with_long_options(words.split(' ').map(OsString::from));
        let matches = NodetoolArguments::augment_args(Command::new("nodetool")).get_matches_from(&words[1..]);
        let arguments = NodetoolArguments::from_arg_matches(&matches).unwrap();
        let mut out = Vec::new();
        execute(&arguments, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
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

#[test]
fn a_node_with_a_token_answers_whoever_has_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, token: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, token).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file("right", "secret\n"), file("wrong", "other\n"));
    let node = Node::start_with(&[("management-token-file", &right)]);
    assert_eq!(node.nodetool(&format!("--token-file {right} flush")), "");
    assert!(node.nodetool(&format!("version --token-file {right}")).starts_with("ReleaseVersion: "));
    let refused = |words: &str| node.try_nodetool(words).unwrap_err().to_string();
    assert!(refused("flush").contains("a token is needed"), "{}", refused("flush"));
    let other = refused(&format!("--token-file {wrong} flush"));
    assert!(other.contains("the token is not that of this node"), "{other}");
    assert!(refused("--token-file /no/file flush").starts_with("read token file /no/file: No such file"));
}

#[test]
fn names_that_are_none_are_told_in_words() {
    let node = Node::start();
    let refused = |words: &str| node.try_nodetool(words).unwrap_err().to_string();
    assert_eq!(refused("snapshot -t a/b system"), "Snapshot name cannot contain /");
    assert_eq!(refused("clearsnapshot --all nope"), "Keyspace [nope] does not exist.");
    assert_eq!(refused("flush nope"), "Keyspace [nope] does not exist.");
    assert_eq!(refused("repair nope"), "Keyspace [nope] does not exist.");
    assert_eq!(refused("compact system nope"), "Unknown keyspace/cf pair (system.nope)");
}

#[test]
fn a_lone_node_is_a_ring_of_one() {
    let mut node = Node::start();
    node.cql("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    node.cql("CREATE TABLE k.t (a int, b text, PRIMARY KEY ((a, b)))");
    assert_eq!(node.nodetool("getendpoints k t -7:x"), "127.0.0.1\n");
    let refused = node.try_nodetool("getendpoints k t 7").unwrap_err().to_string();
    assert_eq!(refused, "the key has 2 values, not 1: 7");
    let ring = node.nodetool("ring k");
    let lines = ring.lines().filter(|line| line.starts_with("127.0.0.1  rack1       Up     Normal"));
    assert_eq!(lines.filter(|line| line.contains(" 100.00% ")).count(), 16, "{ring}");
    let described = node.nodetool("describecluster");
    assert!(described.contains("\tLive: 1\n") && described.contains("#Nodes: 1 #Down: 0\n"), "{described}");
    assert_eq!(node.nodetool("describering k").matches("endpoints:[127.0.0.1], ").count(), 2 * 16);
    let gossip = node.nodetool("gossipinfo");
    let version = described.lines().find(|line| line.ends_with(": [127.0.0.1]")).unwrap();
    let version = version.trim().trim_end_matches(": [127.0.0.1]");
    assert!(gossip.starts_with("/127.0.0.1\n  generation:"), "{gossip}");
    let schema = gossip.lines().find(|line| line.starts_with("  SCHEMA:")).unwrap();
    assert!(schema.ends_with(version), "{gossip}{described}");
    for line in ["  DC::datacenter1", "  RPC_READY::true", "  TOKENS::<hidden>"] {
        assert!(gossip.lines().any(|shown| shown == line), "{line} is missing: {gossip}");
    }
    assert_eq!(node.nodetool("failuredetector").lines().count(), 2, "there are no others");
    let network = node.nodetool("netstats -H");
    assert!(network.starts_with("Mode: NORMAL\nNot sending any streams.\n"), "{network}");
    let pools = node.nodetool("tpstats");
    assert!(pools.contains("\nShards: 2\n"), "{pools}");
    node.cql("SELECT * FROM k.t WHERE a = 7 AND b = 'x'");
    node.cql("DELETE FROM k.t WHERE a = 7 AND b = 'not there' IF EXISTS");
    let latencies = node.nodetool("proxyhistograms");
    let cells = |first: &str| -> Vec<f64> {
        let line = latencies.lines().find(|line| line.starts_with(first)).unwrap();
        line.split_whitespace().skip(1).map(|cell| cell.parse().unwrap()).collect()
    };
    let (least, greatest) = (cells("Min"), cells("Max"));
    assert!(
        greatest[0] > 0.0 && greatest.iter().zip(&least).all(|(most, least)| most >= least),
        "{latencies}"
    );
    assert!(greatest[4] > 0.0, "{latencies}");
    assert_eq!([greatest[3], greatest[5]], [0.0; 2], "of these there are none");
    let repaired = node.nodetool("repair -pr k t");
    assert!(
        repaired.contains("Pages compared: 0, of them differing: 0; partitions mended: 0; tables: 0"),
        "{repaired}"
    );
    assert!(repaired.ends_with("Repair command #1 finished in 0 seconds\n"), "{repaired}");
    assert_eq!(node.nodetool("gettraceprobability"), "Current trace probability: 0.0\n");
    assert_eq!(node.nodetool("settraceprobability 0.25"), "");
    assert_eq!(node.nodetool("gettraceprobability"), "Current trace probability: 0.25\n");
    let refused = node.try_nodetool("settraceprobability -1").unwrap_err().to_string();
    assert_eq!(refused, "Trace probability must be between 0 and 1");
    let none = "Seed node list does not contain any remote node IPs\n";
    assert_eq!(node.nodetool("getseeds"), none);
}

#[test]
fn clients_are_let_go_and_let_in_again() {
    let mut node = Node::start();
    assert_eq!(node.nodetool("statusbinary"), "running\n");
    assert_eq!(node.nodetool("disablebinary"), "");
    assert_eq!(node.nodetool("statusbinary"), "not running\n");
    assert!(node.client.query("SELECT key FROM system.local").is_err(), "the connection has ended");
    assert_eq!(node.nodetool("enablebinary"), "");
    assert_eq!(node.nodetool("statusbinary"), "running\n");
    let listen = node.server.as_ref().unwrap().listen();
    node.client = Connection::open(listen, &ConnectOptions::default()).unwrap();
    node.cql("SELECT key FROM system.local");
    // A lone node tells nobody anything.
    assert_eq!(node.nodetool("statusgossip"), "not running\n");
    let refused = node.try_nodetool("disablegossip").unwrap_err();
    assert!(refused.to_string().contains("this node is in no ring"), "{refused}");
}
