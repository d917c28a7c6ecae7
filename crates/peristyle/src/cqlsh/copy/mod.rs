//! `COPY`: a table to a CSV file and back, in cqlsh's dialect.
//!
//! What goes out comes in again as the same rows: numbers are written in full (cqlsh rounds floats),
//! an empty text is told from null by its quotes. One connection, many requests in flight.

mod command;
mod export;
mod import;
mod options;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::shell::{Shell, ShellError};
use command::{CopyCommand, Direction};

/// Runs the command as it was typed.
pub(crate) fn run(shell: &mut Shell, text: &str) -> Result<(), ShellError> {
    let command = command::parse(text).map_err(ShellError::Command)?;
    match command.direction {
        Direction::To => export::run(shell, &command),
        Direction::From => import::run(shell, &command),
    }
}

/// Rows copied, for the eye.
struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// A bar over a known amount of bytes, or else a counter of rows.
    fn new(byte_count: Option<u64>) -> Progress {
        let bar = match byte_count {
            _ if !std::io::stderr().is_terminal() => ProgressBar::hidden(),
            Some(bytes) => ProgressBar::new(bytes),
            None => ProgressBar::new_spinner(),
        };
        let template = match byte_count {
            Some(_) => "{bar:40} {percent}%  {msg}  {eta}",
            None => "{spinner} {msg}  {elapsed}",
        };
        // The templates are ours and well-formed.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, started: Instant::now() }
    }

    fn update(&self, rows: u64, bytes: Option<u64>) {
        let rate = rows as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_message(format!("{rows} rows, {rate:.0} rows/s"));
        if let Some(bytes) = bytes {
            self.bar.set_position(bytes);
        }
    }

    /// Takes the bar away; the time it took.
    fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}

/// `1 minute and 2.345 seconds`, as cqlsh tells it.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match (seconds / 60.0) as u64 {
        0 => format!("{seconds:.3} seconds"),
        minutes => {
            let plural = if minutes == 1 { "minute" } else { "minutes" };
            format!("{minutes} {plural} and {:.3} seconds", seconds % 60.0)
        }
    }
}

/// `ks.t` or `t`, as it goes into a statement.
fn table_name(command: &CopyCommand) -> String {
    match &command.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", command.table),
        None => command.table.clone(),
    }
}
