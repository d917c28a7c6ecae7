//! `cargo xtask ring-counters`: counters of a ring are exact whatever happens to its nodes and its files.
//!
//! ```text
//!   killed     clients add while one node after the other is killed, and comes back with another number of shards
//!   restored   a snapshot of every node, more is added, the table is emptied, the snapshots are taken back in
//!   exported   the snapshot of one node before a Cassandra, which adds something itself; its files are taken back in
//! ```
//!
//! Two counters are added to by requests with ids, which are asked again: they must be exact. Two are added to without:
//! they may miss, or have, what was of unknown outcome, and no more.

mod adders;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::faults::REPLICATION;
use super::{HOSTS, Ports, Ring};
use crate::arguments::Arguments;
use crate::formats::copy::schema;
use crate::formats::statements::{ask, rows, table_ids};
use crate::measure::{Cassandra, statements};
use crate::node::fresh_folder;
use crate::peers;
use crate::report::{Failure, Tally, complain};
use crate::wire::Connection;
use adders::{Adders, NAMED, Sum, Sums, shown};

const PORTS: Ports = Ports { cql: 20142, storage: 18100, management: 18199 };
const KEYSPACE: &str = "counted";
const TABLE: &str = "sums";
const SNAPSHOT: &str = "kept";
/// What a Cassandra adds to each counter.
const ADDED_THERE: i64 = 77;
/// A killed node is away for so long.
const AWAY: Duration = Duration::from_millis(700);
/// How long clients add between two steps in which nothing is hurt.
const CALM: Duration = Duration::from_millis(500);
const SHARDS_MAX: u64 = 3;

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["minutes", "every", "seed", "short", "install"])?;
    peers::install_cassandra()?;
    if arguments.flag("install") {
        return Ok(Tally::default());
    }
    let is_short = arguments.flag("short");
    let time = Duration::from_secs_f64(60.0 * arguments.value("minutes", if is_short { 0.1 } else { 2.0 })?);
    let every = Duration::from_secs_f64(arguments.value("every", if is_short { 1.0 } else { 5.0 })?);
    let folder = fresh_folder("ring-counters")?;
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--shards", "1"])?;
    let keyspace = format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}");
    let table = format!("CREATE TABLE {KEYSPACE}.{TABLE} (id bigint PRIMARY KEY, n counter)");
    statements(&ring.hosts()[0].cql, &[keyspace, table])?;
    let (seed, sums, kept, tally) = (arguments.value("seed", 1)?, Sums::new(), Sums::new(), Tally::default());
    let mut counted = Counted { ring, seed, sums, kept, tally };
    counted.killed(time, every)?;
    let snapshot = counted.restored()?;
    counted.exported(&snapshot, &folder.join("cassandra"))?;
    Ok(counted.tally)
}

/// A ring, and what its counters must show.
struct Counted {
    ring: Ring,
    seed: u64,
    /// What each must show now, and what it showed when the snapshots were taken.
    sums: Sums,
    kept: Sums,
    tally: Tally,
}

impl Counted {
    fn killed(&mut self, time: Duration, every: Duration) -> Result<(), Failure> {
        let (adders, began) = (Adders::begin(&self.ring.hosts(), self.seed), Instant::now());
        let mut kill_count = 0;
        while kill_count < SHARDS_MAX || began.elapsed() < time {
            std::thread::sleep(every);
            let number = (1 + kill_count % HOSTS.len() as u64).to_string();
            self.ring.order(&["kill", &number])?;
            std::thread::sleep(AWAY);
            kill_count += 1;
            let shards = (1 + kill_count % SHARDS_MAX).to_string();
            self.ring.order(&["start", &number, "--shards", &shards])?;
        }
        self.end(adders)?;
        self.check(&format!("{kill_count} nodes were killed, and came back with other shards"))
    }

    /// Gives the folder of a node's snapshot, which has all.
    fn restored(&mut self) -> Result<PathBuf, Failure> {
        for host in HOSTS {
            self.ring.nodetool(host, &["snapshot", "--tag", SNAPSHOT, KEYSPACE])?;
        }
        self.kept.clone_from(&self.sums);
        self.add_more("more was added")?;
        let mut connection = Connection::open(&self.ring.hosts()[0].cql, 5)?;
        ask(&mut connection, &format!("TRUNCATE {KEYSPACE}.{TABLE}"))?;
        let hosts = self.ring.hosts();
        let is_empty = shown(&hosts, NAMED[0])?.is_none();
        self.tally += judged(is_empty, || "an emptied table has something".to_owned());
        let snapshot_of = |number| -> Result<PathBuf, Failure> {
            let keyspace = self.ring.directory(number).join("data").join(KEYSPACE);
            Ok(folder_of_table(&keyspace)?.join("snapshots").join(SNAPSHOT))
        };
        for (number, host) in (1..).zip(HOSTS) {
            let snapshot = text(&snapshot_of(number)?);
            self.ring.nodetool(host, &["import", "--copy-data", KEYSPACE, TABLE, &snapshot])?;
        }
        let snapshot = snapshot_of(1)?;
        self.sums.clone_from(&self.kept);
        self.check("snapshots were taken back in")?;
        self.add_more("added to what was taken back in")?;
        Ok(snapshot)
    }

    fn exported(&mut self, snapshot: &Path, folder: &Path) -> Result<(), Failure> {
        let mut connection = Connection::open(&self.ring.hosts()[0].cql, 5)?;
        let tables = table_ids(&mut connection, KEYSPACE)?;
        let schema = schema(&mut connection, KEYSPACE, &tables)?;
        let cassandra = Cassandra::start(folder, "latest", "768M")?;
        let mut connection = Connection::open(&cassandra.address(), 5)?;
        schema.iter().try_for_each(|text| ask(&mut connection, text).map(drop))?;
        cassandra.nodetool(&["import", "--copy-data", KEYSPACE, TABLE, &text(snapshot)])?;
        // The snapshot has what was there before more was added.
        for (counter, sum) in &self.kept {
            let query = format!("SELECT n FROM {KEYSPACE}.{TABLE} WHERE id = {counter}");
            let shown = rows(&mut connection, &query)?;
            let is_right = matches!(&shown[..], [row] if row[0].parse().is_ok_and(|shown| sum.has(shown)));
            self.tally += judged(is_right, || format!("{counter} in Cassandra: {shown:?} is not {sum:?}"));
            ask(
                &mut connection,
                &format!("UPDATE {KEYSPACE}.{TABLE} SET n = n + {ADDED_THERE} WHERE id = {counter}"),
            )?;
        }
        // It flushes first. Files that it is just compacting have their names already, and are not whole.
        cassandra.nodetool(&["snapshot", "--tag", SNAPSHOT, KEYSPACE])?;
        let files = folder_of_table(&folder.join("d/data").join(KEYSPACE))?.join("snapshots").join(SNAPSHOT);
        self.ring.nodetool(HOSTS[1], &["import", "--copy-data", KEYSPACE, TABLE, &text(&files)])?;
        for sum in self.sums.values_mut() {
            *sum = sum.plus(Sum::exactly(ADDED_THERE));
        }
        self.check("a Cassandra has added, and its files were taken in")?;
        self.add_more("added to that")
    }

    /// Clients add for a moment, and nothing is hurt.
    fn add_more(&mut self, what: &str) -> Result<(), Failure> {
        let adders = Adders::begin(&self.ring.hosts(), self.seed);
        std::thread::sleep(CALM);
        self.end(adders)?;
        self.check(what)
    }

    /// Takes in what was added.
    fn end(&mut self, adders: Adders) -> Result<(), Failure> {
        for (counter, added) in adders.end()? {
            let sum = self.sums.entry(counter).or_default();
            *sum = sum.plus(added);
        }
        Ok(())
    }

    /// Each counter must show what was added; what was of unknown outcome is known then.
    fn check(&mut self, what: &str) -> Result<(), Failure> {
        let hosts = self.ring.hosts();
        for (counter, sum) in &mut self.sums {
            let shown = shown(&hosts, *counter)?;
            let is_right = shown.is_some_and(|shown| sum.has(shown));
            self.tally += judged(is_right, || format!("{what}: {counter} is {shown:?}, and not {sum:?}"));
            println!("{what}: {counter} is {shown:?}, of which {} was not known", sum.unknown());
            *sum = Sum::exactly(shown.unwrap_or_default());
        }
        Ok(())
    }
}

fn judged(is_right: bool, complaint: impl FnOnce() -> String) -> Tally {
    if is_right {
        return Tally::PASS;
    }
    complain!("ring-counters: {}", complaint());
    Tally::FAIL
}

/// The folder of the one table in that of a keyspace.
fn folder_of_table(keyspace: &Path) -> Result<PathBuf, Failure> {
    let mut folders = std::fs::read_dir(keyspace)?;
    let folder = folders.next().ok_or_else(|| Failure::new(format!("nothing in {}", keyspace.display())))?;
    Ok(folder?.path())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
