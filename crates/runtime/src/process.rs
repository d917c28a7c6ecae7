//! What the operating system knows of this process, and threads that serve it.

use std::future::Future;
use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// Resident memory of this process in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).ok()?)
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
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
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
