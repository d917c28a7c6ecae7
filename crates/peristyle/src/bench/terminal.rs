//! A run as the terminal shows it: one line that changes each second.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget};
use lab::{Plan, Progress, Repetition, Trial};

/// The line.
pub(super) struct Terminal {
    bar: ProgressBar,
}

impl Terminal {
    /// Hidden where nobody looks.
    pub(super) fn new() -> Terminal {
        let bar = ProgressBar::new_spinner();
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Terminal { bar }
    }

    /// How it goes.
    pub(super) fn show(&self, progress: &Progress) {
        let of = progress.length.map_or_else(String::new, |length| format!(" of {}", length.as_secs()));
        let recent = &progress.recent;
        let milliseconds = |quantile| recent.quantile_us(quantile) as f64 / 1000.0;
        self.bar.set_message(format!(
            "{:<8} {:>3}{of} s  {:>9}/s  p50 {:.2} ms  p99 {:.2} ms  max {:.1} ms  failed {}",
            progress.phase,
            progress.elapsed.as_secs(),
            recent.count(),
            milliseconds(0.5),
            milliseconds(0.99),
            recent.max_us() as f64 / 1000.0,
            progress.counts.1,
        ));
        self.bar.tick();
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Says how long the rows took.
pub(super) fn tell_load(plan: &Plan, load: &Repetition) {
    let (row_count, node) = (load.total().response.count(), plan.nodes.join(","));
    println!("loaded {row_count} rows by {node} in {:.1} s", load.seconds);
}

/// Says what came of a rate that was tried.
pub(super) fn tell_trial(trial: &Trial) {
    let Trial { rate, done, response, is_good } = trial;
    let verdict = if *is_good { "within the limit" } else { "too high" };
    println!(
        "  {rate:.0}/s: {done:.0}/s were done, p99 {:.2} ms: {verdict}",
        response.as_secs_f64() * 1000.0
    );
}
