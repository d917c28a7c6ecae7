//! What the kernel knows of a process: `/proc`, as Linux has it.

use std::time::{Duration, Instant};

use crate::report::Failure;

/// Clock ticks of `/proc/PID/stat` in a second, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Places in `/proc/PID/stat`, from the one behind the name on.
const STATE: usize = 0;
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
/// How long threads may take to stand still.
const STOP_MAX: Duration = Duration::from_secs(10);
const STOP_STEP: Duration = Duration::from_millis(1);

/// CPU seconds that a process has used.
pub(crate) fn cpu_seconds(process_id: u32) -> Result<f64, Failure> {
    let text = stat(process_id)?;
    let ticks = |index: usize| behind_name(&text).nth(index)?.parse::<f64>().ok();
    match (ticks(USER_TICKS), ticks(SYSTEM_TICKS)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS_PER_SECOND),
        _ => Err(Failure::new(format!("/proc/{process_id}/stat has no times"))),
    }
}

/// Does it run? One that has ended, and whom nobody has waited for, does not.
pub(crate) fn runs(process_id: u32) -> bool {
    let text = stat(process_id).unwrap_or_default();
    behind_name(&text).nth(STATE).is_some_and(|state| state != "Z" && state != "X")
}

/// Waits until none of the threads of a process runs, to whom SIGSTOP was sent: the kernel tells one after the other.
pub(crate) fn wait_until_stopped(process_id: u32) -> Result<(), Failure> {
    let end = Instant::now() + STOP_MAX;
    while !threads_of(process_id)?.iter().all(|stat| behind_name(stat).nth(STATE) == Some("T")) {
        if Instant::now() >= end {
            return Err(Failure::new(format!("process {process_id} does not stand still")));
        }
        std::thread::sleep(STOP_STEP);
    }
    Ok(())
}

/// Resident memory of a process in bytes.
pub(crate) fn rss_bytes(process_id: u32) -> Result<u64, Failure> {
    status_bytes(process_id, "VmRSS:")
}

/// The most resident memory that a process ever had, in bytes.
pub(crate) fn high_water_bytes(process_id: u32) -> Result<u64, Failure> {
    status_bytes(process_id, "VmHWM:")
}

/// How many files a process of ours may open.
pub(crate) fn files_max() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"));
    let most = line.and_then(|line| line.split_whitespace().next());
    Ok(most.and_then(|most| most.parse().ok()).unwrap_or(u64::MAX))
}

/// A field of `/proc/PID/status` that is told in kilobytes.
fn status_bytes(process_id: u32, field: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes << 10)
        .ok_or_else(|| Failure::new(format!("a process without {field}")))
}

/// `stat` of each thread of a process; one that ends meanwhile is left out.
fn threads_of(process_id: u32) -> Result<Vec<String>, Failure> {
    let threads = std::fs::read_dir(format!("/proc/{process_id}/task"))?.flatten();
    Ok(threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok()).collect())
}

fn stat(process_id: u32) -> Result<String, Failure> {
    Ok(std::fs::read_to_string(format!("/proc/{process_id}/stat"))?)
}

/// The figures of `/proc/PID/stat`: the name before them, in brackets, may hold spaces and brackets.
fn behind_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_and_time_are_found() {
        let process_id = std::process::id();
        let (now, most) = (rss_bytes(process_id).unwrap(), high_water_bytes(process_id).unwrap());
        assert!(now > 0 && most > 0);
        assert!(cpu_seconds(process_id).unwrap() >= 0.0);
        assert!(files_max().unwrap() > 0);
    }

    #[test]
    fn one_that_nobody_has_waited_for_does_not_run() {
        assert!(runs(std::process::id()) && !runs(u32::MAX));
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(runs(child.id()));
        drop(child.stdin.take());
        let looks = (0..10_000).take_while(|_| runs(child.id()));
        looks.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
        assert!(!runs(child.id()), "it has ended");
        assert!(stat(child.id()).is_ok(), "it is still there");
        child.wait().unwrap();
        assert!(!runs(child.id()));
    }

    #[test]
    fn one_to_whom_sigstop_was_sent_stands_still() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let tell = |signal: &str| {
            let words = [signal, &child.id().to_string()].map(str::to_owned);
            assert!(std::process::Command::new("kill").args(words).status().unwrap().success());
        };
        tell("-STOP");
        wait_until_stopped(child.id()).unwrap();
        assert_eq!(behind_name(&stat(child.id()).unwrap()).nth(STATE), Some("T"));
        tell("-KILL");
        child.wait().unwrap();
        assert!(wait_until_stopped(child.id()).is_err(), "it is gone");
    }

    #[test]
    fn figures_are_behind_a_name_with_spaces_and_brackets() {
        assert_eq!(behind_name("7 (a ) b) S 1").collect::<Vec<_>>(), ["S", "1"]);
    }
}
