//! A limit of memory that the kernel keeps for some processes, page cache included: a control group.
//!
//! With it a small set of data is larger than memory on a large machine. Groups are folders of a file system, of which
//! there are two versions. Ours is made below the group that we are in; where that can not be (in version 2 a group
//! with processes has no limits for groups below it), below the next one above it:
//!
//! ```text
//!             where                        a limit                  what is swapped counts
//!   version 1 /sys/fs/cgroup/memory/OURS/  memory.limit_in_bytes    memory.memsw.limit_in_bytes (the sum)
//!   version 2 /sys/fs/cgroup/OURS/         memory.max               memory.swap.max (0)
//! ```

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use super::place::Place;
use crate::cluster::ProcessId;

const GROUPS: &str = "/sys/fs/cgroup";
/// How often a group is tried to be removed, while the kernel takes leave of its processes.
const REMOVE_COUNT_MAX: usize = 500;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);
/// Makes itself a process of the group, and then becomes the program.
const ENTER: &str = "echo $$ > \"$0\" && exec \"$@\"";

/// Groups of this process are told apart by a number.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A group of our own.
#[derive(Debug)]
pub(super) struct MemoryGroup {
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryGroup {
    /// Makes one with a limit. The error says why there is none.
    pub(super) fn make(limit_bytes: u64) -> Result<MemoryGroup, String> {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (version, ours) = membership_of(&membership).ok_or("there are no groups for memory")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("peristyle-bench-{}-{number}", std::process::id());
        let mut problem = format!("no group for memory in {GROUPS}");
        for parent in parents(version, &ours).iter().filter(|parent| parent.is_dir()) {
            match MemoryGroup::make_in(parent, &name, version, limit_bytes) {
                Ok(group) => return Ok(group),
                Err(error) => problem = format!("a group in {}: {error}", parent.display()),
            }
        }
        Err(problem)
    }

    fn make_in(
        parent: &Path,
        name: &str,
        version: Version,
        limit_bytes: u64,
    ) -> Result<MemoryGroup, io::Error> {
        let folder = parent.join(name);
        fs::create_dir(&folder)?;
        let group = MemoryGroup { folder };
        let limited = group.limit(version, limit_bytes).and_then(|()| group.try_entering());
        if limited.is_err() {
            let _ = fs::remove_dir(&group.folder);
        }
        limited.map(|()| group)
    }

    fn limit(&self, version: Version, limit_bytes: u64) -> io::Result<()> {
        let set = |name: &str, value: u64| {
            let mut file = fs::OpenOptions::new().write(true).open(self.folder.join(name))?;
            io::Write::write_all(&mut file, value.to_string().as_bytes())
        };
        // That of what is swapped is there where the kernel counts it.
        match version {
            Version::One => {
                set("memory.limit_in_bytes", limit_bytes)?;
                let _ = set("memory.memsw.limit_in_bytes", limit_bytes);
            }
            Version::Two => {
                set("memory.max", limit_bytes)?;
                let _ = set("memory.swap.max", 0);
            }
        }
        Ok(())
    }

    /// A group may be made by who may not put processes into it.
    fn try_entering(&self) -> io::Result<()> {
        let mut command = self.entered(&["true".into()]);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other("no process may enter it")),
        }
    }

    /// A program whose processes are in the group, from its first page on.
    pub(super) fn entered(&self, words: &[OsString]) -> Command {
        let mut all: Vec<OsString> = ["sh", "-c", ENTER].map(OsString::from).to_vec();
        all.push(self.processes().into());
        all.extend_from_slice(words);
        Place::plain(&all)
    }

    fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Ends whoever is in it still, and takes it away.
    pub(super) fn remove(&self) -> Result<(), String> {
        let mut outcome = Ok(());
        for _ in 0..REMOVE_COUNT_MAX {
            let inside = fs::read_to_string(self.processes()).unwrap_or_default();
            for process in inside.lines().filter_map(|line| ProcessId::of(line.parse().ok()?)) {
                let _ = process.signal(Signal::KILL);
            }
            outcome = fs::remove_dir(&self.folder);
            match &outcome {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(REMOVE_PAUSE),
                _ => return Ok(()),
            }
        }
        outcome.map_err(|error| format!("{} is left: {error}", self.folder.display()))
    }
}

/// The version that limits memory here, and which group is ours, of lines as `4:memory:/user` and `0::/user`.
fn membership_of(text: &str) -> Option<(Version, String)> {
    let lines = || text.lines().filter_map(|line| line.splitn(3, ':').collect::<Vec<_>>().try_into().ok());
    let first = lines().find_map(|[_, names, path]: [&str; 3]| {
        names.split(',').any(|name| name == "memory").then(|| (Version::One, path.to_owned()))
    });
    first.or_else(|| {
        lines()
            .find_map(|[number, _, path]: [&str; 3]| (number == "0").then(|| (Version::Two, path.to_owned())))
    })
}

/// Where a group could be made: below ours, then below those above it.
fn parents(version: Version, ours: &str) -> Vec<PathBuf> {
    let top = match version {
        Version::One => Path::new(GROUPS).join("memory"),
        Version::Two => PathBuf::from(GROUPS),
    };
    let ours = top.join(ours.trim_start_matches('/'));
    ours.ancestors().take_while(|above| above.starts_with(&top)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_we_are_in_is_found_in_both_versions() {
        let first = "9:name=systemd:/\n4:cpu,memory:/a:b/c\n0::/\n";
        assert_eq!(membership_of(first), Some((Version::One, "/a:b/c".to_owned())));
        assert_eq!(membership_of("0::/user.slice\n"), Some((Version::Two, "/user.slice".to_owned())));
        assert_eq!(membership_of("1:cpu:/\n"), None);
    }

    #[test]
    fn a_group_is_made_below_ours_or_above_it() {
        let shown = |version, ours| {
            let parents = parents(version, ours);
            parents.iter().map(|parent| parent.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let expected = "/sys/fs/cgroup/memory/a/b /sys/fs/cgroup/memory/a /sys/fs/cgroup/memory";
        assert_eq!(shown(Version::One, "/a/b"), expected);
        assert_eq!(shown(Version::Two, "/"), "/sys/fs/cgroup/");
    }

    #[test]
    fn processes_are_in_a_group_and_end_with_it() {
        // Who may make no groups is told why, and there is nothing more to see.
        let Ok(group) = MemoryGroup::make(64 << 20) else { return };
        let mut child = group.entered(&["sleep".into(), "600".into()]).spawn().unwrap();
        let name = group.folder.file_name().unwrap().to_string_lossy().into_owned();
        let is_inside = || {
            let membership = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
            membership.contains(&name)
        };
        assert!((0..500).any(|_| {
            std::thread::sleep(REMOVE_PAUSE);
            is_inside()
        }));
        group.remove().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!group.folder.exists());
    }
}
