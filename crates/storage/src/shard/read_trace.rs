//! What reads are called in traces, in Cassandra's words.

use read::{ReadCommand, ReadTarget};
use table::TableStore;

/// What a read is called in a trace.
pub(super) fn activity(store: &TableStore, command: &ReadCommand) -> String {
    let (table, file_count) = (store.table(), store.files().all().len());
    match &command.target {
        ReadTarget::Keys(keys) if keys.len() == 1 => {
            format!("Executing single-partition query on {} with {file_count} sstables", table.name())
        }
        ReadTarget::Keys(keys) => {
            format!(
                "Executing query of {} partitions on {} with {file_count} sstables",
                keys.len(),
                table.name()
            )
        }
        ReadTarget::Range(range) => format!(
            "Executing seq scan across {file_count} sstables for [{}, {}]",
            range.first_token().0,
            range.last_token().0
        ),
    }
}
