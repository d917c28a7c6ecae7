//! `cargo xtask overload`: what the server does with more than it can do.
//!
//! *The curve*: saturation is measured by a closed loop, then an open loop offers half of it, once, twice
//! and four times as much, and every request ends as good (answered within its deadline), refused
//! (`Overloaded`), timed out, or not sent (the server takes no more). Past saturation the good ones ought
//! to stay what they were. Server and clients get cores of their own, so that the load cannot starve what
//! it measures. (Others' work can: how long either waited for its core is printed.)
//!
//! *The crowd*: thousands of connections, each with up to a thousand requests outstanding, that read their
//! answers or never do, and the server's resident memory beside its budget.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::measure::{
    Aim, Ceiling, RssWatch, build_load, files_max, load, loaded, mebibytes, number, rss_bytes, size_bytes,
    statements,
};
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

struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    deadline_ms: u64,
    /// Requests that each connection of the open loop may have outstanding: 1,024 as in the stock Java driver.
    streams: u16,
    /// The option of the node; its own default if empty.
    request_wait_max: String,
    memory: String,
    crowd_memory: String,
    crowd_connections: u64,
    crowd_window: u64,
    crowd_seconds: u64,
}

/// What came of one offered load.
struct Point {
    times: f64,
    result: Value,
}

impl Point {
    fn per_second(&self, name: &str) -> f64 {
        number(&self.result, name) / number(&self.result, "seconds")
    }

    /// The share of the time in which server or client waited for a core.
    fn starved(&self) -> f64 {
        self.per_second("server_waited_s").max(self.per_second("client_waited_s"))
    }

    /// Answered too late or never, and what could not be sent.
    fn timed_out_per_second(&self) -> f64 {
        self.per_second("late") + self.per_second("unsent")
    }
}

/// Runs the curve of each statement, then the crowds.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "seconds",
        "warmup",
        "deadline-ms",
        "streams",
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
        streams: arguments.value("streams", 1024)?,
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
    build_load()?;
    let mut tally = Tally::default();
    if wanted("curve") {
        for statement in &named {
            tally += curve(&plan, statement, &folder)?;
        }
    }
    if wanted("crowd") {
        for (statement, answers) in [("read", "read"), ("insert", "read"), ("read", "left")] {
            tally += crowd(&plan, statement, answers)?;
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
    fill(plan, &node, statement)?;
    let common = common(plan, &node, statement);
    let seconds = [format!("seconds={}", plan.seconds), format!("warmup={}", plan.warmup)];
    let mut words = vec!["drive".to_owned(), "connections=32".to_owned(), "window=32".to_owned()];
    words.extend(common.iter().chain(&seconds).cloned());
    let saturation = number(&on_cores(&cores, &words)?, "ops_per_s");
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
        let mut words = vec!["open".to_owned(), "connections=64".to_owned()];
        words.push(format!("rate={:.0}", saturation * times));
        words.push(format!("deadline_ms={}", plan.deadline_ms));
        words.push(format!("window={}", plan.streams));
        words.extend(common.iter().chain(&seconds).cloned());
        let point = Point { times: *times, result: on_cores(&cores, &words)? };
        println!("{}", line(&point));
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

fn fill(plan: &Plan, node: &Node, statement: &str) -> Result<(), Failure> {
    let words = [
        "fill".to_owned(),
        format!("port={}", node.port),
        format!("statement={statement}"),
        format!("rows={}", plan.rows),
    ];
    loaded(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(|_| ())
}

fn common(plan: &Plan, node: &Node, statement: &str) -> Vec<String> {
    vec![
        format!("port={}", node.port),
        format!("server={}", node.process_id()),
        format!("statement={statement}"),
        format!("rows={}", plan.rows),
    ]
}

/// The load program on the client's cores; its last line.
fn on_cores(cores: &Cores, words: &[String]) -> Result<Value, Failure> {
    let program = load(&[]);
    let mut command = Command::new("taskset");
    command.args(["-c", &cores.client]).arg(program.get_program()).args(words);
    let text = output(&mut command)?;
    Ok(serde_json::from_str(text.lines().last().unwrap_or_default())?)
}

fn line(point: &Point) -> String {
    format!(
        "{:>4}x {:>10.0} {:>10.0} {:>11.0} {:>10.0} {:>9.0} {:>8.1} {:>8.1} {:>9.0}% {:>9.0}%",
        point.times,
        point.per_second("offered"),
        point.per_second("good"),
        point.per_second("overloaded"),
        point.timed_out_per_second(),
        point.per_second("errors"),
        number(&point.result, "p50_us") / 1000.0,
        number(&point.result, "p99_us") / 1000.0,
        100.0 * point.per_second("client_cpu_s"),
        100.0 * point.starved(),
    )
}

/// The peak is the closed loop's rate, or more if a point has more.
fn judge(statement: &str, saturation: f64, points: &[Point]) -> Tally {
    let good = |point: &Point| point.per_second("good");
    let peak = points.iter().map(good).fold(saturation, f64::max);
    let mut tally = Tally::default();
    for point in points.iter().filter(|point| point.times >= 1.0) {
        let share = good(point) / peak;
        println!(
            "{statement} at {}x: {share:.2} of the peak's goodput ({})",
            point.times,
            GOODPUT.words(share, "")
        );
        if number(&point.result, "errors") + number(&point.result, "closed") > 0.0 {
            complain!("{}: errors or closed connections: {}", point.times, point.result);
            tally += Tally::FAIL;
        } else {
            tally += Tally::PASS;
        }
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
            point.per_second("offered"),
            point.per_second("good"),
            point.per_second("overloaded"),
            point.timed_out_per_second(),
            number(&point.result, "p50_us"),
            number(&point.result, "p99_us"),
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
            series("good", &|point| point.per_second("good")),
            series("Overloaded", &|point| point.per_second("overloaded")),
            series("timed out", &Point::timed_out_per_second),
        ],
    };
    let path = |ending: &str| -> PathBuf { folder.join(format!("overload-{statement}.{ending}")) };
    std::fs::write(path("csv"), csv)?;
    std::fs::write(path("svg"), plot.svg())?;
    println!("{}", path("svg").display());
    Ok(())
}

/// Many connections with many requests each, and the server's memory.
fn crowd(plan: &Plan, statement: &str, answers: &str) -> Result<Tally, Failure> {
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
    fill(plan, &node, statement)?;
    let watch = RssWatch::of(node.process_id());
    let mut words = common(plan, &node, statement);
    words.extend([
        format!("connections={}", plan.crowd_connections),
        format!("window={}", plan.crowd_window),
        format!("seconds={}", plan.crowd_seconds),
        format!("answers={answers}"),
        "warmup=0".to_owned(),
    ]);
    let words: Vec<&str> = ["drive"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let found = loaded(&words);
    let most = watch.most_bytes();
    let alive = statements(&node.address(), &["SELECT key FROM system.local".to_owned()]);
    drop(watch);
    drop(node);
    fresh_folder("overload")?;
    let budget = size_bytes(&plan.crowd_memory)? as f64;
    let (memory, mut tally) = MEMORY.judge(most as f64 / budget, "budgets");
    println!(
        "crowd of {} x {}, {statement}, answers {answers}: at most {:.0} MiB resident of {} ({memory})",
        plan.crowd_connections,
        plan.crowd_window,
        mebibytes(most),
        plan.crowd_memory
    );
    match found {
        Ok(found) => {
            println!("  {found}");
            if number(&found, "errors") + number(&found, "closed") > 0.0 {
                tally = Tally::FAIL;
            }
        }
        Err(failure) => {
            complain!("the load failed: {failure}");
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
    use serde_json::json;

    fn point(times: f64, good: u64, errors: u64) -> Point {
        let result = json!({"seconds": 2, "good": good, "errors": errors, "closed": 0});
        Point { times, result }
    }

    #[test]
    fn errors_fail_and_little_goodput_does_not() {
        let points = [point(1.0, 100, 0), point(2.0, 95, 1), point(4.0, 5, 0)];
        assert_eq!(judge("read", 0.0, &points), Tally { passed: 2, failed: 1 });
    }
}
