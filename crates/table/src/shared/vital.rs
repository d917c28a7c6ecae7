//! Work that could lose or corrupt data if a promise of ours were broken in its midst ([`runtime::Failsafe`]).
//!
//! | work | what would go wrong | guarded in |
//! |---|---|---|
//! | a write, from the log to the memtable | a flush moves replay past what was not merged in | `storage`: `write.rs` |
//! | a flush | the same, of a whole memtable | `flush.rs` |
//! | a change of the manifest | files named and gone, or there and forgotten | `commit.rs`, `scrub.rs` |
//! | a truncation, a drop of a table | what should be gone is not, or more is | `define.rs` |
//! | a merge, which replaces its inputs | rows that were in the inputs alone | `compaction/run.rs` |
//! | a new definition of a table | a memtable that nobody flushes | `storage`: `definitions.rs` |
//!
//! Changes of the schema are vital, too; the coordinator guards them. So are a ring's tasks that nobody waits for,
//! which bring nodes what they lack, write kept batches again, or follow what is agreed on. Reads are not, nor is what
//! prepares files that no manifest names yet.

use manifest::Manifest;

use super::Shared;
use crate::TableError;

impl Shared {
    /// Does vital work on a background thread.
    ///
    /// # Errors
    /// The node is stopping, or the work panicked and the node is of no use any more.
    pub(crate) async fn run_vital<T: Send + 'static>(
        &self,
        work: &'static str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TableError> {
        let failsafe = self.runtime.failsafe.clone();
        let done = self.runtime.background.run(work, move || failsafe.guard(work, job)).await;
        if done.is_err() {
            // That says more than the panic of the job alone.
            self.runtime.failsafe.check()?;
        }
        Ok(done?)
    }

    /// Puts the next manifest in the place of the one there is, durably. Its caller holds the lock meanwhile.
    ///
    /// # Errors
    /// The disk failed, which may have the next one all the same; or a promise was broken, and nothing is made
    /// durable any more.
    pub(crate) async fn replace_manifest(
        &self,
        manifest: &mut Manifest,
        next: Manifest,
    ) -> Result<(), TableError> {
        self.runtime.failsafe.check()?;
        *manifest = self.runtime.io.run(move || next.write()).await?;
        Ok(())
    }

    /// Ends the log in order. Not so after a broken promise: then nothing is written any more, and the next start
    /// finds what it finds after a crash of the process.
    ///
    /// # Errors
    /// The disk failed, or a promise was broken.
    pub async fn close_log(&self) -> Result<(), TableError> {
        self.runtime.failsafe.check()?;
        Ok(self.log.close().await?)
    }
}
