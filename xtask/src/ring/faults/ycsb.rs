//! Stock YCSB, workload A, at `QUORUM` on three replicas, beside writers who keep count, while nodes are hurt in turn.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Ring;
use super::client::Lost;
use super::harm::{hurt_all, judge};
use super::work::{Orders, Work, select_all, table, wrong_rows};
use super::{Plan, QUORUM, REPLICATION, Verdict, contents};
use crate::measure::{number, statements};
use crate::peers::{script, succeed};
use crate::report::Failure;

const WRITERS: u64 = 6;
const WRITER_PAUSE: Duration = Duration::from_millis(2);
const THREADS: &str = "16";
/// YCSB ends so long after the last harm, for certain.
const OVERTIME: Duration = Duration::from_secs(10);
const ROWS: &str = "counted.rows";

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    succeed(script("ycsb").arg("install"))?;
    let ring = Ring::start(&folder.join("cluster"), super::PORTS, &["--shards", "1"])?;
    statements(&ring.hosts()[0].cql, &schema())?;
    let ycsb = Ycsb { folder: folder.to_owned(), port: ring.ports.cql, rows: plan.ycsb_rows };
    ycsb.load()?;
    let mut running = ycsb.start(plan.harm_time() + OVERTIME)?;
    let work = Work::begin(
        &[Orders {
            hosts: ring.hosts(),
            table: ROWS.to_owned(),
            consistency: QUORUM,
            writers: 0..WRITERS,
            pause: WRITER_PAUSE,
        }],
        plan.seed,
    );
    let harms = hurt_all(&ring, &|| work.answered_count(), plan.time, plan.rest)?;
    let done = work.end()?;
    let mut verdict = Verdict::default();
    verdict.check(running.0.try_wait()?.is_none(), || "YCSB ended before the last harm".to_owned());
    let (result, ycsb_lost) = ycsb.end(running)?;

    verdict.check(done.wrong.is_empty(), || format!("answers that may not be: {:?}", done.wrong));
    let (unexcused, excused_count) = judge(&harms, &done.lost);
    verdict.check(unexcused.is_empty(), || lost_otherwise("the writers", &unexcused));
    let told: Vec<Lost> = ycsb_lost.iter().map(|failed| failed.lost.clone()).collect();
    let (ycsb_unexcused, ycsb_excused_count) = judge(&harms, &told);
    verdict.check(ycsb_unexcused.is_empty(), || lost_otherwise("YCSB", &ycsb_unexcused));
    verdict.check(failed_count(&result) == told.len() as u64, || {
        format!("YCSB counts {} failed operations and tells of {}", failed_count(&result), told.len())
    });
    // What was tried and not acknowledged may be on some replicas only.
    let in_doubt = |id: &[u8]| {
        let id = id.try_into().map(i64::from_be_bytes);
        id.is_ok_and(|id| done.ledger.get(&id).is_some_and(|may_be| may_be.len() > 1))
    };
    let ycsb_in_doubt: BTreeSet<&[u8]> =
        ycsb_lost.iter().filter(|failed| failed.is_write).map(|failed| failed.key.as_bytes()).collect();
    let select = select_all(ROWS);
    let equal = contents::until_equal(&ring, &select, super::SETTLE_MAX, in_doubt)?;
    let ycsb_equal =
        contents::until_equal(&ring, YCSB_ROWS, super::SETTLE_MAX, |key| ycsb_in_doubt.contains(key))?;
    let (alone, ycsb_alone) = contents::while_alone(&ring, || {
        Ok((contents::of_all(&ring, &select)?, contents::of_all(&ring, YCSB_ROWS)?))
    })?;
    for (host, contents) in ring.hosts().iter().zip(&alone) {
        let wrong = wrong_rows(&done.ledger, contents);
        verdict
            .check(wrong.is_empty(), || super::such(&format!("rows of node {} alone", host.number), &wrong));
    }
    let mut ycsb_differing = contents::differing(&ycsb_alone);
    ycsb_differing.retain(|key| !ycsb_in_doubt.contains(key.as_slice()));
    verdict.check(ycsb_differing.is_empty(), || {
        super::such("rows of YCSB in which nodes differ", &ycsb_differing)
    });
    for (host, contents) in ring.hosts().iter().zip(&ycsb_alone) {
        verdict.check(contents.len() as u64 == plan.ycsb_rows, || {
            format!("node {} alone has {} of YCSB's {} rows", host.number, contents.len(), plan.ycsb_rows)
        });
    }
    verdict.summary = json!({
        "part": "ycsb",
        "harms": harms.iter().map(|harm| harm.summary(&done.lost)).collect::<Vec<_>>(),
        "writers": {
            "rows": done.ledger.len(),
            "answered": done.answered_count,
            "next_node_asked": done.moved_count,
            "lost_in_flight": excused_count,
            "lost_otherwise": unexcused.len(),
            "in_doubt": done.ledger.values().filter(|may_be| may_be.len() > 1).count(),
        },
        "ycsb": {
            "rows": plan.ycsb_rows,
            "operations": result["ops"],
            "operations_per_second": result["ops_per_s"],
            "lost_in_flight": ycsb_excused_count,
            "lost_otherwise": ycsb_unexcused.len(),
            "in_doubt": ycsb_in_doubt.len(),
            "read_p99_us": result["READ"]["p99_us"],
            "update_p99_us": result["UPDATE"]["p99_us"],
        },
        "equal_after_ms": (equal + ycsb_equal).as_millis() as u64,
    });
    Ok(verdict)
}

/// YCSB's table: its key, and its ten fields.
const YCSB_ROWS: &str = "SELECT * FROM ycsb.usertable";

fn schema() -> Vec<String> {
    let fields: Vec<String> = (0..10).map(|field| format!("field{field} varchar")).collect();
    vec![
        format!("CREATE KEYSPACE counted WITH replication = {REPLICATION}"),
        table(ROWS),
        format!("CREATE KEYSPACE ycsb WITH replication = {REPLICATION}"),
        format!("CREATE TABLE ycsb.usertable (y_id varchar PRIMARY KEY, {})", fields.join(", ")),
    ]
}

fn lost_otherwise(who: &str, lost: &[&Lost]) -> String {
    super::such(&format!("requests of {who} that were not in flight to the node that was hit"), lost)
}

/// Runs of the stock program, whose files are in a folder.
struct Ycsb {
    folder: PathBuf,
    port: u16,
    rows: u64,
}

/// YCSB at work; ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = format!("-{}", self.0.id());
            // It may have ended just now; then there is nothing to do.
            let _ = succeed(Command::new("kill").args(["-s", "TERM", "--", &group]));
            let _ = self.0.wait();
        }
    }
}

/// An operation that YCSB says failed.
struct Failed {
    lost: Lost,
    is_write: bool,
    key: String,
}

impl Ycsb {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = script("ycsb");
        command.args(words).args(["--rows", &self.rows.to_string(), "--port", &self.port.to_string()]);
        command.args(["--heap", "512M", "-p", "hosts=127.0.0.1,127.0.0.2,127.0.0.3"]);
        command.args(["-p", "cql.consistency=QUORUM"]);
        command
    }

    fn load(&self) -> Result<(), Failure> {
        succeed(&mut self.command(&["load", "--threads", THREADS]))
    }

    fn start(&self, time: Duration) -> Result<Running, Failure> {
        let mut run = self.command(&["run", "a", "--threads", THREADS, "--warmup", "0"]);
        run.args(["--seconds", &time.as_secs().to_string(), "--out"]).arg(self.folder.join("ycsb.json"));
        run.env("YCSB_KEEP_RAW", self.folder.join("ycsb.raw")).stdout(Stdio::null());
        // With all that the script starts, so that all of it can be ended.
        Ok(Running(run.process_group(0).spawn()?))
    }

    /// Waits for its end: its figures, and what failed.
    fn end(&self, mut running: Running) -> Result<(Value, Vec<Failed>), Failure> {
        let status = running.0.wait()?;
        if !status.success() {
            return Err(Failure::new(format!("YCSB: {status}")));
        }
        let result = serde_json::from_str(&std::fs::read_to_string(self.folder.join("ycsb.json"))?)?;
        let told = std::fs::read_to_string(self.folder.join("ycsb.raw.err"))?;
        Ok((result, told.lines().filter_map(failed).collect()))
    }
}

/// Reads `FAILED update user1 1700000000000 1700000000001 127.0.0.2 why`, with `-` where no node had it.
fn failed(line: &str) -> Option<Failed> {
    let mut words = line.strip_prefix("FAILED ")?.splitn(6, ' ');
    let (operation, key) = (words.next()?, words.next()?.to_owned());
    let (sent_ms, ended_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let node = words.next()?.rsplit('.').next()?.parse().ok();
    let what = format!("{operation} {key}: {}", words.next()?);
    Some(Failed { lost: Lost { node, sent_ms, ended_ms, what }, is_write: operation != "read", key })
}

/// All operations that YCSB counts as failed.
fn failed_count(result: &Value) -> u64 {
    let count = |name: &str| number(&result[name], "failed");
    ["READ", "UPDATE"].map(count).into_iter().filter(|count| !count.is_nan()).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_read_with_the_node_that_had_it() {
        let line =
            "FAILED update user7 1000 1010 127.0.0.2 com.x.OperationTimedOut: [/127.0.0.2] it timed out";
        let update = failed(line).unwrap();
        assert_eq!((update.lost.node, update.lost.sent_ms, update.lost.ended_ms), (Some(2), 1_000, 1_010));
        assert!(update.is_write && update.key == "user7");
        assert_eq!(failed("FAILED read user7 1000 1010 - null").unwrap().lost.node, None);
        assert!(failed("SLF4J: no providers").is_none());
    }
}
