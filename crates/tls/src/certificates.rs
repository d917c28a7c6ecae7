//! Credentials that follow their files.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::{Clock, Disk, Io};

use crate::TlsError;
use crate::credentials::{Credentials, NameCheck};
use crate::files::{Contents, TlsFiles};

/// So often the files are looked at.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Credentials that follow their files. Cheap to clone; of all threads.
#[derive(Clone)]
pub struct Certificates(Arc<Inner>);

struct Inner {
    files: TlsFiles,
    names: NameCheck,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    now: Mutex<Now>,
}

struct Now {
    credentials: Arc<Credentials>,
    /// Of these they were made.
    contents: Contents,
    /// What was said of files that came later and are no good: it is said once.
    complaint: Option<String>,
}

/// What a look at the files has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Same,
    New,
    /// No good, and why.
    Broken(String),
}

impl Certificates {
    /// Reads the files. Blocks.
    ///
    /// # Errors
    /// [`TlsError`]: they can not be read, or nobody would take what they hold.
    pub fn open(
        files: TlsFiles,
        names: NameCheck,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<Certificates, TlsError> {
        let contents = files.read(&*disk)?;
        let credentials = Arc::new(Credentials::make(&files, &contents, names, &clock)?);
        let now = Mutex::new(Now { credentials, contents, complaint: None });
        Ok(Certificates(Arc::new(Inner { files, names, disk, clock, now })))
    }

    /// Those for a talk that begins now.
    pub fn current(&self) -> Arc<Credentials> {
        Arc::clone(&self.0.now().credentials)
    }

    /// Looks at the files every [`LOOK_INTERVAL`], for ever. New talks take what is new; talks that there are go on.
    /// Files that are no good, as when only one of them was replaced yet, are told in the log, and what there was
    /// stays.
    ///
    /// # Cancel safety
    /// Dropped, what was read last stays.
    pub async fn follow(self, io: Io) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let inner = Arc::clone(&self.0);
            // Of files on a disk that hangs only this waits.
            match io.run(move || inner.look()).await {
                Look::Same => {}
                Look::New => tracing::info!(files = ?self.0.files, "new talks take the new certificates"),
                Look::Broken(problem) => {
                    tracing::warn!(%problem, "certificates have changed and are no good: the old ones stay in use");
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn look(&self) -> Look {
        self.0.look()
    }
}

impl Inner {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) -> Look {
        let read = self.files.read(&*self.disk);
        if read.as_ref().is_ok_and(|contents| self.now().contents == *contents) {
            // Whatever was in between: these are in use.
            self.now().complaint = None;
            return Look::Same;
        }
        let made = read.and_then(|contents| {
            let credentials = Credentials::make(&self.files, &contents, self.names, &self.clock)?;
            Ok((Arc::new(credentials), contents))
        });
        match made {
            Ok((credentials, contents)) => {
                *self.now() = Now { credentials, contents, complaint: None };
                Look::New
            }
            Err(error) => self.complain(with_source(&error)),
        }
    }

    fn complain(&self, problem: String) -> Look {
        let complaint = &mut self.now().complaint;
        match complaint.as_ref() == Some(&problem) {
            true => Look::Same,
            false => {
                *complaint = Some(problem.clone());
                Look::Broken(problem)
            }
        }
    }
}

fn with_source(error: &TlsError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Certificates").field(&self.0.files).finish()
    }
}
