//! Two data centres of two racks, cut off from each other: each goes on at `LOCAL_QUORUM`, and afterwards all four
//! replicas of each row become equal without anybody's command.
//!
//! Rows are written in one data centre or in both: of those that both wrote while they were apart, the newest
//! timestamp must win everywhere. That the cut is one is seen at `QUORUM`, which needs three of the four.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{Host, Ring};
use super::client::{Client, Lost, now_us};
use super::work::{
    DELETE, Done, INSERT, Ledger, Orders, Work, insert_values, select_all, statements_of, table, wrong_rows,
};
use super::{Plan, QUORUM, Verdict, contents, such};
use crate::crash::Dice;
use crate::measure::statements;
use crate::report::Failure;

const LOCAL_QUORUM: u16 = 6;
/// Of each data centre.
const WRITERS: u64 = 3;
const WRITER_PAUSE: Duration = Duration::from_millis(2);
const ROWS: &str = "counted.rows";
/// What both write.
const SHARED_ROWS: &str = "counted.shared";
const SHARED_COUNT: i64 = 300;
/// `peristyle cluster` deals nodes to data centres in turn.
const DATA_CENTERS: [[usize; 2]; 2] = [[1, 3], [2, 4]];
/// How soon nodes must know that they are cut off.
const NOTICE_MAX: Duration = Duration::from_secs(10);

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    let words = ["--dcs", "2", "--racks", "2", "--shards", "1"];
    let ring = Ring::of(4, &folder.join("cluster"), super::PORTS, &words)?;
    let hosts = ring.hosts();
    let of = |numbers: [usize; 2]| numbers.map(|number| hosts[number - 1].clone()).to_vec();
    let centers = DATA_CENTERS.map(of);
    statements(&hosts[0].cql, &schema())?;
    let orders = |center: usize| Orders {
        hosts: centers[center].clone(),
        table: ROWS.to_owned(),
        consistency: LOCAL_QUORUM,
        writers: center as u64 * WRITERS..(center as u64 + 1) * WRITERS,
        pause: WRITER_PAUSE,
    };
    let works = [0, 1].map(|center| Work::begin(&[orders(center)], plan.seed));
    let mut verdict = Verdict::default();

    std::thread::sleep(plan.rest);
    for (one, other) in DATA_CENTERS[0].into_iter().flat_map(|one| DATA_CENTERS[1].map(|other| (one, other)))
    {
        ring.order(&["cut", &one.to_string(), &other.to_string()])?;
    }
    let before = [0, 1].map(|center: usize| works[center].answered_count());
    let refused =
        centers.iter().map(|hosts| until_quorum_is_refused(hosts)).collect::<Result<Vec<_>, _>>()?;
    let shared = write_on_both_sides(&centers, &mut Dice(plan.seed), &mut verdict);
    std::thread::sleep(plan.apart());
    let answered = [0, 1].map(|center: usize| works[center].answered_count() - before[center]);
    for (center, count) in (1..).zip(answered) {
        println!("dc{center}: {count} answered while the other was cut off");
        verdict.check(count > 0, || format!("dc{center} did not go on"));
    }
    ring.order(&["heal"])?;
    std::thread::sleep(plan.rest);
    let mut done = Done::default();
    for work in works {
        done.add(work.end()?);
    }
    verdict.check(done.lost.is_empty(), || such("requests at LOCAL_QUORUM were lost", &done.lost));
    verdict.check(done.wrong.is_empty(), || format!("answers that may not be: {:?}", done.wrong));

    let healed = Instant::now();
    let tables = [(ROWS, &done.ledger), (SHARED_ROWS, &shared)];
    for (table, _) in tables {
        contents::until_equal(&ring, &select_all(table), super::SETTLE_MAX, |_| false)?;
    }
    let equal = healed.elapsed();
    let alone = contents::while_alone(&ring, || {
        tables
            .into_iter()
            .map(|(table, _)| contents::of_all(&ring, &select_all(table)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    for ((table, ledger), nodes) in tables.into_iter().zip(&alone) {
        let differing = contents::differing(nodes);
        verdict.check(differing.is_empty(), || {
            such(&format!("rows of {table} in which nodes differ"), &differing)
        });
        for (host, contents) in hosts.iter().zip(nodes) {
            let wrong = wrong_rows(ledger, contents);
            verdict.check(wrong.is_empty(), || {
                such(&format!("rows of {table} on node {} alone", host.number), &wrong)
            });
        }
    }
    verdict.summary = json!({
        "part": "datacenters",
        "rows": done.ledger.len(),
        "rows_written_on_both_sides": shared.len(),
        "answered": done.answered_count,
        "answered_while_apart": answered,
        "lost": done.lost.len(),
        "quorum_refused_after_ms": refused.iter().map(|time| time.as_millis() as u64).collect::<Vec<_>>(),
        "equal_after_ms": equal.as_millis() as u64,
    });
    Ok(verdict)
}

fn schema() -> Vec<String> {
    vec![
        "CREATE KEYSPACE counted WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2, 'dc2': 2}"
            .to_owned(),
        table(ROWS),
        table(SHARED_ROWS),
    ]
}

/// How long it takes until a write that needs a replica of the other side is refused.
fn until_quorum_is_refused(hosts: &[Host]) -> Result<Duration, Failure> {
    let mut client = Client::new(hosts, statements_of(SHARED_ROWS), QUORUM, 0);
    let began = Instant::now();
    while began.elapsed() < NOTICE_MAX {
        if let Err(Lost { node: None, .. }) =
            client.execute(DELETE, vec![(-1i64).to_be_bytes().to_vec()], Some(1))
        {
            return Ok(began.elapsed());
        }
    }
    Err(Failure::new(format!("QUORUM is not refused {NOTICE_MAX:?} after the cut: is there one?")))
}

/// Both sides write, or delete, the same rows; who is newer is random. What must be there in the end.
fn write_on_both_sides(centers: &[Vec<Host>; 2], dice: &mut Dice, verdict: &mut Verdict) -> Ledger {
    let client = |hosts: &Vec<Host>| Client::new(hosts, statements_of(SHARED_ROWS), LOCAL_QUORUM, 0);
    let mut clients = [client(&centers[0]), client(&centers[1])];
    let mut ledger = Ledger::new();
    let mut lost = Vec::new();
    for id in 0..SHARED_COUNT {
        let now = now_us() as i64;
        let newer = dice.between(0, 2) as usize;
        for (center, client) in clients.iter_mut().enumerate() {
            let is_newer = center == newer;
            let version = now + i64::from(is_newer);
            let is_delete = dice.between(0, 4) == 0;
            let (statement, values, state) = match is_delete {
                true => (DELETE, vec![id.to_be_bytes().to_vec()], None),
                false => (INSERT, insert_values(id, version), Some(version)),
            };
            match client.execute(statement, values, Some(version)) {
                Ok(_) if is_newer => _ = ledger.insert(id, vec![state]),
                Ok(_) => {}
                Err(why) => lost.push(why),
            }
        }
    }
    verdict.check(lost.is_empty(), || such("writes that both sides made were lost", &lost));
    ledger
}
