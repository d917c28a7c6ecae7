//! Small files in which a seat keeps what it must not forget, beside the log of agreement.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use storage::StateError;
use storage::state_file::{read_state, write_state_below};

use super::RingSeat;

impl RingSeat {
    /// Where a file of that name is.
    pub(super) fn path_of_kept(&self, name: &str) -> PathBuf {
        self.shard().local().layout().agreement().join(name)
    }

    /// What the file of that name says; `None` when there is none.
    ///
    /// # Errors
    /// The disk fails, or the file is damaged.
    pub(super) async fn read_kept<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
    ) -> Result<Option<T>, StateError> {
        let (path, runtime) = (self.path_of_kept(name), self.shard().local().runtime());
        let disk = Arc::clone(&runtime.disk);
        runtime.io.run(move || read_state(&*disk, &path)).await
    }

    /// Has the file of that name say it, durably.
    ///
    /// # Errors
    /// The disk fails; the file says it or what it said before.
    pub(super) async fn write_kept<T: Serialize + Send + 'static>(
        &self,
        name: &str,
        kept: T,
    ) -> Result<(), StateError> {
        let (path, runtime) = (self.path_of_kept(name), self.shard().local().runtime());
        let disk = Arc::clone(&runtime.disk);
        runtime.io.run(move || write_state_below(&*disk, &path, &kept)).await
    }
}
