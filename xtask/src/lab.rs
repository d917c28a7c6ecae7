//! Load for the commands that measure: `peristyle bench run`, as users have it, and its figures.
//!
//! One engine measures for developers and for users. Its workloads are YCSB's, and texts of our own in
//! `xtask/workloads`. It is a program of its own, so that a server's CPU time has nothing of the client's, and so that
//! `xtask` builds in a moment.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::node::binary;
use crate::process::root;
use crate::report::Failure;

/// Weights of a workload's operations, by the names of its settings.
pub(crate) type Mix = &'static [(&'static str, u64)];

/// How operations are begun.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Always so many under way, over all connections.
    InFlight(u64),
    /// So many each second, whether others are answered or not.
    Rate(f64),
}

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    workload: String,
    /// `HOST:PORT` of nodes.
    target: String,
    process_ids: Vec<u32>,
    pace: Pace,
    /// `--NAME VALUE` for the options that are not said here.
    options: Vec<(&'static str, String)>,
    has_rows: bool,
    /// The cores of the client, as `taskset` wants them.
    cores: Option<String>,
}

impl Load {
    /// A workload of `xtask/workloads`, or a name of `bench list`, on a server whose rows are written first.
    pub(crate) fn new(workload: &str, target: &str, pace: Pace) -> Load {
        let own = root().join("xtask/workloads").join(workload).with_extension("toml");
        let workload = if own.exists() { own.display().to_string() } else { workload.to_owned() };
        let options = vec![("repetitions", "1".to_owned()), ("errors-max", "1".to_owned())];
        let target = target.to_owned();
        Load { workload, target, process_ids: Vec::new(), pace, options, has_rows: false, cores: None }
            .with("consistency", "ONE")
    }

    /// An option of `bench run`, once more than before or anew.
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Load {
        if name != "set" {
            self.options.retain(|(other, _)| *other != name);
        }
        self.options.push((name, value.to_string()));
        self
    }

    /// A setting of the workload.
    pub(crate) fn set(self, name: &str, value: impl ToString) -> Load {
        self.with("set", format!("{name}={}", value.to_string()))
    }

    /// Of a workload that has weights, each named by its setting, these alone; `reads` are what it does otherwise.
    pub(crate) fn mix(self, weights: &[(&str, u64)]) -> Load {
        weights.iter().fold(self.set("reads", 0), |load, (name, weight)| load.set(name, weight))
    }

    /// Processes whose CPU time is taken.
    pub(crate) fn served_by(self, process_ids: &[u32]) -> Load {
        Load { process_ids: process_ids.to_vec(), ..self }
    }

    /// The rows are there.
    pub(crate) fn has_rows(self) -> Load {
        Load { has_rows: true, ..self }
    }

    /// Another server.
    pub(crate) fn on(self, target: &str) -> Load {
        Load { target: target.to_owned(), ..self }
    }

    /// Another pace.
    pub(crate) fn at(self, pace: Pace) -> Load {
        Load { pace, ..self }
    }

    /// The client runs on these cores only.
    pub(crate) fn on_cores(self, cores: &str) -> Load {
        Load { cores: Some(cores.to_owned()), ..self }
    }

    /// Only writes the rows: what it took.
    pub(crate) fn fill(self) -> Result<Measured, Failure> {
        // What is measured behind it is as little as can be.
        let measured = self.at(Pace::InFlight(1)).with("seconds", 0.01).with("warmup", 0).run()?;
        match &measured.0["load"] {
            Value::Null => Err(Failure::new("nothing was loaded")),
            load => Ok(Measured(load.clone())),
        }
    }

    /// Writes the rows if they are not there, and measures once.
    pub(crate) fn run(&self) -> Result<Measured, Failure> {
        let folder = folder();
        let mut command = self.command(&folder)?;
        let told = command.output().map_err(|error| Failure::new(format!("run {command:?}: {error}")))?;
        // It fails, too, when answers were wrong: then its figures say so.
        let summary = std::fs::read_to_string(folder.join("summary.json")).map_err(|_| {
            let text = [told.stdout, told.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            Failure::new(format!("{command:?}: {}\n{}{}", told.status, text[0], text[1]))
        })?;
        std::fs::remove_dir_all(&folder)?;
        Measured::read(&summary)
    }

    fn command(&self, folder: &std::path::Path) -> Result<Command, Failure> {
        let binary = binary()?;
        let mut command = match &self.cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", cores]).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.args(["bench", "run", &self.workload, "--target", &self.target]);
        match self.pace {
            Pace::InFlight(count) => command.args(["--in-flight", &count.to_string()]),
            Pace::Rate(rate) => command.args(["--rate", &rate.to_string()]),
        };
        for (name, value) in &self.options {
            command.arg(format!("--{name}")).arg(value);
        }
        if self.has_rows {
            command.arg("--no-load");
        }
        if !self.process_ids.is_empty() {
            let ids: Vec<String> = self.process_ids.iter().map(u32::to_string).collect();
            command.args(["--server-pid", &ids.join(",")]);
        }
        command.arg("--out").arg(folder);
        Ok(command)
    }
}

/// One that is not there.
fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    root().join(format!("target/xtask/lab-{}-{number}", std::process::id()))
}

/// What was measured once, or what a load took.
#[derive(Clone, Debug)]
pub(crate) struct Measured(Value);

impl Measured {
    /// Takes it from `summary.json`.
    fn read(summary: &str) -> Result<Measured, Failure> {
        let mut summary: Value = serde_json::from_str(summary)?;
        let (load, kinds) = (summary["load"].take(), summary["kinds"].take());
        match summary["repetitions"].get_mut(0).map(Value::take) {
            Some(Value::Object(mut repetition)) => {
                repetition.insert("load".to_owned(), load);
                repetition.insert("kinds".to_owned(), kinds);
                Ok(Measured(Value::Object(repetition)))
            }
            _ => Err(Failure::new("a run without a repetition")),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(value: Value) -> Measured {
        Measured(value)
    }

    /// All of it, to be kept.
    pub(crate) fn kept(&self) -> &Value {
        &self.0
    }

    fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }

    /// How long was measured.
    pub(crate) fn seconds(&self) -> f64 {
        self.number("seconds")
    }

    /// Operations that went well.
    pub(crate) fn count(&self) -> f64 {
        self.number("count")
    }

    /// Those of each second.
    pub(crate) fn rate(&self) -> f64 {
        self.number("rate")
    }

    /// Operations that failed, were answered wrongly or had no end.
    pub(crate) fn failed(&self) -> u64 {
        let names = ["error_count", "wrong_count", "endless_count"];
        names.iter().filter_map(|name| self.0[*name].as_u64()).sum()
    }

    /// Answered `Overloaded`; servers say so in their messages.
    pub(crate) fn overloaded(&self) -> u64 {
        let errors = self.0["errors"].as_object().into_iter().flatten();
        errors.filter(|(text, _)| text.contains("overloaded")).filter_map(|(_, count)| count.as_u64()).sum()
    }

    /// Answered with another error, or with something wrong.
    pub(crate) fn errors(&self) -> u64 {
        let all = ["errors", "wrongs"].map(|name| self.0[name].as_object().into_iter().flatten());
        let all: u64 = all.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
        all - self.overloaded()
    }

    /// What errors and wrong answers said.
    pub(crate) fn faults(&self) -> String {
        format!("{} {}", self.0["errors"], self.0["wrongs"])
    }

    /// Microseconds of the servers' CPU for an operation.
    pub(crate) fn server_cpu_us(&self) -> f64 {
        self.number("server_cpu_s") * 1e6 / self.count()
    }

    /// The same of the client's.
    pub(crate) fn client_cpu_us(&self) -> f64 {
        self.number("client_cpu_s") * 1e6 / self.count()
    }

    /// Cores that the client had at work.
    pub(crate) fn client_cores(&self) -> f64 {
        self.number("client_cpu_s") / self.seconds()
    }

    /// The part of the time for which it waited for one.
    pub(crate) fn client_waited(&self) -> f64 {
        self.number("client_waited_s") / self.seconds()
    }

    /// Memory that the servers' processes had at the end; 0 if it was not taken.
    pub(crate) fn server_resident_bytes(&self) -> u64 {
        self.0["server_resident_bytes"].as_u64().unwrap_or(0)
    }

    /// Milliseconds from when operations were due, by the name of a percentile: `p99_us`.
    pub(crate) fn response_ms(&self, name: &str) -> f64 {
        self.0["response"][name].as_f64().unwrap_or(f64::NAN) / 1e3
    }

    /// Milliseconds from when they were sent.
    pub(crate) fn service_ms(&self, name: &str) -> f64 {
        self.0["service"][name].as_f64().unwrap_or(f64::NAN) / 1e3
    }

    /// Microseconds from when operations of a kind were sent, by the name of a percentile.
    pub(crate) fn service_us_of(&self, kind: &str, name: &str) -> f64 {
        let mut kinds = self.0["kinds"].as_array().into_iter().flatten();
        let of = kinds.find(|of| of["kind"] == kind);
        of.and_then(|of| of["service"][name].as_f64()).unwrap_or(f64::NAN)
    }

    /// The part of those that went well that was answered so soon after it was sent.
    ///
    /// # Errors
    /// The time is none of 1, 2 and 5 of a power of ten.
    pub(crate) fn served_within(&self, milliseconds: u64) -> Result<f64, Failure> {
        let within = &self.0["service"]["within_us"][(milliseconds * 1000).to_string()];
        let count = within
            .as_f64()
            .ok_or_else(|| Failure::new(format!("{milliseconds} ms are no 1, 2, 5, 10, …")))?;
        Ok(if self.count() > 0.0 { count / self.count() } else { 0.0 })
    }

    /// Each whole second of the measurement, by when operations ended.
    pub(crate) fn by_second(&self) -> Vec<Instant> {
        let seconds = self.0["by_second"].as_array().into_iter().flatten();
        let instant = |second: &Value| Instant {
            count: second["count"].as_u64().unwrap_or(0),
            p99_ms: second["p99_us"].as_f64().unwrap_or(f64::NAN) / 1e3,
        };
        let mut seconds: Vec<Instant> = seconds.map(instant).collect();
        seconds.resize(self.seconds() as usize, Instant { count: 0, p99_ms: 0.0 });
        seconds
    }
}

/// What a second brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Instant {
    /// Operations that ended well.
    pub(crate) count: u64,
    /// Of their response times.
    pub(crate) p99_ms: f64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_is_read() {
        let repetition = json!({
            "seconds": 2.5, "rate": 40.0, "count": 100, "server_cpu_s": 0.5, "by_second": [{"count": 60, "p99_us": 1500}],
            "error_count": 7, "wrong_count": 1, "endless_count": 2,
            "errors": {"Server is in overloaded state: too late": 4, "timed out": 3}, "wrongs": {"no row": 1},
            "service": {"p99_us": 1500, "within_us": {"1000": 50, "2000": 100}},
        });
        let summary = json!({"load": {"rate": 9.0}, "repetitions": [repetition]});
        let measured = Measured::read(&summary.to_string()).unwrap();
        assert_eq!((measured.rate(), measured.server_cpu_us()), (40.0, 5000.0));
        assert_eq!((measured.failed(), measured.overloaded(), measured.errors()), (10, 4, 4));
        assert_eq!(measured.service_ms("p99_us"), 1.5);
        let second = |count, p99_ms| Instant { count, p99_ms };
        assert_eq!(measured.by_second(), [second(60, 1.5), second(0, 0.0)]);
        assert_eq!(measured.served_within(1).unwrap(), 0.5);
        assert!(measured.served_within(3).is_err());
        assert_eq!(measured.0["load"]["rate"], 9.0);
        assert!(Measured::read("{}").is_err());
    }
}
