//! Running other programs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::report::{Failure, Tally, complain};

/// So often it is looked whether a program has ended.
const POLL: Duration = Duration::from_millis(20);

/// The repository's root folder.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A program that works beside us, and ends with us at the latest.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Running, Failure> {
        Ok(Running(command.spawn()?))
    }

    /// Starts it, and waits until it says that it is ready. What it says after that comes to our output.
    pub(crate) fn start_ready(command: &mut Command) -> Result<Running, Failure> {
        let mut running = Running::start(command.stdout(Stdio::piped()))?;
        let told = running.0.stdout.take().ok_or_else(|| Failure::new("a program without output"))?;
        let mut lines = BufReader::new(told).lines();
        let is_ready = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line == "ready");
        if !lines.any(|line| is_ready(&line)) {
            return Err(Failure::new("it has ended before it was ready"));
        }
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| println!("{line}")));
        Ok(running)
    }

    /// Waits so long, or until it has ended: how it has.
    pub(crate) fn ended_within(&mut self, time: Duration) -> Result<Option<ExitStatus>, Failure> {
        let end = Instant::now() + time;
        loop {
            let ended = self.0.try_wait()?;
            if ended.is_some() || Instant::now() >= end {
                return Ok(ended);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has mostly ended by itself; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of a program that has worked against a server whose log is there.
pub(crate) fn ended_well(status: ExitStatus, log: &Path) -> Result<(), Failure> {
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{status}; the server's log: {}", log.display()))),
    }
}

/// Runs a program with its output on ours; one pass or one failure by its exit code.
pub(crate) fn step(title: &str, command: &mut Command) -> Result<Tally, Failure> {
    println!("--- {title}");
    let status = command.status().map_err(|error| Failure::new(format!("run {command:?}: {error}")))?;
    Ok(if status.success() {
        Tally::PASS
    } else {
        complain!("{title}: {status}");
        Tally::FAIL
    })
}

/// Runs `cargo test …`, passing its output through, and counts the tests themselves.
pub(crate) fn cargo_tests(title: &str, command: &mut Command) -> Result<Tally, Failure> {
    println!("--- {title}");
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            tally += counted(&line).unwrap_or_default();
            if let Some(test) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"))
            {
                complain!("{title}: {test}");
            }
        }
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        complain!("{title}: {status}");
        tally += Tally::FAIL;
    }
    Ok(tally)
}

/// Reads `test result: ok. 5 passed; 0 failed; …`.
fn counted(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut tally = Tally::default();
    for count in counts.split("; ") {
        match count.split_once(' ') {
            Some((number, "passed")) => tally.passed = number.parse().ok()?,
            Some((number, "failed")) => tally.failed = number.parse().ok()?,
            _ => {}
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_test_is_counted() {
        let line =
            "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(counted(line), Some(Tally { passed: 12, failed: 1 }));
        assert_eq!(counted("running 3 tests"), None);
    }
}
