//! The `cassandra-stress` of Cassandra's own distribution, the last that is in Maven's registry, with its defaults: a
//! table of rows and one of counters.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Server;
use crate::formats::statements::rows;
use crate::peers::{home, output, succeed};
use crate::report::Failure;
use crate::wire::Connection;

const ARTIFACT: &str = "org.apache.cassandra:apache-cassandra:4.0-alpha2:tar.gz:bin";
const UNPACK: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack";
const FOLDER: &str = "apache-cassandra-4.0-alpha2";
/// What each command does so often.
const COUNT: u64 = 5_000;
const COMMANDS: [&str; 5] = ["write", "read", "counter_write", "counter_read", "mixed"];
const THREADS: &str = "threads=16";
/// A counter in the table that it makes.
const COUNTED: &str = "SELECT count(*), sum(\"C0\"), sum(\"C4\") FROM keyspace1.counter1";
const WRITTEN: &str = "SELECT count(*) FROM keyspace1.standard1";
/// So long the node that is asked may lack what a quorum has.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches it unless it is there.
pub(super) fn install() -> Result<(), Failure> {
    if folder().exists() {
        return Ok(());
    }
    println!("    {ARTIFACT} through mvn");
    std::fs::create_dir_all(parent())?;
    let (artifact, target) =
        (format!("-Dartifact={ARTIFACT}"), format!("-DoutputDirectory={}", parent().display()));
    // It leaves marks where it runs.
    succeed(Command::new("mvn").args(["-q", "-B", UNPACK, &artifact, &target]).current_dir(parent()))
}

fn parent() -> PathBuf {
    home().join("stress")
}

fn folder() -> PathBuf {
    parent().join(FOLDER)
}

/// Runs its commands one after the other: none may have an error, and what was written and counted must be there.
pub(super) fn run(server: &Server) -> Result<(), Failure> {
    for word in COMMANDS {
        let told = output(&mut command(server, word))?;
        let errors =
            told.lines().find(|line| line.starts_with("Total errors")).unwrap_or("no count of errors");
        let rate = told.lines().find(|line| line.starts_with("Op rate")).unwrap_or_default();
        println!("{word}: {errors}; {rate}");
        if errors.split_whitespace().nth(3) != Some("0") {
            return Err(Failure::new(format!("{word}: {told}")));
        }
    }
    let (mut connection, began) = (Connection::open(&server.address, 5)?, Instant::now());
    for (query, expected) in [(WRITTEN, [COUNT; 1].as_slice()), (COUNTED, &[COUNT; 3])] {
        let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
        loop {
            let shown = rows(&mut connection, query)?;
            if shown == [expected.as_slice()] {
                break;
            }
            if began.elapsed() > PATIENCE {
                return Err(Failure::new(format!("{query}: {shown:?} instead of {expected:?}")));
            }
        }
    }
    println!("ok: {COUNT} rows, and as many in each counter");
    Ok(())
}

fn command(server: &Server, word: &str) -> Command {
    let (host, port) = server.address.split_once(':').unwrap_or((&server.address, "9042"));
    let path = ["conf", "lib/*", "tools/lib/*"].map(|part| folder().join(part).display().to_string());
    let mut command = Command::new("java");
    // It writes a log where it runs.
    command.current_dir(folder());
    command.args(["-Xmx512m", "-cp", &path.join(":"), "org.apache.cassandra.stress.Stress", word]);
    if word == "mixed" {
        command.arg("ratio(write=1,read=3)");
    }
    let (count, replicas) = (format!("n={COUNT}"), format!("replication(factor={})", server.replica_count));
    command.args([&count, "cl=QUORUM", "no-warmup", "-pop", &format!("seq=1..{COUNT}")]);
    command.args(["-mode", "native", "cql3", "-node", host, "-port", &format!("native={port}")]);
    command.args(["-schema", &replicas, "-rate", THREADS]);
    command
}
