//! `cargo xtask ring-pulse`: what clients of two nodes feel when the third one is killed, or hangs, in plots.
//!
//! Three nodes of one shard, three replicas, an open loop at `QUORUM` (half reads, half updates) at half of what a
//! closed loop gets through: requests come whether they are answered or not. The client asks all nodes, as drivers do,
//! waits for an answer for a second, and connects again when it lost a node.
//!
//! ```text
//!   0 s ──────── 5 s ──────────────── 12 s ─────────── 20 s
//!      at half      killed, or paused      there again
//! ```
//!
//! Told and drawn for every second: good answers, and the 99th percentile of those that came in it. Server and load
//! share the machine's cores; a quiet one is needed.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Ports, Ring};
use crate::arguments::Arguments;
use crate::lab::{self, Load, Pace};
use crate::node::fresh_folder;
use crate::plot::{Plot, Series};
use crate::report::{Failure, Tally, complain};

const PORTS: Ports = Ports { cql: 19442, storage: 17400, management: 17499 };
/// The node that is hit.
const HIT: &str = "3";
const WARMUP: Duration = Duration::from_secs(3);
/// Under way in the closed loop that finds out what is borne.
const IN_FLIGHT: Pace = Pace::InFlight(256);
/// So long the client waits for an answer.
const PATIENCE: &str = "1s";
/// Since the warm-up: when the node is hit, when it is there again, and the end. `--short` has a fifth of each.
const MOMENTS: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(12), Duration::from_secs(20)];
const SHORTER: u32 = 5;

struct Hit {
    name: &'static str,
    begin: &'static str,
    end: &'static str,
}

const HITS: [Hit; 2] =
    [Hit { name: "kill", begin: "kill", end: "start" }, Hit { name: "pause", begin: "pause", end: "resume" }];

/// Runs it; the plots are written to `--out FOLDER`.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rows", "rate", "short", "out"])?;
    let folder = fresh_folder("ring-pulse")?;
    let out = arguments.text("out").map_or_else(|| folder.clone(), Into::into);
    std::fs::create_dir_all(&out)?;
    let moments = MOMENTS.map(|moment| if arguments.flag("short") { moment / SHORTER } else { moment });
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--shards", "1"])?;
    let load = Load::new("rows", &ring.address("127.0.0.1"), IN_FLIGHT).mix(&[("reads", 1), ("updates", 1)]);
    let load = load.with("keyspace", "pulse").with("replication-factor", 3).with("consistency", "QUORUM");
    let load = load.with("rows", arguments.value("rows", 100_000u64)?).with("timeout", PATIENCE);
    load.clone().fill()?;
    let load = load.has_rows();
    let rate = match arguments.value("rate", 0.0)? {
        0.0 => (load.clone().with("seconds", 5).with("warmup", 1).run()?.rate() / 2.0).round(),
        rate => rate,
    };
    println!("{rate:.0} requests a second");
    let mut tally = Tally::default();
    for hit in &HITS {
        let slots = pulse(&ring, hit, load.clone().at(Pace::Rate(rate)), moments)?;
        draw(hit, &slots, rate, moments, &out)?;
        let lowest = slots.iter().map(|slot| slot.good_per_second).fold(f64::INFINITY, f64::min);
        let summary = json!({
            "part": format!("pulse-{}", hit.name),
            "rate": rate,
            "worst_slot_share": lowest / rate,
            "p99_back_ms": back_after(&slots, moments[0]).map(|back| back.as_millis() as u64),
        });
        println!("summary {summary}");
        match slots.iter().all(|slot| slot.good_per_second == 0.0) {
            true => {
                complain!("ring-pulse: nothing was answered ({})", hit.name);
                tally += Tally::FAIL;
            }
            false => tally += Tally::PASS,
        }
    }
    Ok(tally)
}

/// What came of a second.
struct Slot {
    good_per_second: f64,
    p99_ms: f64,
}

/// Offers the load, and hits the node in the midst of it.
fn pulse(ring: &Ring, hit: &Hit, load: Load, moments: [Duration; 3]) -> Result<Vec<Slot>, Failure> {
    let load = load.with("warmup", WARMUP.as_secs()).with("seconds", moments[2].as_secs_f64());
    let started = Instant::now();
    let until = |moment: Duration| std::thread::sleep((WARMUP + moment).saturating_sub(started.elapsed()));
    let measured = std::thread::scope(|scope| {
        let running = scope.spawn(|| load.run());
        until(moments[0]);
        ring.order(&[hit.begin, HIT])?;
        until(moments[1]);
        ring.order(&[hit.end, HIT])?;
        running.join().map_err(|_| Failure::new("the client panicked"))?
    })?;
    println!("{}: {} failed: {}", hit.name, measured.failed(), measured.faults());
    let slot = |second: lab::Instant| Slot { good_per_second: second.count as f64, p99_ms: second.p99_ms };
    Ok(measured.by_second().into_iter().map(slot).collect())
}

/// How long after the node was hit the 99th percentile was first twice the usual of before, at most; `None` when never.
fn back_after(slots: &[Slot], hit: Duration) -> Option<Duration> {
    let at = hit.as_secs() as usize;
    let mut before: Vec<f64> = slots.get(..at)?.iter().map(|slot| slot.p99_ms).collect();
    before.sort_by(f64::total_cmp);
    let usual = before.get(before.len() / 2)?;
    let is_back = |slot: &Slot| slot.p99_ms <= 2.0 * usual;
    let back = slots[at..].iter().position(is_back)?;
    Some(Duration::from_secs(back as u64))
}

/// A plot of the rate and one of the latency, and the figures.
fn draw(hit: &Hit, slots: &[Slot], rate: f64, moments: [Duration; 3], out: &Path) -> Result<(), Failure> {
    let [begin, end, _] = moments.map(|moment| moment.as_secs_f64());
    let mut csv = "seconds,good_per_s,p99_ms\n".to_owned();
    for (index, slot) in slots.iter().enumerate() {
        let _ = writeln!(csv, "{index},{:.0},{:.3}", slot.good_per_second, slot.p99_ms);
    }
    std::fs::write(out.join(format!("pulse-{}.csv", hit.name)), csv)?;
    type Figure = (&'static str, &'static str, fn(&Slot) -> f64);
    let figures: [Figure; 2] = [
        ("rate", "good answers a second", |slot| slot.good_per_second),
        ("p99", "99th percentile, ms", |slot| slot.p99_ms),
    ];
    for (ending, y_title, figure) in figures {
        let points = slots.iter().enumerate().map(|(index, slot)| (index as f64, figure(slot))).collect();
        let plot = Plot {
            title: format!(
                "node {HIT} of three: {} after {begin:.1} s, {} after {end:.1} s; {rate:.0} requests a second at QUORUM",
                hit.begin, hit.end
            ),
            x_title: "seconds; a point for each".to_owned(),
            y_title: y_title.to_owned(),
            series: vec![Series { name: "three nodes".to_owned(), points }],
        };
        let path = out.join(format!("pulse-{}-{ending}.svg", hit.name));
        std::fs::write(&path, plot.svg())?;
        println!("{}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_back_when_the_percentile_is_twice_the_usual_at_most() {
        let slots = |p99s: &[f64]| -> Vec<Slot> {
            p99s.iter().map(|p99_ms| Slot { good_per_second: 1.0, p99_ms: *p99_ms }).collect()
        };
        let hit = Duration::from_secs(3);
        assert_eq!(back_after(&slots(&[1.0, 1.5, 1.0, 1.0]), hit), Some(Duration::ZERO));
        assert_eq!(back_after(&slots(&[1.0, 1.5, 1.0, 50.0, 9.0, 2.0]), hit), Some(Duration::from_secs(2)));
        assert_eq!(back_after(&slots(&[1.0, 1.5, 1.0, 50.0]), hit), None);
    }
}
