//! Medians, aims, and what is printed and kept of them.

use serde_json::{Value, json};

use super::Plan;
use super::target::Measured;
use crate::measure::{Aim, median};
use crate::report::{Failure, Tally, complain};

/// One figure of ours and what it is held against.
pub(super) struct Line {
    /// Which table it stands in.
    pub(super) table: &'static str,
    pub(super) name: String,
    pub(super) ours: Side,
    pub(super) against: Option<Side>,
    pub(super) aim: Option<Aim>,
}

/// All rounds of one side.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) runs: Vec<Measured>,
}

impl Side {
    fn middle(&self, figure: impl Fn(&Measured) -> f64) -> f64 {
        median(self.runs.iter().map(figure))
    }

    fn cpu_us(&self) -> f64 {
        self.middle(|measured| measured.run.server_cpu_us())
    }

    /// `2.71 (2.71 2.69 2.80) | 1.2 / 3.4`: the median and its rounds, p50 and p99.
    fn cells(&self) -> String {
        let rounds: Vec<String> =
            self.runs.iter().map(|measured| format!("{:.2}", measured.run.server_cpu_us())).collect();
        let [p50, p99] =
            ["p50_us", "p99_us"].map(|name| self.middle(|measured| measured.run.response_ms(name)));
        format!("{:.2} ({}) | {p50:.1} / {p99:.1}", self.cpu_us(), rounds.join(" "))
    }

    fn kept(&self) -> Value {
        let runs: Vec<&Value> = self.runs.iter().map(|measured| measured.run.kept()).collect();
        json!({"name": self.name, "cpu_us": self.cpu_us(), "runs": runs})
    }
}

impl Line {
    /// Against Cassandra how many times less, against ourselves how many times as much.
    fn ratio(&self) -> Option<f64> {
        let (ours, against) = (self.ours.cpu_us(), self.against.as_ref()?.cpu_us());
        Some(match self.aim {
            Some(Aim::AtLeast(_)) => against / ours,
            _ => ours / against,
        })
    }

    fn verdict(&self) -> String {
        let (Some(ratio), Some(aim)) = (self.ratio(), self.aim) else { return " | ".to_owned() };
        let (bound, is_met) = match aim {
            Aim::AtLeast(least) => (format!("at least {least}"), ratio >= least),
            Aim::AtMost(most) => (format!("at most {most}"), ratio <= most),
        };
        format!("{ratio:.2} | {bound}: {}", if is_met { "met" } else { "**not met**" })
    }

    fn print(&self) {
        let against = self.against.as_ref();
        let (name, cells) =
            against.map_or((" ".to_owned(), " | ".to_owned()), |side| (side.name.clone(), side.cells()));
        println!("| {} | {} | {name} | {cells} | {} |", self.name, self.ours.cells(), self.verdict());
    }

    /// For the file.
    pub(super) fn kept(&self) -> Value {
        json!({
            "table": self.table,
            "name": self.name,
            "ours": self.ours.kept(),
            "against": self.against.as_ref().map(Side::kept),
            "ratio": self.ratio(),
            "verdict": self.verdict(),
        })
    }
}

/// Tells which round begins, and how busy the machine was in the minutes before.
pub(super) fn announce(part: &str, round: u64, plan: &Plan) -> Result<(), Failure> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    println!("=== {part}: round {round} of {}, load average {}", plan.rounds, load.join(" "));
    Ok(())
}

/// Prints the tables; one count for each line.
pub(super) fn report(lines: &[Line]) -> Tally {
    let (mut tally, mut table) = (Tally::default(), "");
    for line in lines {
        if line.table != table {
            table = line.table;
            println!(
                "| {table} | ours (rounds) | p50 / p99 | against | (rounds) | p50 / p99 | ratio | aim |"
            );
            println!("|---|---|---|---|---|---|---|---|");
        }
        line.print();
        let is_sound = !line.ours.runs.is_empty() && line.ours.runs.iter().all(Measured::is_sound);
        if !is_sound {
            complain!("ring-cost: operations failed: {}", line.name);
        }
        tally += if is_sound { Tally::PASS } else { Tally::FAIL };
    }
    tally
}
