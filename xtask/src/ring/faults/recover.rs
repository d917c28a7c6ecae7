//! Two of three voters are lost for good, and the ring goes on by force (`docs/ring/operating.md`): what was
//! acknowledged at `ALL` is there, and the schema can be changed again. Before that, a change is refused, and soon.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{Host, Ring};
use super::work::{Orders, Work, select_all, table};
use super::{Plan, REPLICATION, Verdict, contents, such};
use crate::measure::statements;
use crate::peers::output;
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

const ALL: u16 = 5;
const ROWS: &str = "counted.rows";
const WRITERS: u64 = 12;
const WRITER_PAUSE: Duration = Duration::from_millis(2);
const SURVIVOR: usize = 1;
const LOST: [usize; 2] = [2, 3];
/// How soon a change of the schema must be refused while too few vote, also right after they were lost.
const REFUSED_MAX: Duration = Duration::from_secs(4);

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    let ring = Ring::start(&folder.join("cluster"), super::PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    statements(&hosts[0].cql, &schema())?;
    let orders = Orders {
        hosts: hosts.clone(),
        table: ROWS.to_owned(),
        consistency: ALL,
        writers: 0..WRITERS,
        pause: WRITER_PAUSE,
    };
    let work = Work::begin(&[orders], plan.seed);
    std::thread::sleep(2 * plan.rest);
    let done = work.end()?;
    let mut verdict = Verdict::default();
    verdict.check(done.lost.is_empty(), || such("requests at ALL were lost", &done.lost));
    for node in LOST {
        ring.order(&["kill", &node.to_string()])?;
        fs::remove_dir_all(ring.directory(node))?;
    }
    let survivor = &hosts[SURVIVOR - 1];
    let mut refused_after = Vec::new();
    for name in ["counted.in_doubt", "counted.refused"] {
        let began = Instant::now();
        let refusal = refusal(survivor, &table(name))?;
        refused_after.push(began.elapsed());
        println!("refused after {:.1?}: {refusal}", began.elapsed());
        verdict.check(began.elapsed() <= REFUSED_MAX, || {
            format!("a change without a majority is refused after {:.1?}: {refusal}", began.elapsed())
        });
    }
    ring.order(&["down"])?;
    recover(&ring, &mut verdict)?;
    let began = Instant::now();
    ring.order(&["start", &SURVIVOR.to_string()])?;
    statements(&survivor.cql, &[table("counted.after")])?;
    let goes_on = began.elapsed();
    for node in LOST {
        ring.order(&["start", &node.to_string(), "--replace"])?;
    }
    let whole = began.elapsed();
    println!("the schema was changed after {goes_on:.1?}, and all nodes have their rows after {whole:.1?}");
    ring.nodetool("127.0.0.1", &["repair"])?;
    for (host, name) in hosts.iter().zip(["counted.by_1", "counted.by_2", "counted.by_3"]) {
        statements(&host.cql, &[table(name)])?;
    }
    contents::until_equal(&ring, &select_all(ROWS), super::SETTLE_MAX, |_| false)?;
    contents::check_each_alone(&ring, ROWS, &done.ledger, &mut verdict)?;
    verdict.summary = json!({
        "part": "recover",
        "rows": done.ledger.len(),
        "answered": done.answered_count,
        "refused_after_ms": refused_after.iter().map(|time| time.as_millis() as u64).collect::<Vec<_>>(),
        "schema_changed_after_ms": goes_on.as_millis() as u64,
        "all_serve_after_ms": whole.as_millis() as u64,
    });
    Ok(verdict)
}

fn schema() -> Vec<String> {
    vec![format!("CREATE KEYSPACE counted WITH replication = {REPLICATION}"), table(ROWS)]
}

/// What a node says to a change of the schema that it can not make.
fn refusal(host: &Host, change: &str) -> Result<String, Failure> {
    let answer = Connection::open(&host.cql, 4)?.query(change, &Request::default())?.answer;
    match answer {
        Answer::Error { message, .. } => Ok(message),
        other => Err(Failure::new(format!("{change} without a majority: {other:?}"))),
    }
}

/// The survivors are all that vote, once that loss is accepted and not before.
fn recover(ring: &Ring, verdict: &mut Verdict) -> Result<(), Failure> {
    let survivors = format!("127.0.0.{SURVIVOR}:{}", ring.ports.storage);
    let words = ["recover", "--survivors", &survivors];
    let said = ring.on_stopped(SURVIVOR, &words).output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    verdict.check(!said.status.success() && text.contains("Nothing was done"), || {
        format!("a ring was recovered though nobody accepted the loss: {text}")
    });
    output(ring.on_stopped(SURVIVOR, &words).arg("--accept-loss")).map(|_| ())
}
