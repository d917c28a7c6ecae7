//! What the operating system knows of this process, and threads that serve it.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Resident memory of this process in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    statm_bytes(1)
}

/// How much of that is pages of files, the program's own above all; `None` where the system does not tell.
pub fn resident_file_bytes() -> Option<u64> {
    statm_bytes(2)
}

/// A field of `/proc/self/statm`, which counts in pages.
///
/// The file is opened once: a process without a descriptor left still has to hold its memory.
#[expect(clippy::disallowed_methods, reason = "of the kernel, not of a disk")]
fn statm_bytes(field: usize) -> Option<u64> {
    static STATM: OnceLock<File> = OnceLock::new();
    let statm = match STATM.get() {
        Some(statm) => statm,
        None => {
            let opened = File::open("/proc/self/statm").ok()?;
            STATM.get_or_init(|| opened)
        }
    };
    // Seven numbers.
    let mut text = [0; 256];
    let length = statm.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let pages: u64 = text.split_whitespace().nth(field)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).ok()?)
}

/// Has the kernel give this process memory in small pages only, from now on.
///
/// It gives memory that is asked for in large pieces by 2 MiB at a time where that is aligned. As long as one block of
/// a few bytes is used in such a page, none of it comes back.
///
/// # Errors
/// The system knows nothing of it.
pub fn refuse_huge_pages() -> io::Result<()> {
    Ok(rustix::thread::disable_transparent_huge_pages(true)?)
}

/// Has the kernel make room now for so many descriptors, as far as the process may have them.
///
/// Its table of them doubles when one more does not fit. In a process of several threads whoever opens that one sleeps
/// meanwhile, until no thread looks at the old table any more: 20 to 30 ms, and that was the shard that accepted the
/// 65th connection, the 257th, and so on.
///
/// # Errors
/// There is no descriptor to be had.
#[expect(clippy::disallowed_methods, reason = "of the kernel, not of a disk")]
pub fn expect_descriptors(count: u64) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let highest = count.min(limit.unwrap_or(u64::MAX)).saturating_sub(1);
    let any = File::open("/dev/null")?;
    // The table keeps its size when the descriptor goes.
    drop(rustix::io::fcntl_dupfd_cloexec(&any, RawFd::try_from(highest).unwrap_or(RawFd::MAX))?);
    Ok(())
}

/// Memory that this process can have in bytes: the machine's, or less where its control group or one above it
/// is held to less; `None` where the system does not tell.
pub fn memory_limit_bytes() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = total_memory(&read(Path::new("/proc/meminfo"))?)?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|path| group_limit(&read(&path)?));
    Some(limits.fold(machine, u64::min))
}

/// `MemTotal` of `/proc/meminfo`, which counts in KiB.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Where the limits of the groups in `/proc/self/cgroup` stand, those above them included: of one hierarchy
/// (`0::/a/b`), and of the older one for memory (`9:memory:/a/b`). In a container that sees its own group as
/// the root, the root's file is the one.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            controllers if controllers.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|group| Path::new(root).join(group).join(file)));
    }
    files
}

/// `max`, or bytes.
fn group_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Starts a thread of that name which runs a future to its end on a single-threaded runtime of its
/// own: for work that must not disturb the shards. Tell it to end through a message.
///
/// # Errors
/// The system has no thread or no file descriptor left.
pub fn start_service<Body, Work>(name: &str, body: Body) -> io::Result<JoinHandle<()>>
where
    Body: FnOnce() -> Work + Send + 'static,
    Work: Future<Output = ()>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        LocalSet::new().block_on(&runtime, async move { body().await });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_some_memory() {
        let before = resident_bytes().expect("told");
        assert!(before > 100_000);
        let more = vec![1_u8; 64 << 20];
        assert!(resident_bytes().is_some_and(|bytes| bytes >= before + (32 << 20)), "told anew");
        assert_eq!(more.len(), 64 << 20);
    }

    #[test]
    fn the_table_of_descriptors_is_as_large_as_expected() {
        let table_size = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).expect("told").trim();
            line.parse::<u64>().expect("a number")
        };
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let count = limit.unwrap_or(u64::MAX).min(900);
        expect_descriptors(count).expect("one descriptor");
        assert!(table_size() >= count);
        // More than may be is as much as may be.
        assert!(limit.is_none_or(|limit| limit > 1 << 20) || expect_descriptors(u64::MAX).is_ok());
    }

    #[test]
    fn a_process_can_not_have_more_memory_than_the_machine_or_its_groups() {
        assert!(memory_limit_bytes().is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(total_memory("MemTotal:       24025116 kB\nMemFree: 1 kB\n"), Some(24_025_116 * 1024));
        assert_eq!(total_memory("MemFree: 1 kB"), None);
        assert_eq!((group_limit("max\n"), group_limit("1073741824\n")), (None, Some(1 << 30)));
        let files = |groups: &str| -> Vec<String> {
            limit_files(groups).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(files("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(
            files("12:cpu,memory:/a\n0::/a/b\n3:cpuset:/\nnonsense"),
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn a_service_runs_on_a_thread_of_its_name() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let service = start_service("service-test", move || async move {
            tokio::task::yield_now().await;
            _ = sender.send(thread::current().name().map(str::to_owned));
        });
        assert_eq!(receiver.recv().expect("sent").as_deref(), Some("service-test"));
        service.expect("thread").join().expect("no panic");
    }
}
