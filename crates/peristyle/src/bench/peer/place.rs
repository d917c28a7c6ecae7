//! Where a peer is: a folder that goes with it, a limit of memory, and the programs that are run for it.
//!
//! ```text
//!   FOLDER/data    the nodes'
//!   FOLDER/answer  what the program that was run last printed
//!   FOLDER/errors  what it complained about
//! ```
//!
//! Programs write into files and not into pipes, since nodes may keep open what their starter had open.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::PeerError;
use super::group::MemoryGroup;
use crate::bench::STOP;

/// How often it is looked whether a program has ended.
const POLL: Duration = Duration::from_millis(10);
/// How long one may take: to install what it starts, or until a node has read a long log.
const RUN_MAX: Duration = Duration::from_secs(1800);
/// How long it may take to end once it is told to.
const END_MAX: Duration = Duration::from_secs(5);

/// A peer's folder and the group of its processes.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    group: Option<MemoryGroup>,
}

/// Does a program go on when the run is to end?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staying {
    /// No: what it does is of no use any more.
    UntilInterrupted,
    /// Yes: it is what ends others.
    ToTheEnd,
}

impl Place {
    /// Makes the folder, which must not be there, and a group if there is a limit. Says so when there can be none.
    pub(super) fn make(folder: &Path, memory_bytes: Option<u64>) -> Result<Place, PeerError> {
        let folder = std::path::absolute(folder).map_err(PeerError::file("find", folder))?;
        fs::create_dir(&folder).map_err(PeerError::file("make the folder", &folder))?;
        let group = memory_bytes.map(MemoryGroup::make).and_then(|made| match made {
            Ok(group) => Some(group),
            Err(reason) => {
                eprintln!("bench: the kernel's page cache is not limited, only what servers take: {reason}");
                None
            }
        });
        Ok(Place { folder, group })
    }

    /// The nodes' own folder, which they make.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Somewhere for a file of a keeper.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Does the kernel keep a limit?
    pub(super) fn is_limited(&self) -> bool {
        self.group.is_some()
    }

    /// A program outside of the group.
    pub(super) fn plain(words: &[OsString]) -> Command {
        let (program, words) = words.split_first().expect("a program has a name");
        let mut command = Command::new(program);
        command.args(words);
        command
    }

    /// A program whose processes are in the group, from its first page on.
    pub(super) fn limited(&self, words: &[OsString]) -> Command {
        match &self.group {
            Some(group) => group.entered(words),
            None => Place::plain(words),
        }
    }

    /// Runs it; what it printed, or the last line of its complaints as an error.
    pub(super) fn run(&self, mut command: Command, staying: Staying) -> Result<String, PeerError> {
        let program = command.get_program().display().to_string();
        let (answer, errors) = (self.file("answer"), self.file("errors"));
        let (out, complaints) = (new_file(&answer)?, new_file(&errors)?);
        // A group of its own: Ctrl-C at the terminal is for us, and ends it in our way.
        command.stdin(Stdio::null()).stdout(out).stderr(complaints).process_group(0);
        let child = command.spawn().map_err(|source| PeerError::Run { program: program.clone(), source })?;
        let status = waited(child, &program, staying)?;
        let text = |path: &Path| {
            let bytes = fs::read(path).map_err(PeerError::file("read", path))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        match status.success() {
            true => text(&answer),
            false => Err(PeerError::Failed(last_complaint(&text(&errors)?, status))),
        }
    }

    /// Ends what is left in the group, and deletes everything. What can not be deleted is said.
    pub(super) fn clear(&self) {
        let removed = self.group.as_ref().map_or(Ok(()), MemoryGroup::remove);
        let deleted = fs::remove_dir_all(&self.folder);
        let deleted = deleted.map_err(|error| format!("{} is left: {error}", self.folder.display()));
        for problem in [removed.err(), deleted.err()].into_iter().flatten() {
            eprintln!("bench: {problem}");
        }
    }
}

/// A file that no process of before has open.
fn new_file(path: &Path) -> Result<File, PeerError> {
    let _ = fs::remove_file(path);
    File::create(path).map_err(PeerError::file("write", path))
}

/// Waits for a program, as long as it may take.
fn waited(mut child: Child, program: &str, staying: Staying) -> Result<ExitStatus, PeerError> {
    let begun = Instant::now();
    let reason = loop {
        let wait = child.try_wait();
        let wait = wait.map_err(|source| PeerError::Run { program: program.to_owned(), source })?;
        match wait {
            Some(status) => return Ok(status),
            None if staying == Staying::UntilInterrupted && STOP.load(Ordering::Relaxed) => {
                break PeerError::Interrupted;
            }
            None if begun.elapsed() > RUN_MAX => {
                break PeerError::Endless { program: program.to_owned(), seconds: RUN_MAX.as_secs() };
            }
            None => std::thread::sleep(POLL),
        }
    };
    end(&mut child);
    Err(reason)
}

/// Ends a program and those that it waits for: asked to, and then in any case.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal(Signal::TERM);
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if begun.elapsed() > END_MAX {
            let _ = signal(Signal::KILL);
            let _ = child.wait();
        }
        std::thread::sleep(POLL);
    }
}

fn last_complaint(errors: &str, status: ExitStatus) -> String {
    let line = errors.lines().rev().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| status.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        Place::plain(&["sh", "-c", script].map(OsString::from))
    }

    #[test]
    fn what_a_program_prints_is_its_answer_and_its_last_complaint_the_error() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("peer");
        let place = Place::make(&folder, None).unwrap();
        let run = |script| place.run(shell(script), Staying::ToTheEnd).map_err(|error| error.to_string());
        assert_eq!(run("echo one; echo two >&2"), Ok("one\n".to_owned()));
        assert_eq!(run("echo one; echo why >&2; echo >&2; exit 64"), Err("why".to_owned()));
        assert_eq!(run("exit 3"), Err("exit status: 3".to_owned()));
        assert!(Place::make(&folder, None).is_err(), "somebody's folder is left alone");
        place.clear();
        assert!(!folder.exists());
    }
}
