//! `cargo xtask ring-pulse`: what clients of two nodes feel when the third one is killed, or hangs, in plots.
//!
//! Three nodes of one shard, three replicas, an open loop at `QUORUM` (half reads, half updates) at half of what a
//! closed loop gets through: requests come whether they are answered or not. They go to nodes 1 and 2, so none is in
//! flight to the node that is hit as its client; it is hit as a replica.
//!
//! ```text
//!   0 s ──────── 5 s ──────────────── 12 s ─────────── 20 s
//!      at half      killed, or paused      there again
//! ```
//!
//! Told and drawn for every 100 ms: good answers, and the 99th percentile of the requests that were due in it. Server
//! and load share the machine's cores; a quiet one is needed.

use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Ports, Ring};
use crate::arguments::Arguments;
use crate::measure::{build_load, load, loaded, number};
use crate::node::fresh_folder;
use crate::plot::{Plot, Series};
use crate::report::{Failure, Tally, complain};

const PORTS: Ports = Ports { cql: 19442, storage: 17400, management: 17499 };
/// The node that is hit.
const HIT: &str = "3";
const SLOT: Duration = Duration::from_millis(100);
const WARMUP: Duration = Duration::from_secs(3);
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
    build_load()?;
    let folder = fresh_folder("ring-pulse")?;
    let out = arguments.text("out").map_or_else(|| folder.clone(), Into::into);
    std::fs::create_dir_all(&out)?;
    let rows = format!("rows={}", arguments.value("rows", 100_000u64)?);
    let moments = MOMENTS.map(|moment| if arguments.flag("short") { moment / SHORTER } else { moment });
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--shards", "1"])?;
    let port = format!("port={}", PORTS.cql);
    let common = [&port, &rows, "keyspace=pulse", "hosts=127.0.0.1,127.0.0.2", "consistency=QUORUM"];
    let words = |first: &[&str]| [first, &common].concat().iter().map(|word| (*word).to_owned()).collect();
    let fill: Vec<String> = words(&["fill", "statement=mixed", "replicas=3"]);
    loaded_by(&fill)?;
    let rate = match arguments.value("rate", 0.0)? {
        0.0 => {
            let drive: Vec<String> =
                words(&["drive", "statement=mixed", "route=any", "connections=8", "window=32", "seconds=5"]);
            number(&loaded_by(&drive)?, "ops_per_s") / 2.0
        }
        rate => rate,
    };
    println!("{rate:.0} requests a second");
    let mut tally = Tally::default();
    for hit in &HITS {
        let open: Vec<String> = words(&["open", "statement=mixed", "connections=8"]);
        let slots = pulse(&ring, hit, open, rate, moments)?;
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

fn loaded_by(words: &[String]) -> Result<Value, Failure> {
    loaded(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What came of [`SLOT`].
struct Slot {
    good_per_second: f64,
    p99_ms: f64,
}

/// Offers the load, and hits the node in the midst of it.
fn pulse(
    ring: &Ring,
    hit: &Hit,
    mut words: Vec<String>,
    rate: f64,
    moments: [Duration; 3],
) -> Result<Vec<Slot>, Failure> {
    let [begin, end, over] = moments.map(|moment| WARMUP + moment);
    words.push(format!("rate={rate}"));
    words.push(format!("warmup={}", WARMUP.as_secs_f64()));
    words.push(format!("seconds={}", moments[2].as_secs_f64()));
    words.push(format!("slot_ms={}", SLOT.as_millis()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let started = Instant::now();
    let running = load(&words).stdout(Stdio::piped()).spawn()?;
    let until = |moment: Duration| std::thread::sleep(moment.saturating_sub(started.elapsed()));
    until(begin);
    ring.order(&[hit.begin, HIT])?;
    until(end);
    ring.order(&[hit.end, HIT])?;
    until(over);
    let output = running.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found: Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    let slots = found["slots"].as_array().ok_or_else(|| Failure::new("the load tells of no slots"))?;
    let slot = |slot: &Value| Slot {
        good_per_second: slot[0].as_f64().unwrap_or(f64::NAN) / SLOT.as_secs_f64(),
        p99_ms: slot[1].as_f64().unwrap_or(f64::NAN) / 1000.0,
    };
    Ok(slots.iter().map(slot).collect())
}

/// How long after the node was hit the 99th percentile was first twice the usual of before, at most; `None` when never.
fn back_after(slots: &[Slot], hit: Duration) -> Option<Duration> {
    let at = (hit.as_millis() / SLOT.as_millis()) as usize;
    let mut before: Vec<f64> = slots.get(..at)?.iter().map(|slot| slot.p99_ms).collect();
    before.sort_by(f64::total_cmp);
    let usual = before.get(before.len() / 2)?;
    let is_back = |slot: &Slot| slot.p99_ms <= 2.0 * usual;
    let back = slots[at..].iter().position(is_back)?;
    Some(SLOT * u32::try_from(back).ok()?)
}

/// A plot of the rate and one of the latency, and the figures.
fn draw(hit: &Hit, slots: &[Slot], rate: f64, moments: [Duration; 3], out: &Path) -> Result<(), Failure> {
    let [begin, end, _] = moments.map(|moment| moment.as_secs_f64());
    let seconds = |index: usize| index as f64 * SLOT.as_secs_f64();
    let mut csv = "seconds,good_per_s,p99_ms\n".to_owned();
    for (index, slot) in slots.iter().enumerate() {
        let _ = writeln!(csv, "{:.1},{:.0},{:.3}", seconds(index), slot.good_per_second, slot.p99_ms);
    }
    std::fs::write(out.join(format!("pulse-{}.csv", hit.name)), csv)?;
    type Figure = (&'static str, &'static str, fn(&Slot) -> f64);
    let figures: [Figure; 2] = [
        ("rate", "good answers a second", |slot| slot.good_per_second),
        ("p99", "99th percentile, ms", |slot| slot.p99_ms),
    ];
    for (ending, y_title, figure) in figures {
        let points = slots.iter().enumerate().map(|(index, slot)| (seconds(index), figure(slot))).collect();
        let plot = Plot {
            title: format!(
                "node {HIT} of three: {} after {begin:.1} s, {} after {end:.1} s; {rate:.0} requests a second at QUORUM",
                hit.begin, hit.end
            ),
            x_title: "seconds; a point for each 100 ms".to_owned(),
            y_title: y_title.to_owned(),
            series: vec![Series { name: "nodes 1 and 2".to_owned(), points }],
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
        let hit = Duration::from_millis(300);
        assert_eq!(back_after(&slots(&[1.0, 1.5, 1.0, 1.0]), hit), Some(Duration::ZERO));
        assert_eq!(
            back_after(&slots(&[1.0, 1.5, 1.0, 50.0, 9.0, 2.0]), hit),
            Some(Duration::from_millis(200))
        );
        assert_eq!(back_after(&slots(&[1.0, 1.5, 1.0, 50.0]), hit), None);
    }
}
