//! What is judged, and by which tests.

use super::mutant::Mutant;
use crate::tidy::floors;

/// A part of the code, and the tests that judge it.
pub(super) struct Area {
    pub(super) name: &'static str,
    /// The files whose mutants are drawn; a folder ends with a slash and stands for all in it.
    pub(super) files: &'static [&'static str],
    /// In the order of running: near and quick before far and slow.
    pub(super) stages: &'static [Stage],
}

/// What spoils files for tests and fuzz targets: it lies beside the code, but is none of it.
pub(super) const NOT_JUDGED: [&str; 2] = ["**/hostile.rs", "**/hostile/**"];

/// Tests that run together.
pub(super) struct Stage {
    /// Packages without their `peristyle-`; none: that of the mutant.
    packages: &'static [&'static str],
    /// Parts of the names of tests that are left out.
    pub(super) skipped: &'static [&'static str],
    /// A run that takes longer hangs; ten times what it takes alone, since others may share the machine.
    pub(super) seconds_max: u32,
}

impl Area {
    /// Is this one of its files?
    pub(super) fn has(&self, file: &str) -> bool {
        self.files.iter().any(|own| file == *own || (own.ends_with('/') && file.starts_with(own)))
    }

    /// Its files as `cargo-mutants` wants them.
    pub(super) fn globs(&self) -> impl Iterator<Item = String> {
        self.files
            .iter()
            .map(|file| if file.ends_with('/') { format!("{file}**") } else { (*file).to_owned() })
    }

    /// The packages whose tests are a stage, all that a mutant of this area can have.
    pub(super) fn packages(&self, stage: &Stage) -> Vec<String> {
        let own = self.files.iter().filter_map(|file| file.split('/').nth(1));
        let mut folders: Vec<&str> = if stage.is_own() {
            own.filter(|folder| !STORAGE.packages.contains(folder)).collect()
        } else {
            stage.packages.to_vec()
        };
        folders.dedup();
        folders.into_iter().map(|folder| format!("peristyle-{folder}")).collect()
    }
}

impl Stage {
    /// Are these the tests beside the code?
    pub(super) fn is_own(&self) -> bool {
        self.packages.is_empty()
    }

    /// Can these tests come to the code of that mutant? What is beside it comes first, but for storage's, which are
    /// many: a mutant of storage meets them where those of all others do.
    pub(super) fn may_notice(&self, mutant: &Mutant) -> bool {
        let own = mutant.file.split('/').nth(1).unwrap_or_default();
        if self.is_own() {
            return !STORAGE.packages.contains(&own);
        }
        self.packages.iter().any(|package| *package == own || floors::is_below(own, package))
    }
}

/// The tests beside the code.
const OWN: Stage = Stage { packages: &[], skipped: &[], seconds_max: 80 };
/// A whole node's storage, on disks that fail and lose what was not synced.
const STORAGE: Stage = Stage { packages: &["storage"], skipped: &[], seconds_max: 400 };
/// The same without the few tests that take nine tenths of the time.
const STORAGE_AT_ONCE: Stage = Stage { skipped: &SLOW, seconds_max: 120, ..STORAGE };
const SLOW: [&str; 15] = [
    "answers::",
    "chunk_lengths::",
    "cold::",
    "importing::",
    "kept::",
    "large_rows::",
    "left_reads::",
    "pressure::",
    "replaying::a_replay_cut_off_anywhere",
    "replaying::what_a_replay_writes_out",
    "restarts::",
    "rewriting::",
    "scanning::",
    "visits::shards_write_and_read",
    "visits::shards_write_in_each_others",
];
/// Statements on one node.
const QUERY: Stage = Stage { packages: &["query"], skipped: &[], seconds_max: 300 };
/// Nodes under seeds, with power cuts.
const SIMULATOR: Stage = Stage { packages: &["simulator"], skipped: &[], seconds_max: 600 };

pub(super) const AREAS: [Area; 5] = [
    Area {
        name: "commitlog",
        files: &["crates/commitlog/src/"],
        stages: &[OWN, STORAGE_AT_ONCE, STORAGE, SIMULATOR],
    },
    Area {
        name: "manifest",
        files: &["crates/manifest/src/"],
        stages: &[OWN, STORAGE_AT_ONCE, STORAGE, SIMULATOR],
    },
    Area {
        name: "merge",
        files: &[
            "crates/rows/src/merge_cursor.rs",
            "crates/rows/src/merge_row.rs",
            "crates/rows/src/cell_merge.rs",
            "crates/rows/src/range_tombstones.rs",
            "crates/rows/src/deletion.rs",
            "crates/rows/src/liveness.rs",
            "crates/compaction/src/merge.rs",
            "crates/compaction/src/merge/",
        ],
        stages: &[OWN, STORAGE_AT_ONCE, STORAGE, SIMULATOR],
    },
    Area {
        name: "lookup",
        files: &[
            "crates/sstable/src/finder.rs",
            "crates/sstable/src/search.rs",
            "crates/sstable/src/single_row.rs",
            "crates/table/src/lookup.rs",
            "crates/storage/src/shard/lookups.rs",
            "crates/coordinator/src/plain.rs",
        ],
        stages: &[OWN, STORAGE_AT_ONCE, STORAGE, QUERY, SIMULATOR],
    },
    Area {
        name: "write",
        files: &[
            "crates/table/src/shared/write_room.rs",
            "crates/storage/src/shard/write.rs",
            "crates/storage/src/record.rs",
            "crates/storage/src/replay.rs",
            "crates/coordinator/src/admission.rs",
            "crates/coordinator/src/write.rs",
            "crates/coordinator/src/batch.rs",
            "crates/memtable/src/lib.rs",
            "crates/memtable/src/partition.rs",
            "crates/memtable/src/tree.rs",
            "crates/memtable/src/slot.rs",
        ],
        stages: &[OWN, STORAGE_AT_ONCE, STORAGE, SIMULATOR],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn every_file_of_an_area_is_there_and_is_of_it() {
        for area in &AREAS {
            for file in area.files {
                assert!(root().join(file).exists(), "{file}");
                assert!(area.has(file), "{file}");
            }
        }
    }

    #[test]
    fn the_first_stage_has_the_tests_of_all_crates_of_the_area() {
        let merge = AREAS.iter().find(|area| area.name == "merge").unwrap();
        assert_eq!(merge.packages(&merge.stages[0]), ["peristyle-rows", "peristyle-compaction"]);
        assert_eq!(merge.packages(&merge.stages[1]), ["peristyle-storage"]);
        assert!(merge.has("crates/compaction/src/merge/output.rs"));
        assert!(!merge.has("crates/compaction/src/leveled.rs"));
    }

    fn mutant_of(folder: &str) -> Mutant {
        Mutant {
            name: String::new(),
            file: format!("crates/{folder}/src/lib.rs"),
            line_number: 1,
            change: String::new(),
            line: String::new(),
        }
    }

    #[test]
    fn a_mutant_meets_the_tests_beside_it_and_those_of_what_is_built_on_it() {
        let met = |folder| {
            [OWN, STORAGE_AT_ONCE, QUERY, SIMULATOR].map(|stage| stage.may_notice(&mutant_of(folder)))
        };
        assert_eq!(met("sstable"), [true, true, true, true]);
        assert_eq!(met("storage"), [false, true, true, true]);
        assert_eq!(met("coordinator"), [true, false, true, true]);
    }

    #[test]
    fn every_test_that_is_left_out_at_first_is_there() {
        for name in SLOW {
            let (module, test) = name.split_once("::").unwrap();
            let path = root().join(format!("crates/storage/tests/node/{module}.rs"));
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("fn {test}")), "{name}");
        }
    }
}
