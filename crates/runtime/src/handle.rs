//! Open files, and where they are closed.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Closes files of the whole process, one after the other, for as long as that lives; `None` where there is no thread
/// to be had. Nobody owns it, for a handle may outlive every disk and node; and nobody need wait for it, for what it
/// holds has no name any more. What waits is bounded by how many files the process may have open.
static CLOSER: LazyLock<Option<Sender<File>>> = LazyLock::new(|| {
    let (closer, files) = mpsc::channel();
    let close_all = move || files.into_iter().for_each(drop);
    thread::Builder::new().name("closer".to_owned()).spawn(close_all).ok().map(|_| closer)
});

/// An open file. Whoever closes the last handle of a file that was removed waits until the file system has freed what
/// it held, 20 ms for 100 MiB; and, even for a small one, until the file system's journal takes that in, 60 ms when the
/// disk is busy. So a thread does that that nobody waits for, whoever drops this.
#[derive(Debug)]
pub(crate) struct Handle(Option<File>);

impl From<File> for Handle {
    fn from(file: File) -> Self {
        Handle(Some(file))
    }
}

impl Deref for Handle {
    type Target = File;

    fn deref(&self) -> &File {
        self.0.as_ref().expect("taken when it is dropped")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(file) = self.0.take() else { return };
        if file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
            // What it does not take is closed here.
            _ = CLOSER.as_ref().map(|closer| closer.send(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    /// Does this process have a file open that was removed from there?
    fn is_open(removed: &str) -> bool {
        let open = fs::read_dir("/proc/self/fd").expect("Linux tells").flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|path| path.to_string_lossy() == format!("{removed} (deleted)"))
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    fn a_removed_file_is_closed_though_not_by_who_drops_it() {
        let directory = tempfile::tempdir().expect("directory");
        for bytes in [0, 10, 2 << 20] {
            let path = directory.path().join(bytes.to_string());
            let mut file = File::create_new(&path).expect("created");
            file.write_all(&vec![7; bytes]).expect("written");
            let handle = Handle::from(file);
            fs::remove_file(&path).expect("removed");
            let path = path.to_str().expect("text");
            assert!(is_open(path));
            drop(handle);
            while is_open(path) {
                thread::yield_now();
            }
        }
    }
}
