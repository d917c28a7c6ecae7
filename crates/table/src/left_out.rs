//! Under `best_effort`: answers without a file that the disk can not read.

use std::rc::Rc;

use sstable::Descriptor;
use uuid::Uuid;

use super::TableStore;
use crate::TableError;
use crate::health::{FaultKind, path_of};

impl TableStore {
    /// Uses the file that an error names no more, if the policy is to answer from the rest. `false` when it is not, or
    /// the error names none.
    pub fn leave_out(self: &Rc<Self>, error: &TableError) -> bool {
        if !self.shared.health.answers_from_the_rest() {
            return false;
        }
        let Some((id, kind)) = culprit(error) else { return false };
        let Some(file) = self.files.take_out(id, error.to_string()) else { return false };
        let table = self.table();
        tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "a table file is left out of all answers: disk_failure_policy is best_effort");
        self.shared.cache.forget(&[file.number()]);
        self.shared.account_files();
        // One that could not be read may be well after a restart, on another disk.
        if kind == FaultKind::Damage && !self.is_dropped() {
            self.shared.left_out.add(self, file);
        }
        true
    }
}

/// The table file that failed or is damaged, and which of the two.
fn culprit(error: &TableError) -> Option<(Uuid, FaultKind)> {
    let kind = FaultKind::of(error)?;
    match kind {
        FaultKind::Damage | FaultKind::Read => {}
        FaultKind::Write | FaultKind::Log | FaultKind::Full | FaultKind::Options => return None,
    }
    let (descriptor, _) = Descriptor::from_path(path_of(error)?).ok()?;
    Some((descriptor.id, kind))
}
