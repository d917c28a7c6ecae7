//! `cargo xtask formats`: our table files before Cassandra's judges.
//!
//! ```text
//!   --bless   the oracle runs tests/formats/written/tables.cql and flushes; what sstabledump and
//!             sstablemetadata print of its files is kept in tests/formats/written/expected
//!   write     a Peristyle node runs the same statements and flushes; Cassandra's sstabledump and
//!             sstablemetadata print its files: they must print what was kept
//!   serve     a Cassandra node is started on a copy of those files: it must answer
//!             tests/formats/written/queries.cql as Peristyle did, and so on tables of every compaction
//!             strategy and compressor, compacted
//!   --cassandra  judges the judges: the oracle's own files in place of ours
//! ```
//!
//! The other direction, Cassandra's files before us, is a test of the crate `sstable` over
//! `tests/formats/cassandra-da`. Not compared: positions in the file, the wall clock of deletions and
//! expiries, the ids in a list's cell paths, and how partitions are spread over files.

mod compacted;
pub(crate) mod copy;
mod dump;
pub(crate) mod statements;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers;
use crate::process::root;
use crate::report::{Failure, Tally, complain};
use crate::wire::Connection;

use statements::Statements;

const KEYSPACE: &str = "formats";
/// Cassandra flushes this one when its column is dropped; what the header of that file then lists is a
/// matter of when, not of what is in it.
const FLUSHED_BY_ALTER: &str = "dropped";

/// Who wrote the files that are judged.
struct Writer {
    address: String,
    /// Holds a folder for each keyspace.
    data: PathBuf,
    /// Ours, to be stopped before its files are copied; none for the oracle.
    node: Option<Node>,
}

impl Writer {
    fn peristyle(work: &Path) -> Result<Writer, Failure> {
        let node = Node::start(&NodeOptions::new(work.join("data"), &[]))?;
        Ok(Writer { address: node.address(), data: node.data.join("data"), node: Some(node) })
    }

    fn oracle() -> Result<Writer, Failure> {
        let data = peers::home().join("cassandra/node/d/data");
        Ok(Writer { address: peers::oracle_address()?, data, node: None })
    }

    fn flush(&self) -> Result<(), Failure> {
        match &self.node {
            Some(node) => node.nodetool(&["flush", KEYSPACE]).map(drop),
            None => {
                let port = peers::ORACLE_JMX_PORT.to_string();
                peers::succeed(peers::script("cassandra").args([
                    "nodetool",
                    "--jmx-port",
                    &port,
                    "flush",
                    KEYSPACE,
                ]))
            }
        }
    }

    /// `peristyle nodetool` against ours.
    fn nodetool(&self, words: &[&str]) -> Result<String, Failure> {
        match &self.node {
            Some(node) => node.nodetool(words),
            None => Err(Failure::new("the oracle is not asked for compactions")),
        }
    }

    /// Nobody writes to the files any more.
    fn rest(&mut self) -> Result<(), Failure> {
        self.node.take().map_or(Ok(()), Node::stop)
    }
}

/// Runs the steps named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let wanted =
        |step: &str| arguments.positional.is_empty() || arguments.positional.iter().any(|name| name == step);
    peers::install_cassandra()?;
    let work = fresh_folder("formats")?;
    let from_oracle = arguments.flag("bless") || arguments.flag("cassandra");
    let mut writer = if from_oracle { Writer::oracle()? } else { Writer::peristyle(&work)? };
    let tables = fill(&writer.address)?;
    writer.flush()?;
    if arguments.flag("bless") {
        return bless(&writer, &tables);
    }
    let mut tally = Tally::default();
    if wanted("write") {
        tally += write(&writer, &tables)?;
    }
    if wanted("serve") {
        let mut kept =
            vec![copy::Kept { keyspace: KEYSPACE, tables, queries: lines(&folder().join("queries.cql"))? }];
        if writer.node.is_some() {
            let tables = compacted::fill(&writer)?;
            tally += compacted::check(&writer)?;
            kept.push(copy::Kept { keyspace: compacted::KEYSPACE, tables, queries: compacted::queries() });
        }
        tally += copy::serve(&mut writer, &kept, &work)?;
    }
    Ok(tally)
}

fn folder() -> PathBuf {
    root().join("tests/formats/written")
}

fn bless(writer: &Writer, tables: &BTreeMap<String, String>) -> Result<Tally, Failure> {
    let expected = folder().join("expected");
    std::fs::create_dir_all(&expected)?;
    let mut tally = Tally::default();
    for table in tables.keys() {
        let files = dump::data_files(&writer.data, KEYSPACE, table)?;
        std::fs::write(
            expected.join(format!("{table}.json")),
            dump::partitions_text(&dump::partitions(&files)?)?,
        )?;
        if table != FLUSHED_BY_ALTER {
            std::fs::write(expected.join(format!("{table}.metadata")), dump::metadata(&files)?)?;
        }
        println!("{table}: kept what the oracle's {} files hold", files.len());
        tally.passed += 1;
    }
    Ok(tally)
}

/// Runs all statements in a fresh keyspace; gives the tables' ids.
fn fill(address: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut connection = Connection::open(address, 5)?;
    let statements = Statements::read(&folder().join("tables.cql"))?;
    statements.run(&mut connection, KEYSPACE)?;
    statements::table_ids(&mut connection, KEYSPACE)
}

fn write(writer: &Writer, tables: &BTreeMap<String, String>) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for table in tables.keys() {
        let files = dump::data_files(&writer.data, KEYSPACE, table)?;
        let partitions = dump::partitions_text(&dump::partitions(&files)?)?;
        tally += same(&format!("sstabledump of {table}"), &format!("{table}.json"), &partitions)?;
        if table == FLUSHED_BY_ALTER {
            continue;
        }
        tally += same(
            &format!("sstablemetadata of {table}"),
            &format!("{table}.metadata"),
            &dump::metadata(&files)?,
        )?;
    }
    Ok(tally)
}

fn same(what: &str, kept: &str, got: &str) -> Result<Tally, Failure> {
    let expected = std::fs::read_to_string(folder().join("expected").join(kept))?;
    if expected == got {
        println!("ok: {what}");
        return Ok(Tally::PASS);
    }
    complain!("{what} differs from {kept}");
    show_difference(&expected, got);
    Ok(Tally::FAIL)
}

/// The first lines that are in one text only.
fn show_difference(expected: &str, got: &str) {
    const SHOWN: usize = 8;
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    old.iter().skip(start).take(SHOWN).for_each(|line| println!("  - {line}"));
    new.iter().skip(start).take(SHOWN).for_each(|line| println!("  + {line}"));
}

/// The lines of a file that are neither empty nor comments.
fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("-- "));
    Ok(lines.map(str::to_owned).collect())
}
