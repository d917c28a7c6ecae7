//! `cargo xtask overload`: what the server does with more than it can do.
//!
//! *The curve*: saturation is measured by a closed loop, then an open loop offers half of it, once, twice
//! and four times as much, and every request ends as good (answered within its deadline), refused
//! (`Overloaded`), or timed out. The client keeps what it could not send, and sends it when a stream comes
//! free; users would have given up by then, so a request's time runs from when it was sent, and what was due
//! and did not end counts as timed out. Past saturation the good ones ought to stay what they were. Server and
//! clients get cores of their own, so that the load cannot starve what it measures. (Others' work can: how long
//! the client waited for its core is printed.)
//!
//! *The crowd*: thousands of connections, each with up to a thousand requests outstanding, that read their
//! answers or never do, and the server's resident memory beside its budget.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::crowd::{Asks, Crowd};
use crate::kernel::{files_max, rss_bytes};
use crate::lab::{Load, Measured, Mix, Pace};
use crate::measure::{Aim, Ceiling, RssWatch, mebibytes, size_bytes, statements};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::output;
use crate::plot::{Plot, Series};
use crate::process::root;
use crate::report::{Failure, Tally, complain};

/// Offered load, in saturations.
const TIMES: &[f64] = &[0.5, 1.0, 2.0, 4.0];
/// The share of the peak's goodput that is to be left.
const GOODPUT: Aim = Aim::AtLeast(0.9);
/// Resident memory in budgets.
const MEMORY: Ceiling = Ceiling { most: 1.5, aim: 1.0 };
/// Sockets beside those of the crowd: the judge's own, the management port's.
const SOCKETS_SPARE: u64 = 100;
/// Connections of the open loop, each with 1,024 streams as in the stock Java driver.
const CONNECTIONS: u64 = 64;
const KEYSPACE: &str = "overload";
/// What waits at the client is not given up while it is measured.
const GIVEN_UP_AFTER: &str = "3600s";
/// Statements of the curve: what they are of the workload `rows`.
const STATEMENTS: [(&str, Mix); 4] = [
    ("mixed", &[("reads", 1), ("updates", 1)]),
    ("read", &[("reads", 1)]),
    ("update", &[("updates", 1)]),
    ("insert", &[("inserts", 1)]),
];

struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    deadline_ms: u64,
    /// The option of the node; its own default if empty.
    request_wait_max: String,
    memory: String,
    crowd_memory: String,
    crowd_connections: u64,
    crowd_window: u64,
    crowd_seconds: u64,
}

/// What came of one offered load, each second.
#[derive(Clone, Copy)]
struct Point {
    times: f64,
    offered: f64,
    good: f64,
    overloaded: f64,
    errors: f64,
    p50_ms: f64,
    p99_ms: f64,
    client_cores: f64,
    /// The part of the time in which the client waited for a core.
    client_waited: f64,
}

impl Point {
    fn of(plan: &Plan, times: f64, offered: f64, measured: &Measured) -> Result<Point, Failure> {
        let per_second = |count: u64| count as f64 / measured.seconds();
        Ok(Point {
            times,
            offered,
            good: measured.rate() * measured.served_within(plan.deadline_ms)?,
            overloaded: per_second(measured.overloaded()),
            errors: per_second(measured.errors()),
            p50_ms: measured.service_ms("p50_us"),
            p99_ms: measured.service_ms("p99_us"),
            client_cores: measured.client_cores(),
            client_waited: measured.client_waited(),
        })
    }

    /// Answered too late or never, and what could not be sent.
    fn timed_out(&self) -> f64 {
        (self.offered - self.good - self.overloaded - self.errors).max(0.0)
    }
}

/// Runs the curve of each statement, then the crowds.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "seconds",
        "warmup",
        "deadline-ms",
        "request-wait-max",
        "memory",
        "crowd-memory",
        "connections",
        "window",
        "crowd-seconds",
        "statements",
        "only",
        "out",
        "short",
    ])?;
    let short = arguments.flag("short");
    let pick = |long: u64, brief: u64| if short { brief } else { long };
    let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
    let plan = Plan {
        rows: arguments.value("rows", pick(100_000, 10_000))?,
        seconds: arguments.value("seconds", pick(15, 3))?,
        warmup: arguments.value("warmup", pick(5, 2))?,
        deadline_ms: arguments.value("deadline-ms", 1000)?,
        request_wait_max: text("request-wait-max", ""),
        memory: text("memory", "1GiB"),
        crowd_memory: text("crowd-memory", "512MiB"),
        crowd_connections: arguments.value("connections", pick(10_000, 500))?,
        crowd_window: arguments.value("window", 1000)?,
        crowd_seconds: arguments.value("crowd-seconds", pick(20, 4))?,
    };
    let folder = arguments.text("out").map(|path| root().join(path));
    let folder = folder.map_or_else(|| fresh_folder("overload-figures"), Ok)?;
    std::fs::create_dir_all(&folder)?;
    let mut named = arguments.list("statements");
    if named.is_empty() {
        named = if short { vec!["mixed".into()] } else { vec!["mixed".into(), "insert".into()] };
    }
    let wanted = |part| arguments.picks("only", part);
    let mut tally = Tally::default();
    if wanted("curve") {
        for statement in &named {
            tally += curve(&plan, statement, &folder)?;
        }
    }
    if wanted("crowd") {
        for (asks, takes_answers) in [(Asks::Reads, true), (Asks::Writes, true), (Asks::Reads, false)] {
            tally += crowd(&plan, asks, takes_answers)?;
        }
    }
    Ok(tally)
}

/// Half of the cores for the server, half for the client, as `taskset` wants them.
struct Cores {
    server: String,
    client: String,
    half: usize,
}

impl Cores {
    fn of_machine() -> Cores {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let half = (count / 2).max(1);
        let last = count - 1;
        let client = if count > 1 { format!("{half}-{last}") } else { "0".to_owned() };
        Cores { server: format!("0-{}", half - 1), client, half }
    }
}

fn curve(plan: &Plan, statement: &str, folder: &Path) -> Result<Tally, Failure> {
    let cores = Cores::of_machine();
    let shards = cores.half.to_string();
    let mut words = vec!["--commitlog-sync", "periodic", "--memory", &plan.memory, "--shards", &shards];
    if !plan.request_wait_max.is_empty() {
        words.extend(["--request-wait-max", &plan.request_wait_max]);
    }
    let data = fresh_folder("overload")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    let pid = node.process_id().to_string();
    output(Command::new("taskset").args(["-a", "-c", "-p", &cores.server, &pid]))?;
    let load = load(plan, &node, statement)?.on_cores(&cores.client);
    let saturation = load.clone().with("connections", 32).run()?.rate();
    println!("{statement}: saturated at {saturation:.0} a second on cores {}", cores.server);
    println!(
        "{:>5} {:>10} {:>10} {:>11} {:>10} {:>9} {:>8} {:>8} {:>10} {:>10}",
        "times",
        "offered/s",
        "good/s",
        "overloaded",
        "timed out",
        "errors",
        "p50 ms",
        "p99 ms",
        "client CPU",
        "no core"
    );
    let mut points = Vec::new();
    for times in TIMES {
        let offered = (saturation * times).round();
        let measured = load.clone().has_rows().at(Pace::Rate(offered)).run()?;
        let point = Point::of(plan, *times, offered, &measured)?;
        println!("{}", line(&point));
        if point.errors > 0.0 {
            complain!("{statement} at {times}x: {}", measured.faults());
        }
        points.push(point);
    }
    let alive = statements(&node.address(), &["SELECT key FROM system.local".to_owned()]);
    let watched = rss_bytes(node.process_id())?;
    drop(node);
    fresh_folder("overload")?;
    alive?;
    keep(statement, saturation, &points, folder)?;
    println!("resident at the end: {:.0} MiB of {}", mebibytes(watched), plan.memory);
    Ok(judge(statement, saturation, &points))
}

/// As many under way as a closed loop needs to saturate a server, over rows that are written first.
fn load(plan: &Plan, node: &Node, statement: &str) -> Result<Load, Failure> {
    let mix = STATEMENTS.iter().find(|(name, _)| *name == statement).map(|(_, mix)| *mix);
    let mix = mix.ok_or_else(|| Failure::new(format!("there is no statement '{statement}'")))?;
    let load = Load::new("rows", &node.address(), Pace::InFlight(1024)).served_by(&[node.process_id()]);
    let load = load.mix(mix).with("keyspace", KEYSPACE).with("rows", plan.rows);
    Ok(load
        .with("connections", CONNECTIONS)
        .with("timeout", GIVEN_UP_AFTER)
        .with("seconds", plan.seconds)
        .with("warmup", plan.warmup))
}

fn line(point: &Point) -> String {
    format!(
        "{:>4}x {:>10.0} {:>10.0} {:>11.0} {:>10.0} {:>9.0} {:>8.1} {:>8.1} {:>9.0}% {:>9.0}%",
        point.times,
        point.offered,
        point.good,
        point.overloaded,
        point.timed_out(),
        point.errors,
        point.p50_ms,
        point.p99_ms,
        100.0 * point.client_cores,
        100.0 * point.client_waited,
    )
}

/// The peak is the closed loop's rate, or more if a point has more.
fn judge(statement: &str, saturation: f64, points: &[Point]) -> Tally {
    let peak = points.iter().map(|point| point.good).fold(saturation, f64::max);
    let mut tally = Tally::default();
    for point in points.iter().filter(|point| point.times >= 1.0) {
        let share = point.good / peak;
        println!(
            "{statement} at {}x: {share:.2} of the peak's goodput ({})",
            point.times,
            GOODPUT.words(share, "")
        );
        tally += if point.errors > 0.0 { Tally::FAIL } else { Tally::PASS };
    }
    tally
}

/// Writes the points as CSV and as a plot.
fn keep(statement: &str, saturation: f64, points: &[Point], folder: &Path) -> Result<(), Failure> {
    let mut csv =
        "times,offered_per_s,good_per_s,overloaded_per_s,timed_out_per_s,p50_us,p99_us\n".to_owned();
    for point in points {
        let _ = writeln!(
            csv,
            "{},{:.0},{:.0},{:.0},{:.0},{:.0},{:.0}",
            point.times,
            point.offered,
            point.good,
            point.overloaded,
            point.timed_out(),
            point.p50_ms * 1e3,
            point.p99_ms * 1e3,
        );
    }
    let series = |name: &str, figure: &dyn Fn(&Point) -> f64| Series {
        name: name.to_owned(),
        points: points.iter().map(|point| (point.times, figure(point))).collect(),
    };
    let plot = Plot {
        title: format!("{statement}: what came of the load offered, saturation at {saturation:.0} a second"),
        x_title: "offered load, in saturations".to_owned(),
        y_title: "requests a second".to_owned(),
        series: vec![
            series("good", &|point| point.good),
            series("Overloaded", &|point| point.overloaded),
            series("timed out", &Point::timed_out),
        ],
    };
    let path = |ending: &str| -> PathBuf { folder.join(format!("overload-{statement}.{ending}")) };
    std::fs::write(path("csv"), csv)?;
    std::fs::write(path("svg"), plot.svg())?;
    println!("{}", path("svg").display());
    Ok(())
}

/// Many connections with many requests each, and the server's memory.
fn crowd(plan: &Plan, asks: Asks, takes_answers: bool) -> Result<Tally, Failure> {
    let sockets = plan.crowd_connections + SOCKETS_SPARE;
    if files_max()? < sockets {
        return Err(Failure::new(format!("{sockets} open files are needed: ulimit -n {sockets}")));
    }
    let sockets_max = sockets.to_string();
    // All of the crowd comes from one address.
    let mut words = vec!["--commitlog-sync", "periodic", "--memory", &plan.crowd_memory];
    words.extend(["--connections-max", &sockets_max, "--connections-max-per-address", &sockets_max]);
    let data = fresh_folder("overload")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    load(plan, &node, "read")?.fill()?;
    let watch = RssWatch::of(node.process_id());
    let crowd = Crowd {
        address: &node.address(),
        keyspace: KEYSPACE,
        row_count: plan.rows,
        connections: plan.crowd_connections,
        window: plan.crowd_window,
        asks,
        takes_answers,
    };
    let end = Instant::now() + Duration::from_secs(plan.crowd_seconds);
    let found = crowd.act(|| Instant::now() >= end);
    let most = watch.most_bytes();
    let alive = statements(&node.address(), &["SELECT key FROM system.local".to_owned()]);
    drop(watch);
    drop(node);
    fresh_folder("overload")?;
    let budget = size_bytes(&plan.crowd_memory)? as f64;
    let (memory, mut tally) = MEMORY.judge(most as f64 / budget, "budgets");
    println!(
        "crowd of {} x {}, {asks:?}, answers {}: at most {:.0} MiB resident of {} ({memory})",
        plan.crowd_connections,
        plan.crowd_window,
        if takes_answers { "taken" } else { "left" },
        mebibytes(most),
        plan.crowd_memory
    );
    let is_well = |outcome: &crate::crowd::Outcome| outcome.errors + outcome.closed == 0;
    if let Ok(found) = &found {
        println!("  {found:?}");
    }
    match found {
        Ok(found) if is_well(&found) => {}
        Ok(found) => {
            complain!("{} errors, {} closed: {:?}", found.errors, found.closed, found.first_error);
            tally = Tally::FAIL;
        }
        Err(failure) => {
            complain!("the crowd failed: {failure}");
            tally = Tally::FAIL;
        }
    }
    if let Err(failure) = alive {
        complain!("afterwards the server does not answer: {failure}");
        tally = Tally::FAIL;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(times: f64, good: f64, errors: f64) -> Point {
        Point {
            times,
            offered: 100.0,
            good,
            overloaded: 0.0,
            errors,
            p50_ms: 1.0,
            p99_ms: 1.0,
            client_cores: 0.5,
            client_waited: 0.0,
        }
    }

    #[test]
    fn errors_fail_and_little_goodput_does_not() {
        let points = [point(1.0, 100.0, 0.0), point(2.0, 95.0, 1.0), point(4.0, 5.0, 0.0)];
        assert_eq!(judge("read", 0.0, &points), Tally { passed: 2, failed: 1 });
        assert_eq!(points[1].timed_out(), 4.0);
    }
}
