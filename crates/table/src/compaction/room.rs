//! Is there room on the disk for what a compaction writes?
//!
//! As in Cassandra, a compaction that would not fit goes without its largest inputs; if it still does not, it is not
//! begun. What it writes is taken to be as large as what it reads.

use std::cmp::Reverse;
use std::sync::Arc;

use compaction::Task;
use sstable::TableFile;

use crate::TableError;
use crate::TableStore;

/// Takes of the files that a task is to merge the largest away, until there is room for the result; gives those
/// taken away.
///
/// # Errors
/// [`TableError::NoSpaceForCompaction`]: there is none for what must be merged at least.
pub(super) async fn fit_to_disk(
    store: &TableStore,
    task: &Task,
    files: &mut Vec<Arc<TableFile>>,
) -> Result<Vec<Arc<TableFile>>, TableError> {
    let Some(free) = store.shared().free_bytes().await else { return Ok(Vec::new()) };
    let free = free.saturating_sub(store.shared().compactor.bytes_to_write());
    let inputs: Vec<Input> = files.iter().map(Input::of).collect();
    let Some(taken_away) = too_many(&inputs, task.level, free) else {
        let table = store.table();
        return Err(TableError::NoSpaceForCompaction {
            table: format!("{}.{}", table.keyspace(), table.name()),
            file_count: files.len(),
            needed_bytes: inputs.iter().map(|input| input.bytes).sum(),
            free_bytes: free,
        });
    };
    let mut places = 0..;
    let (out, kept) =
        files.drain(..).partition(|_| places.next().is_some_and(|place| taken_away.contains(&place)));
    *files = kept;
    assert_eq!((files.len(), out.len()), (inputs.len() - taken_away.len(), taken_away.len()), "each once");
    Ok(out)
}

/// What counts of a file that is to be merged.
struct Input {
    level: u32,
    bytes: u64,
}

impl Input {
    fn of(file: &Arc<TableFile>) -> Input {
        Input { level: file.summary().level, bytes: file.summary().data_file_bytes }
    }
}

/// Which inputs have to be left out, the largest first, for the others to come to no more than `free` bytes; `None`
/// if that can not be. Two must be left, or it is no merge any more. Of levels, only the 0th can do without some of its
/// files, on their way to the 1st.
fn too_many(inputs: &[Input], target_level: u32, free: u64) -> Option<Vec<usize>> {
    let mut bytes: u64 = inputs.iter().map(|input| input.bytes).sum();
    let mut free_to_go: Vec<usize> =
        (0..inputs.len()).filter(|place| inputs[*place].level == 0 && target_level <= 1).collect();
    free_to_go.sort_by_key(|place| Reverse(inputs[*place].bytes));
    let kept_of_them = if free_to_go.len() == inputs.len() { 2 } else { 1 };
    let mut out = Vec::new();
    let spare = free_to_go.len().saturating_sub(kept_of_them);
    for place in free_to_go.into_iter().take(spare) {
        if bytes <= free {
            break;
        }
        bytes -= inputs[place].bytes;
        out.push(place);
    }
    (bytes <= free).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(of: &[(u32, u64)]) -> Vec<Input> {
        of.iter().map(|(level, bytes)| Input { level: *level, bytes: *bytes }).collect()
    }

    #[test]
    fn the_largest_stay_behind_until_the_rest_fits() {
        let files = inputs(&[(0, 10), (0, 40), (0, 20), (0, 30)]);
        assert_eq!(too_many(&files, 0, 100), Some(vec![]));
        assert_eq!(too_many(&files, 0, 99), Some(vec![1]));
        assert_eq!(too_many(&files, 0, 59), Some(vec![1, 3]));
        assert_eq!(too_many(&files, 0, 29), None, "one alone is no merge");
        assert_eq!(too_many(&inputs(&[(0, 10)]), 0, 9), None);
    }

    #[test]
    fn levels_do_without_files_of_the_lowest_alone() {
        let files = inputs(&[(0, 10), (0, 20), (1, 40)]);
        assert_eq!(too_many(&files, 1, 60), Some(vec![1]));
        assert_eq!(
            too_many(&files, 1, 45),
            None,
            "one of L0 at least goes with those of L1 that it overlaps"
        );
        assert_eq!(too_many(&inputs(&[(1, 10), (2, 20)]), 2, 25), None);
    }
}
