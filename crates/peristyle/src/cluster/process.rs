//! Processes that are ours, told from all others.
//!
//! The number of a process that has ended is given to another one later. So a process is known by the time it was
//! started at, too, which the kernel counts from its own start, and by that start of the kernel.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, setsid};
use serde::{Deserialize, Serialize};

use super::error::ClusterError;

/// How long the kernel may take to have all threads of a process stand still.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often it is asked whether they do.
const PAUSE_STEP: Duration = Duration::from_millis(1);

/// A process, and no other that has its number before or after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) number: u32,
    /// In the kernel's ticks from its start to that of the process.
    started: u64,
    /// Which start of the kernel that was.
    boot: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Running,
    /// By SIGSTOP: none of its threads runs.
    Paused,
    Ended,
}

impl ProcessId {
    /// The process that has this number now.
    pub(crate) fn of(number: u32) -> Option<ProcessId> {
        Some(ProcessId { number, started: Stat::of(number)?.started, boot: boot()? })
    }

    pub(crate) fn state(&self) -> ProcessState {
        let stat = Stat::of(self.number).filter(|stat| stat.started == self.started);
        match stat.filter(|_| boot().is_some_and(|boot| boot == self.boot)) {
            // One that nobody has waited for is there by name only.
            None | Some(Stat { state: 'Z' | 'X' | 'x', .. }) => ProcessState::Ended,
            Some(stat) if stat.is_stopped() && are_threads_stopped(self.number) => ProcessState::Paused,
            Some(_) => ProcessState::Running,
        }
    }

    /// Sends a signal to the process, unless it has ended.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let number = i32::try_from(self.number).ok().and_then(Pid::from_raw);
        match number.filter(|_| self.state() != ProcessState::Ended) {
            Some(number) => Ok(kill_process(number, signal)?),
            None => Ok(()),
        }
    }

    /// Has the process stand still until it is told to go on (SIGCONT). It does when this returns: the kernel tells
    /// threads one after the other, and those that do not know yet may still answer somebody.
    ///
    /// # Errors
    /// The kernel refuses, or takes too long; or the process has ended.
    pub(crate) fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let end = Instant::now() + PAUSE_MAX;
        loop {
            match self.state() {
                ProcessState::Paused => return Ok(()),
                ProcessState::Ended => return Err(io::Error::other("it has ended")),
                ProcessState::Running if Instant::now() < end => std::thread::sleep(PAUSE_STEP),
                ProcessState::Running => {
                    // Nor does it stand still later, when nobody reckons with it.
                    self.signal(Signal::CONT)?;
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }
}

/// What `/proc/NUMBER/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    started: u64,
}

impl Stat {
    fn of(number: u32) -> Option<Stat> {
        Stat::read(Path::new(&format!("/proc/{number}/stat")))
    }

    fn read(path: &Path) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(path).ok()?)
    }

    fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// `NUMBER (NAME) STATE …`, where the name may hold anything; the 22nd field is the time of the start.
    fn parse(text: &str) -> Option<Stat> {
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Stat { state, started: fields.nth(18)?.parse().ok()? })
    }
}

/// One that has ended meanwhile runs no more either.
fn are_threads_stopped(number: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| Stat::read(&thread.path().join("stat"))).all(|stat| stat.is_stopped())
}

/// A word that is another one after each start of the kernel.
fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Becomes this program with other words, in a session of its own: no terminal's end and no Ctrl-C reaches it.
/// Returns only when that did not work.
pub(super) fn become_detached(words: &[OsString]) -> ClusterError {
    let program = setsid().map_err(io::Error::from).and_then(|_| std::env::current_exe());
    match program {
        Ok(program) => ClusterError::Detach(Command::new(program).args(words).exec()),
        Err(error) => ClusterError::Detach(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_is_no_field() {
        let stat = "42 (a) b (c) T 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1";
        assert_eq!(Stat::parse(stat), Some(Stat { state: 'T', started: 987_654 }));
        assert_eq!(Stat::parse("42 (a) T 1"), None);
    }

    #[test]
    fn a_process_is_paused_goes_on_and_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        assert_eq!(process.state(), ProcessState::Running);
        let wait_for = |state| {
            (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                process.state() == state
            })
        };
        process.pause().unwrap();
        assert_eq!(process.state(), ProcessState::Paused);
        process.signal(Signal::CONT).unwrap();
        assert!(wait_for(ProcessState::Running));
        process.signal(Signal::KILL).unwrap();
        assert!(wait_for(ProcessState::Ended), "though nobody has waited for it");
        child.wait().unwrap();
        assert_eq!(process.state(), ProcessState::Ended);
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_taken_for_ours() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        let before = ProcessId { started: process.started - 1, ..process.clone() };
        let of_another_boot = ProcessId { boot: "another".to_owned(), ..process.clone() };
        for other in [before, of_another_boot] {
            assert_eq!(other.state(), ProcessState::Ended);
            other.signal(Signal::KILL).unwrap();
        }
        assert_eq!(child.try_wait().unwrap(), None, "nobody killed it");
        process.signal(Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
