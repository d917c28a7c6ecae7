//! `cargo xtask agreement`: does the lab measure what YCSB measures, its core with our binding (`lab/peers/ycsb`)?
//!
//! ```text
//!   Cassandra on core 0, warm     clients on core 1, one after the other
//!   block 1    YCSB  lab  lab  YCSB
//!   block 2    YCSB  lab  lab  YCSB  …
//! ```
//!
//! Both are in a closed loop with as many operations under way, over one connection, as the Java driver has it; times
//! are service times. A machine that slows down meanwhile slows both alike, since within a block each is as early as it
//! is late. So a block gives ratios, the lab's mean to YCSB's, and what is told is their median, with the least and the
//! greatest.
//!
//! Cores share a clock and caches, so that a server is faster the less the client does. The lab's client does a third
//! of what YCSB's does; so the client's core is kept busy with work that gives way to both. And each client has its
//! own table, which is compacted before a workload: otherwise one may be read from more files than the other.

use std::process::Command;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::lab::{Load, Pace};
use crate::measure::{Cassandra, median, number};
use crate::node::fresh_folder;
use crate::peers::{install_cassandra, output, script, succeed};
use crate::process::{Running, root};
use crate::report::{Failure, Tally, complain};

const ROWS: u64 = 100_000;
const UNDER_WAY: u64 = 8;
const SERVER_CORES: &str = "0";
const CLIENT_CORES: &str = "1";
/// What is aimed at for each ratio: so far from 1 at most. It depends on the machine, and is told.
const AIM: f64 = 0.05;
/// YCSB's client is compiled while it runs.
const YCSB_WARMUP_S: u64 = 10;

/// What one client found in a few seconds.
#[derive(Debug)]
struct Found {
    rate: f64,
    /// Percentiles of each kind in milliseconds: `read p50`.
    times: Vec<(String, f64)>,
    client_cpu_us: f64,
    server_cpu_us: f64,
}

/// Measures blocks of each workload, and tells ratios.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["blocks", "seconds", "only"])?;
    let (blocks, seconds): (u32, u64) = (arguments.value("blocks", 8)?, arguments.value("seconds", 10)?);
    if blocks == 0 || seconds == 0 {
        return Err(Failure::new("a block at least, of a second at least"));
    }
    install_cassandra()?;
    succeed(script("ycsb").arg("install"))?;
    let server = Cassandra::start(&fresh_folder("agreement")?, "latest", "2G")?;
    let mut idle_work = Command::new("chrt");
    idle_work.args(["-i", "0", "taskset", "-c", CLIENT_CORES, "sh", "-c", "while :; do :; done"]);
    let _idle_work = Running::start(&mut idle_work)?;
    let both = Both { server: &server, seconds };
    both.warm_up()?;
    let mut tally = Tally::default();
    for (letter, kinds) in [("a", &["read", "update"][..]), ("c", &["read"][..])] {
        if arguments.picks("only", letter) {
            tally += both.compare(letter, kinds, blocks)?;
        }
    }
    if tally == Tally::default() {
        return Err(Failure::new("--only names a, c or both"));
    }
    Ok(tally)
}

/// The two clients of one server.
struct Both<'a> {
    server: &'a Cassandra,
    seconds: u64,
}

impl Both<'_> {
    /// Loads each client's rows, has the server's code compiled, and keeps it to its cores.
    fn warm_up(&self) -> Result<(), Failure> {
        let rows = ROWS.to_string();
        let port = self.server.port.to_string();
        succeed(script("ycsb").args(["load", "--rows", &rows, "--threads", "16", "--port", &port]))?;
        let process_id = self.server.process_id.to_string();
        output(Command::new("taskset").args(["-a", "-p", "-c", SERVER_CORES, &process_id]))?;
        self.ycsb("a", 60, 1)?;
        self.load("a").with("seconds", 30).run().map(|_| ())
    }

    fn compare(&self, letter: &str, kinds: &[&str], blocks: u32) -> Result<Tally, Failure> {
        [["flush"], ["compact"]].iter().try_for_each(|words| self.server.nodetool(words).map(|_| ()))?;
        let mut ratios: Vec<(String, Vec<f64>)> = Vec::new();
        let mut tally = Tally::default();
        for block in 1..=blocks {
            let ycsb_first = self.by_ycsb(letter, kinds)?;
            let lab = [self.by_lab(letter, kinds, &mut tally)?, self.by_lab(letter, kinds, &mut tally)?];
            let ycsb = [ycsb_first, self.by_ycsb(letter, kinds)?];
            println!("{letter}, block {block}: YCSB {}, lab {}", shown(&ycsb), shown(&lab));
            for (name, ratio) in ratios_of(&ycsb, &lab) {
                match ratios.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, all)) => all.push(ratio),
                    None => ratios.push((name, vec![ratio])),
                }
            }
        }
        println!("\nworkload {letter}: the lab's figures to those of YCSB, medians of {blocks} blocks");
        for (name, mut all) in ratios {
            all.sort_by(f64::total_cmp);
            let (low, high) = (all[0], all[all.len() - 1]);
            let middle = median(all);
            if !middle.is_finite() {
                complain!("workload {letter}: {name} is not known");
                tally += Tally::FAIL;
            }
            let is_met = (middle - 1.0).abs() <= AIM;
            let aim = if name.contains("CPU") {
                ""
            } else if is_met {
                ", within 5%"
            } else {
                ", not within 5%"
            };
            println!("  {name:<24} {middle:.3} ({low:.3} to {high:.3}){aim}");
        }
        Ok(tally)
    }

    fn by_ycsb(&self, letter: &str, kinds: &[&str]) -> Result<Found, Failure> {
        let told = self.ycsb(letter, self.seconds, YCSB_WARMUP_S)?;
        let of = |kind: &str| &told[kind.to_uppercase().as_str()];
        let cpu = |name: &str| number(&told, name) * 1e6 / number(&told, "ops");
        Ok(Found {
            rate: number(&told, "ops_per_s"),
            times: times(kinds, |kind, name| number(of(kind), name)),
            client_cpu_us: cpu("client_cpu_s"),
            server_cpu_us: cpu("server_cpu_s"),
        })
    }

    fn ycsb(&self, letter: &str, seconds: u64, warmup_s: u64) -> Result<Value, Failure> {
        let mut command = Command::new("taskset");
        command.current_dir(root()).args(["-c", CLIENT_CORES]).arg(root().join("lab/peers/ycsb"));
        let words = [
            ("--rows", ROWS.to_string()),
            ("--threads", UNDER_WAY.to_string()),
            ("--seconds", seconds.to_string()),
            ("--warmup", warmup_s.to_string()),
            ("--port", self.server.port.to_string()),
            ("--server-pid", self.server.process_id.to_string()),
        ];
        command.args(["run", letter]);
        words.iter().for_each(|(name, value)| _ = command.args([*name, value]));
        Ok(serde_json::from_str(&output(&mut command)?)?)
    }

    fn by_lab(&self, letter: &str, kinds: &[&str], tally: &mut Tally) -> Result<Found, Failure> {
        let measured = self.load(letter).has_rows().run()?;
        *tally += if measured.failed() == 0 { Tally::PASS } else { Tally::FAIL };
        if measured.failed() > 0 {
            complain!("workload {letter}: {} failed: {}", measured.failed(), measured.faults());
        }
        Ok(Found {
            rate: measured.rate(),
            times: times(kinds, |kind, name| measured.service_us_of(kind, name)),
            client_cpu_us: measured.client_cpu_us(),
            server_cpu_us: measured.server_cpu_us(),
        })
    }

    fn load(&self, letter: &str) -> Load {
        Load::new(&format!("ycsb-{letter}"), &self.server.address(), Pace::InFlight(UNDER_WAY))
            .with("rows", ROWS)
            .with("connections", 1)
            .with("seconds", self.seconds)
            .with("warmup", 5)
            .served_by(&[self.server.process_id])
            .on_cores(CLIENT_CORES)
    }
}

/// Percentiles of each kind, in milliseconds; `us_of` has them in microseconds.
fn times(kinds: &[&str], us_of: impl Fn(&str, &str) -> f64) -> Vec<(String, f64)> {
    let of = |kind: &&str| {
        ["p50", "p99"].map(|name| (format!("{kind} {name}"), us_of(kind, &format!("{name}_us")) / 1e3))
    };
    kinds.iter().flat_map(of).collect()
}

/// The lab's means to those of YCSB.
fn ratios_of(ycsb: &[Found], lab: &[Found]) -> Vec<(String, f64)> {
    let mean = |all: &[Found], figure: &dyn Fn(&Found) -> f64| {
        all.iter().map(figure).sum::<f64>() / all.len() as f64
    };
    let ratio = |figure: &dyn Fn(&Found) -> f64| mean(lab, figure) / mean(ycsb, figure);
    let mut ratios = vec![("operations/s".to_owned(), ratio(&|found| found.rate))];
    for (place, (name, _)) in ycsb[0].times.iter().enumerate() {
        ratios.push((name.clone(), ratio(&|found| found.times[place].1)));
    }
    ratios.push(("server CPU/operation".to_owned(), ratio(&|found| found.server_cpu_us)));
    ratios.push(("client CPU/operation".to_owned(), ratio(&|found| found.client_cpu_us)));
    ratios
}

/// Rates, and what the server took for an operation.
fn shown(found: &[Found]) -> String {
    let each = |found: &Found| format!("{:.0}/s at {:.1} µs", found.rate, found.server_cpu_us);
    found.iter().map(each).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rate: f64, read_p50: f64) -> Found {
        let times = times(&["read"], |_, name| if name == "p50_us" { read_p50 * 1e3 } else { 5e3 });
        Found { rate, times, client_cpu_us: 10.0, server_cpu_us: 40.0 }
    }

    #[test]
    fn ratios_are_of_the_means_of_a_block() {
        let ycsb = [found(100.0, 1.0), found(80.0, 3.0)];
        let ratios = ratios_of(&ycsb, &[found(95.0, 2.0), found(85.0, 3.0)]);
        let known: Vec<(&str, f64)> = ratios.iter().map(|(name, ratio)| (name.as_str(), *ratio)).collect();
        let cpu = [("server CPU/operation", 1.0), ("client CPU/operation", 1.0)];
        let expected = [("operations/s", 1.0), ("read p50", 1.25), ("read p99", 1.0), cpu[0], cpu[1]];
        assert_eq!(known, expected);
    }
}
