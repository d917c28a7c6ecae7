//! A node loses its disk while the others are written to, and an empty one takes its place: once it serves it has every
//! row by itself.
//!
//! In the moment when the place is taken, replicas decline what was planned before (decision 0032): a request that was
//! in flight then may be lost, and none before or after.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::Ring;
use super::client::{Lost, now_ms};
use super::work::{Orders, Work, select_all, table};
use super::{Plan, QUORUM, REPLICATION, Verdict, contents, such};
use crate::measure::statements;
use crate::report::Failure;

const ROWS: &str = "counted.rows";
const WRITERS: u64 = 12;
const WRITER_PAUSE: Duration = Duration::from_millis(2);
/// The node that loses its disk, from 1; it is at the last address.
const NODE: usize = 3;
/// How long that moment may be: until all nodes have heard that the place is taken.
const FENCE_MAX_MS: u64 = 500;

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    let ring = Ring::start(&folder.join("cluster"), super::PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    statements(&hosts[0].cql, &schema())?;
    let orders = Orders {
        hosts: hosts[..NODE - 1].to_vec(),
        table: ROWS.to_owned(),
        consistency: QUORUM,
        writers: 0..WRITERS,
        pause: WRITER_PAUSE,
    };
    let work = Work::begin(&[orders], plan.seed);
    std::thread::sleep(plan.rest);
    ring.order(&["kill", &NODE.to_string()])?;
    std::thread::sleep(plan.rest);
    let (began, began_ms, before) = (Instant::now(), now_ms(), work.answered_count());
    ring.order(&["start", &NODE.to_string(), "--replace"])?;
    let serves = began.elapsed();
    let (served_ms, answered) = (now_ms(), work.answered_count() - before);
    println!("the new node {NODE} serves after {serves:.1?}, while {answered} were answered");
    std::thread::sleep(plan.rest);
    let done = work.end()?;
    let mut verdict = Verdict::default();
    verdict.check(answered > 0, || "nothing was answered while a node got its rows".to_owned());
    let (at_fence, lost): (Vec<&Lost>, Vec<&Lost>) =
        done.lost.iter().partition(|lost| lost.ended_ms >= began_ms && lost.sent_ms <= served_ms);
    verdict.check(lost.is_empty(), || such("requests at QUORUM were lost", &lost));
    let since_ms = at_fence.iter().map(|lost| lost.sent_ms).min().unwrap_or(served_ms);
    let until_ms = at_fence.iter().map(|lost| lost.ended_ms).max().unwrap_or(since_ms);
    verdict.check(until_ms <= since_ms + FENCE_MAX_MS, || {
        such("requests at QUORUM were lost at other times than one", &at_fence)
    });
    verdict.check(done.wrong.is_empty(), || format!("answers that may not be: {:?}", done.wrong));
    contents::until_equal(&ring, &select_all(ROWS), super::SETTLE_MAX, |_| false)?;
    contents::check_each_alone(&ring, ROWS, &done.ledger, &mut verdict)?;
    verdict.summary = json!({
        "part": "replace",
        "rows": done.ledger.len(),
        "answered": done.answered_count,
        "answered_meanwhile": answered,
        "lost": lost.len(),
        "lost_as_the_place_was_taken": at_fence.len(),
        "serves_after_ms": serves.as_millis() as u64,
    });
    Ok(verdict)
}

fn schema() -> Vec<String> {
    vec![format!("CREATE KEYSPACE counted WITH replication = {REPLICATION}"), table(ROWS)]
}
