//! `cargo xtask faults`: a disk that is full, and one that fails, below real processes.
//!
//! 1. *Full*: a node on a small tmpfs is loaded until writes are refused. Refusals have the code that drivers
//!    know, reads go on, everything acknowledged is there. Space is made: writes go on without a restart.
//!    Then the disk fills up again, the node is killed and started while it is full, space is made, and
//!    all that was ever acknowledged is read back. Every table file is verified.
//! 2. *Policies*: the directory of a table lets nobody write to it (`chattr +i`), so that a flush fails as on a
//!    disk that does: under `stop` clients are cut off and the management port goes on, under `die`
//!    the process ends with 100.
//! 3. *EIO*: the tests of the crates whose disk fails on order, at each act and under each policy.
//!
//! Before these, a node serves and ends well whose log can not be written.
//!
//! The first two need to mount and to change attributes of files, which takes root; where that is
//! refused they say so and are left out. What is not checked: disks that lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::crash::Dice;
use crate::measure::{high_water_within, mebibytes};
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::process::{cargo, cargo_tests};
use crate::report::{Failure, Tally, complain};
use crate::wire::{Answer, Connection, Request, WireError};

/// What a node may have in memory, and is judged by.
const MEMORY: &str = "64MiB";
const OVERLOADED: u32 = 0x1001;
const WRITE_FAILURE: u32 = 0x1500;
/// How soon a node must see that there is space again.
const RECOVERY_MAX: Duration = Duration::from_secs(20);
/// How long a compaction may go on that a start has begun.
const COMPACTION_MAX: Duration = Duration::from_secs(60);
/// Refusals in a row after which the disk is full for good: a flush that finds room gives some back.
const REFUSALS_MIN: usize = 30;
/// From a refusal to the next try.
const REFUSED_REST: Duration = Duration::from_millis(100);
const SCHEMA: &[&str] = &[
    "CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE f.t (k int PRIMARY KEY, version int, v text)",
];

/// Runs `--rounds N` of the full disk of `--size MIB`, the policies, and the tests unless `--no-tests`.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rounds", "size", "seed", "no-tests", "keep"])?;
    binary()?;
    let (rounds, size): (u64, u64) = (arguments.value("rounds", 2)?, arguments.value("size", 224)?);
    let seed: u64 = arguments.value("seed", 1)?;
    let folder = fresh_folder("faults")?;
    let mut tally = judged("a log that can not be written", unwritable_log(&folder));
    for round in 0..rounds {
        let Some(disk) = SmallDisk::mount(&folder, size)? else { break };
        tally +=
            judged(&format!("full disk, round {}", round + 1), full_disk(&disk, &mut Dice(seed + round)));
    }
    for (policy, check) in [("stop", stopped as fn(&mut Node) -> _), ("die", ended)] {
        let Some(disk) = SmallDisk::mount(&folder, size)? else { break };
        tally += judged(&format!("disk_failure_policy {policy}"), failing_flush(&disk, policy, check));
    }
    if !arguments.flag("no-tests") {
        for (package, test, filter) in [
            ("peristyle-commitlog", "log", ""),
            ("peristyle-storage", "node", "failing"),
            ("peristyle-server", "node", "failing"),
        ] {
            let mut command = cargo();
            command.args(["test", "--quiet", "--package", package, "--test", test, filter]);
            tally += cargo_tests(&format!("EIO in {package}"), &mut command)?;
        }
    }
    if !arguments.flag("keep") && tally.failed == 0 {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(tally)
}

fn judged(name: &str, outcome: Result<String, Failure>) -> Tally {
    match outcome {
        Ok(what) => {
            println!("{name}: {what}");
            Tally::PASS
        }
        Err(failure) => {
            complain!("{name}: {failure}");
            Tally::FAIL
        }
    }
}

/// A tmpfs of a size with a node's directory and room for what takes its space, gone when dropped.
pub(crate) struct SmallDisk {
    pub(crate) mount: PathBuf,
    /// Where the node has its files.
    data: PathBuf,
}

impl SmallDisk {
    /// `None`, and a line that says why, where mounting is refused.
    pub(crate) fn mount(folder: &Path, mebibytes: u64) -> Result<Option<SmallDisk>, Failure> {
        let mount = folder.join("disk");
        std::fs::create_dir_all(&mount)?;
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&mount).output();
        match mounted {
            Ok(done) if done.status.success() => Ok(Some(SmallDisk { data: mount.join("data"), mount })),
            Ok(done) => {
                let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
                println!("left out: a tmpfs can not be mounted here ({why})");
                Ok(None)
            }
            Err(error) => {
                println!("left out: there is no program `mount` ({error})");
                Ok(None)
            }
        }
    }

    fn start(&self, words: &[&str]) -> Result<Node, Failure> {
        start(self.data.clone(), words)
    }

    /// Takes space away.
    pub(crate) fn put_ballast(&self, mebibytes: usize) -> Result<(), Failure> {
        Ok(std::fs::write(self.mount.join("ballast"), vec![7u8; mebibytes << 20])?)
    }

    pub(crate) fn remove_ballast(&self) -> Result<(), Failure> {
        Ok(std::fs::remove_file(self.mount.join("ballast"))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, in case a killed node has not quite gone yet.
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

/// What was acknowledged, and what may be there besides.
#[derive(Default)]
struct Written {
    acknowledged: BTreeMap<u64, u64>,
    refused: BTreeMap<u64, u64>,
    version: u64,
}

/// A node of two shards with its files there.
fn start(data: PathBuf, words: &[&str]) -> Result<Node, Failure> {
    Node::start(&NodeOptions::new(data, &[&["--memory", MEMORY, "--shards", "2"][..], words].concat()))
}

/// A node whose log is on a full disk serves as others do, and ends as they do.
fn unwritable_log(folder: &Path) -> Result<String, Failure> {
    let data = folder.join("unlogged");
    std::os::unix::fs::symlink("/dev/full", data.with_extension("log"))?;
    let mut node = start(data, &[])?;
    let mut connection = Connection::open(&node.address(), 5)?;
    let (mut written, mut dice) = (Written::default(), Dice(1));
    for statement in SCHEMA {
        expect_done(&connection.query(statement, &Request::default())?.answer)?;
    }
    for _ in 0..100 {
        if let Some(refusal) = write(&mut connection, &mut written, &mut dice)? {
            return Err(Failure::new(refusal));
        }
    }
    node.nodetool(&["flush"])?;
    check(&mut connection, &written, "without a log")?;
    node.end("TERM")?;
    match node.exit_code(Duration::from_secs(1))? {
        Some(0) => Ok("served without one, and ended with 0".to_owned()),
        code => Err(Failure::new(format!("the process ended with {code:?}"))),
    }
}

fn full_disk(disk: &SmallDisk, dice: &mut Dice) -> Result<String, Failure> {
    let mut written = Written::default();
    disk.put_ballast(64)?;
    let node = disk.start(&[])?;
    let mut connection = Connection::open(&node.address(), 5)?;
    for statement in SCHEMA {
        expect_done(&connection.query(statement, &Request::default())?.answer)?;
    }
    let first = fill(&mut connection, &mut written, dice)?;
    let at_full = written.acknowledged.len();
    check(&mut connection, &written, "while the disk is full")?;
    disk.remove_ballast()?;
    let recovered = writes_go_on(&mut connection, &mut written, dice)?;
    check(&mut connection, &written, "after space was made")?;
    // Full again; this time the node does not live through it.
    fill(&mut connection, &mut written, dice)?;
    drop(connection);
    let resident_bytes = high_water_within(node.process_id(), MEMORY)?;
    drop(node);
    let node = disk.start(&[])?;
    let mut connection = Connection::open(&node.address(), 5)?;
    check(&mut connection, &written, "after a kill and a start on the full disk")?;
    drop(connection);
    let resident_bytes = resident_bytes.max(high_water_within(node.process_id(), MEMORY)?);
    drop(node);
    grow(disk)?;
    let node = disk.start(&[])?;
    let mut connection = Connection::open(&node.address(), 5)?;
    writes_go_on(&mut connection, &mut written, dice)?;
    check(&mut connection, &written, "after a start with space")?;
    node.nodetool(&["flush"])?;
    node.stop()?;
    let node = disk.start(&[])?;
    check(&mut Connection::open(&node.address(), 5)?, &written, "after a clean restart")?;
    // What a stop cuts off is swept up by the start; compactions may be under way again.
    let since = Instant::now();
    while unfinished(disk)?.is_some() && since.elapsed() < COMPACTION_MAX {
        std::thread::sleep(Duration::from_millis(200));
    }
    if let Some(path) = unfinished(disk)? {
        return Err(Failure::new(format!("{} is half written and still there", path.display())));
    }
    drop(node);
    let files = verify_all(disk)?;
    Ok(format!(
        "full after {at_full} rows ({first}); writes went on {recovered:.1?} after space was made; {} rows there \
         after kill, start on the full disk, and restart; {files} table files sound; at most {:.0} MiB resident",
        written.acknowledged.len(),
        mebibytes(resident_bytes)
    ))
}

/// Makes the file system larger, with what is on it.
fn grow(disk: &SmallDisk) -> Result<(), Failure> {
    crate::peers::succeed(Command::new("mount").args(["-o", "remount,size=640m"]).arg(&disk.mount))
}

/// Writes until writes are refused for good; tells how the first refusal reads.
fn fill(connection: &mut Connection, written: &mut Written, dice: &mut Dice) -> Result<String, Failure> {
    let mut refusals = Vec::new();
    for _ in 0..2_000_000u64 {
        match write(connection, written, dice)? {
            None => refusals.clear(),
            Some(refusal) => {
                refusals.push(refusal);
                std::thread::sleep(REFUSED_REST);
            }
        }
        if refusals.len() == REFUSALS_MIN {
            return Ok(refusals.swap_remove(REFUSALS_MIN - 1));
        }
    }
    Err(Failure::new("the disk is never full"))
}

/// How long it takes until a hundred writes in a row are taken.
fn writes_go_on(
    connection: &mut Connection,
    written: &mut Written,
    dice: &mut Dice,
) -> Result<Duration, Failure> {
    let (freed, mut in_a_row, mut since) = (Instant::now(), 0, Duration::ZERO);
    while in_a_row < 100 {
        match write(connection, written, dice)? {
            None if in_a_row == 0 => (in_a_row, since) = (1, freed.elapsed()),
            None => in_a_row += 1,
            Some(refusal) if freed.elapsed() > RECOVERY_MAX => {
                return Err(Failure::new(format!("writes do not go on: {refusal}")));
            }
            Some(_) => {
                in_a_row = 0;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    Ok(since)
}

/// Writes a row: an earlier one now and then, mostly a new one. Gives how it was refused, if it was.
fn write(
    connection: &mut Connection,
    written: &mut Written,
    dice: &mut Dice,
) -> Result<Option<String>, Failure> {
    written.version += 1;
    let version = written.version;
    let key = if dice.between(0, 4) == 0 { dice.between(1, version + 1) } else { version };
    let statement =
        format!("INSERT INTO f.t (k, version, v) VALUES ({key}, {version}, '{}')", text(key, version));
    match connection.query(&statement, &Request::default())?.answer {
        Answer::Error { code: code @ (OVERLOADED | WRITE_FAILURE), message, .. } => {
            if code == OVERLOADED && !message.contains("the disk is full") {
                return Err(Failure::new(format!("a refusal that does not say why: {message}")));
            }
            if code == WRITE_FAILURE {
                written.refused.insert(key, version);
            }
            Ok(Some(format!("{code:#06x} {message}")))
        }
        Answer::Error { code, message, .. } => {
            Err(Failure::new(format!("another error than for a full disk: {code:#06x} {message}")))
        }
        _ => {
            written.acknowledged.insert(key, version);
            Ok(None)
        }
    }
}

/// Eight kilobytes that compress badly and follow from the key and the version.
fn text(key: u64, version: u64) -> String {
    let mut dice = Dice(key << 32 | version);
    std::iter::repeat_with(|| char::from(b'!' + 7 + (dice.next() % 80) as u8)).take(8_000).collect()
}

/// Every row that was acknowledged is there, whole; a write that was refused after it was begun may be.
fn check(connection: &mut Connection, written: &Written, when: &str) -> Result<(), Failure> {
    for (key, version) in &written.acknowledged {
        let statement = format!("SELECT version, v FROM f.t WHERE k = {key}");
        let answer = connection.query(&statement, &Request::default())?.answer;
        let Answer::Rows(rows) = answer else {
            return Err(Failure::new(format!("{when}, row {key} can not be read: {answer:?}")));
        };
        let found = rows.rows.first().and_then(|row| match row.as_slice() {
            [Some(version), Some(text)] => {
                let version = i32::from_be_bytes(version.as_slice().try_into().ok()?);
                Some((u64::try_from(version).ok()?, text.clone()))
            }
            _ => None,
        });
        let is_right = found.as_ref().is_some_and(|(found, found_text)| {
            let may_be = found == version || written.refused.get(key).is_some_and(|refused| found == refused);
            may_be && *found_text == text(*key, *found).into_bytes()
        });
        if !is_right {
            let found = found.map(|(version, _)| version);
            return Err(Failure::new(format!("{when}, row {key} is {found:?}, acknowledged was {version}")));
        }
    }
    Ok(())
}

fn expect_done(answer: &Answer) -> Result<(), Failure> {
    match answer {
        Answer::Error { code, message, .. } => Err(Failure::new(format!("{code:#06x} {message}"))),
        _ => Ok(()),
    }
}

/// All files of the node.
fn all_files(disk: &SmallDisk) -> Result<Vec<PathBuf>, Failure> {
    let (mut files, mut directories) = (Vec::new(), vec![disk.data.clone()]);
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

fn is_data(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-Data.db")
}

/// A file that is half written.
fn unfinished(disk: &SmallDisk) -> Result<Option<PathBuf>, Failure> {
    let is_half = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "tmp") || (is_data(path) && !toc_of(path).exists())
    };
    Ok(all_files(disk)?.into_iter().find(is_half))
}

/// Verifies every table file. Gives how many there are.
fn verify_all(disk: &SmallDisk) -> Result<usize, Failure> {
    let data: Vec<PathBuf> = all_files(disk)?.into_iter().filter(|path| is_data(path)).collect();
    let verified = Command::new(binary()?).args(["sstable", "verify"]).args(&data).output()?;
    if !verified.status.success() {
        return Err(Failure::new(String::from_utf8_lossy(&verified.stderr).into_owned()));
    }
    Ok(data.len())
}

fn toc_of(data: &Path) -> PathBuf {
    PathBuf::from(data.to_string_lossy().replace("-Data.db", "-TOC.txt"))
}

/// A flush fails; then `check` looks at what the policy has made of the node.
fn failing_flush(
    disk: &SmallDisk,
    policy: &str,
    check: fn(&mut Node) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut node = disk.start(&["--disk-failure-policy", policy])?;
    let mut connection = Connection::open(&node.address(), 5)?;
    for statement in SCHEMA.iter().copied().chain(["INSERT INTO f.t (k, v) VALUES (1, 'v')"]) {
        expect_done(&connection.query(statement, &Request::default())?.answer)?;
    }
    node.nodetool(&["flush", "f"])?;
    let table = std::fs::read_dir(disk.data.join("data/f"))?.next();
    let table = table.ok_or_else(|| Failure::new("the table has no directory"))??.path();
    if let Err(refused) = crate::peers::succeed(Command::new("chattr").arg("+i").arg(&table)) {
        return Ok(format!("left out: {refused}"));
    }
    expect_done(&connection.query("INSERT INTO f.t (k, v) VALUES (2, 'v')", &Request::default())?.answer)?;
    // Whether it is answered before the process ends is not said.
    let _ = node.nodetool(&["flush", "f"]);
    let cut_off = connection.query("SELECT * FROM f.t", &Request::default());
    let outcome = match cut_off {
        Err(WireError::Io(_)) => check(&mut node),
        other => Err(Failure::new(format!("the connection goes on: {other:?}"))),
    };
    crate::peers::succeed(Command::new("chattr").arg("-i").arg(&table))?;
    drop(node);
    let said = outcome?;
    let node = disk.start(&[])?;
    let rows = Connection::open(&node.address(), 5)?.query("SELECT * FROM f.t", &Request::default())?.answer;
    match rows {
        Answer::Rows(rows) if rows.rows.len() == 2 => Ok(format!("{said}; both rows there after a restart")),
        other => Err(Failure::new(format!("after a restart: {other:?}"))),
    }
}

fn stopped(node: &mut Node) -> Result<String, Failure> {
    if Connection::open(&node.address(), 5).is_ok() {
        return Err(Failure::new("clients can still connect"));
    }
    let info = node.nodetool(&["info"])?;
    let is_off = info
        .lines()
        .any(|line| line.starts_with("Native Transport active") && line.trim_end().ends_with("false"));
    match is_off {
        true => Ok("clients are cut off, nodetool answers".to_owned()),
        false => Err(Failure::new(format!("nodetool info says: {info}"))),
    }
}

fn ended(node: &mut Node) -> Result<String, Failure> {
    match node.exit_code(Duration::from_secs(10))? {
        Some(100) => Ok("the process ended with 100".to_owned()),
        other => Err(Failure::new(format!("the process ended with {other:?}"))),
    }
}
