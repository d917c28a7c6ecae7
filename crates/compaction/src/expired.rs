//! Files that hold nothing any more: they go without being read.
//!
//! A file of which all is deleted or expired, for longer than `gc_grace_seconds`, may go when nothing it
//! could hide is left: no file that shares tokens with it and has anything that lives, and no memtable,
//! holds a write as old as its newest.

use super::{FileFacts, Picture, Repair};

/// Those of the files that may go as they are.
pub fn fully_expired<'a>(
    files: &[&'a FileFacts],
    picture: Picture<'_>,
    only_purge_repaired: bool,
) -> Vec<&'a FileFacts> {
    if only_purge_repaired && files.iter().any(|file| file.repair != Repair::Repaired) {
        return Vec::new();
    }
    let is_dead = |file: &FileFacts| file.max_local_deletion_time < picture.gc_before;
    if !files.iter().any(|file| is_dead(file)) {
        return Vec::new();
    }
    let is_inside = |other: &FileFacts| files.iter().any(|file| file.id == other.id);
    let overlapping =
        picture.all.iter().filter(|other| !is_inside(other) && files.iter().any(|file| file.overlaps(other)));
    let living = files.iter().copied().chain(overlapping).filter(|file| !is_dead(file));
    let oldest = living.map(|file| file.min_timestamp).chain(picture.memtable_timestamp_min).min();
    let oldest = oldest.unwrap_or(i64::MAX);
    files.iter().copied().filter(|file| is_dead(file) && file.max_timestamp < oldest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;

    fn dead(number: u128, timestamp: i64) -> FileFacts {
        FileFacts { max_local_deletion_time: 5, max_timestamp: timestamp, ..file(number, MB) }
    }

    fn check(all: &[FileFacts], memtable: Option<i64>, expected: &[u128]) {
        let files: Vec<&FileFacts> = all.iter().take(2).collect();
        let picture = Picture { memtable_timestamp_min: memtable, ..picture(all) };
        let gone: Vec<u128> =
            fully_expired(&files, picture, false).iter().map(|file| file.id.as_u128()).collect();
        assert_eq!(gone, expected);
    }

    #[test]
    fn a_dead_file_goes_unless_something_older_lives() {
        let living = |timestamp| FileFacts { min_timestamp: timestamp, ..file(9, MB) };
        check(&[dead(1, 10), dead(2, 20)], None, &[1, 2]);
        check(&[dead(1, 10), dead(2, 20), living(15)], None, &[1]);
        check(&[dead(1, 10), dead(2, 20), living(10)], None, &[]);
        check(&[dead(1, 10), dead(2, 20)], Some(20), &[1]);
        check(&[dead(1, 10), living(10)], None, &[]);
    }

    #[test]
    fn what_shares_no_token_hides_nothing() {
        let left = FileFacts { max_local_deletion_time: 5, max_timestamp: 50, ..part(1, 0, MB, 0, 10) };
        let also = FileFacts { id: uuid::Uuid::from_u128(2), ..left.clone() };
        let right = FileFacts { min_timestamp: 1, ..part(3, 0, MB, 11, 20) };
        check(&[left, also, right], None, &[1, 2]);
    }

    #[test]
    fn unrepaired_files_stay_where_only_repaired_tombstones_may_go() {
        let all = [dead(1, 10)];
        assert!(fully_expired(&[&all[0]], picture(&all), true).is_empty());
    }
}
