//! A node of three whose disk is full, under load: the others go on at `QUORUM` without it, and once there is room it
//! has what it missed, without anybody's command.
//!
//! Its directory is on a small tmpfs, which takes root to mount; where that is refused the part is left out.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{Host, Ring};
use super::client::Client;
use super::work::{Orders, Work, select_all, table, wrong_rows};
use super::{Plan, QUORUM, REPLICATION, Verdict, contents, such};
use crate::faults::SmallDisk;
use crate::measure::statements;
use crate::peers::{output, succeed};
use crate::report::Failure;

const DISK_MEBIBYTES: u64 = 256;
/// What the load may still write when it begins.
const ROOM_MEBIBYTES: usize = 48;
/// Of each node: flushes have to come, too.
const MEMORY: &str = "288MiB";
const NODE: usize = 2;
const WRITERS: u64 = 4;
const WRITER_PAUSE: Duration = Duration::from_millis(2);
const ROWS: &str = "counted.rows";
const LARGE_ROWS: &str = "counted.large";
const LARGE_BYTES: usize = 16_000;
/// However fast the machine is: with their log and a merge they fit on the disk.
const LARGE_ROWS_MAX: i64 = 6_000;
/// The node must say so by then.
const FULL_MAX: Duration = Duration::from_secs(60);
/// As its log says it.
const FULL: &str = "No space left on device";

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    let Some(disk) = SmallDisk::mount(folder, DISK_MEBIBYTES)? else {
        return Ok(Verdict { summary: json!({ "part": "disk", "left_out": true }), ..Verdict::default() });
    };
    let cluster = folder.join("cluster");
    let ring = Ring::start(&cluster, super::PORTS, &["--shards", "1", "--memory", MEMORY])?;
    move_to(&ring, &cluster.join(format!("node-{NODE}")), &disk)?;
    let hosts = ring.hosts();
    statements(&hosts[0].cql, &schema())?;
    let work = Work::begin(
        &[Orders {
            hosts: hosts.clone(),
            table: ROWS.to_owned(),
            consistency: QUORUM,
            writers: 0..WRITERS,
            pause: WRITER_PAUSE,
        }],
        plan.seed,
    );
    disk.put_ballast(free_mebibytes(&disk)?.saturating_sub(ROOM_MEBIBYTES))?;
    let mut verdict = Verdict::default();
    let began = Instant::now();
    let others: Vec<Host> = hosts.iter().filter(|host| host.number != NODE).cloned().collect();
    let mut filler = Filler::new(&others);
    while !says_full(&cluster)? {
        filler.write_some();
        if began.elapsed() > FULL_MAX {
            return Err(Failure::new(format!("node {NODE} does not say that its disk is full")));
        }
    }
    println!("node {NODE} has a full disk after {:.1?} and {} large rows", began.elapsed(), filler.row_count);
    let before = work.answered_count();
    let full = Instant::now();
    while full.elapsed() < plan.apart() {
        match filler.row_count < LARGE_ROWS_MAX {
            true => filler.write_some(),
            false => std::thread::sleep(WRITER_PAUSE),
        }
    }
    let answered = work.answered_count() - before;
    println!("{answered} answered while it had no room");
    verdict.check(answered > 0, || "nothing was answered while a disk was full".to_owned());
    disk.remove_ballast()?;
    let freed = Instant::now();
    std::thread::sleep(plan.rest);
    let done = work.end()?;
    verdict.check(done.lost.is_empty(), || such("requests of the writers were lost", &done.lost));
    verdict.check(done.wrong.is_empty(), || format!("answers that may not be: {:?}", done.wrong));
    verdict.check(filler.lost.is_empty(), || such("large rows were not taken", &filler.lost));

    let (select, select_large) = (select_all(ROWS), format!("SELECT id, v FROM {LARGE_ROWS}"));
    for select in [&select, &select_large] {
        contents::until_equal(&ring, select, super::SETTLE_MAX, |_| false)?;
    }
    let equal = freed.elapsed();
    let (alone, large) = contents::while_alone(&ring, || {
        Ok((contents::of_all(&ring, &select)?, contents::of_all(&ring, &select_large)?))
    })?;
    for ((host, rows), large) in hosts.iter().zip(&alone).zip(&large) {
        let wrong = wrong_rows(&done.ledger, rows);
        verdict.check(wrong.is_empty(), || such(&format!("rows of node {} alone", host.number), &wrong));
        verdict.check(large.len() as i64 == filler.row_count, || {
            format!("node {} alone has {} of {} large rows", host.number, large.len(), filler.row_count)
        });
    }
    for (nodes, name) in [(&alone, ROWS), (&large, LARGE_ROWS)] {
        let differing = contents::differing(nodes);
        verdict.check(differing.is_empty(), || {
            such(&format!("rows of {name} in which nodes differ"), &differing)
        });
    }
    verdict.summary = json!({
        "part": "disk",
        "rows": done.ledger.len(),
        "large_rows": filler.row_count,
        "answered": done.answered_count,
        "answered_while_full": answered,
        "next_node_asked": done.moved_count,
        "lost": done.lost.len(),
        "equal_after_room_ms": equal.as_millis() as u64,
    });
    Ok(verdict)
}

fn schema() -> Vec<String> {
    vec![
        format!("CREATE KEYSPACE counted WITH replication = {REPLICATION}"),
        table(ROWS),
        format!("CREATE TABLE {LARGE_ROWS} (id bigint PRIMARY KEY, v blob)"),
    ]
}

/// Starts the ring again with a node's directory on the small disk.
fn move_to(ring: &Ring, directory: &Path, disk: &SmallDisk) -> Result<(), Failure> {
    ring.order(&["down"])?;
    let there = disk.mount.join("node");
    succeed(Command::new("cp").arg("-a").arg(directory).arg(&there))?;
    fs::remove_dir_all(directory)?;
    std::os::unix::fs::symlink(&there, directory)?;
    ring.order(&["up"])
}

fn free_mebibytes(disk: &SmallDisk) -> Result<usize, Failure> {
    let told = output(Command::new("df").args(["--output=avail", "-m"]).arg(&disk.mount))?;
    Ok(told.lines().nth(1).unwrap_or_default().trim().parse()?)
}

fn says_full(cluster: &Path) -> Result<bool, Failure> {
    let log = fs::read(cluster.join(format!("node-{NODE}.log")))?;
    Ok(String::from_utf8_lossy(&log).contains(FULL))
}

/// Writes large rows through the nodes that have room.
struct Filler {
    client: Client,
    row_count: i64,
    lost: Vec<String>,
}

impl Filler {
    fn new(hosts: &[Host]) -> Filler {
        let insert = format!("INSERT INTO {LARGE_ROWS} (id, v) VALUES (?, ?)");
        Filler { client: Client::new(hosts, vec![insert], QUORUM, 0), row_count: 0, lost: Vec::new() }
    }

    fn write_some(&mut self) {
        for _ in 0..20 {
            // Not to be compressed.
            let mut dice = crate::crash::Dice(self.row_count as u64);
            let value = (0..LARGE_BYTES / 8).flat_map(|_| dice.next().to_le_bytes()).collect();
            match self.client.execute(0, vec![self.row_count.to_be_bytes().to_vec(), value], None) {
                Ok(_) => self.row_count += 1,
                Err(lost) => self.lost.push(format!("{lost:?}")),
            }
        }
    }
}
