//! YCSB's core workloads: one table, rows of ten fields, six mixes of operations, and updates alone.
//!
//! Mixes, keys and distributions are those of YCSB 0.17.0 (`workloads/workload{a..f}`,
//! `site.ycsb.workloads.CoreWorkload`), the table is that of its Cassandra binding. Three things are not: statements
//! are prepared and not synchronous, values tell to which row they belong (theirs are random), and there is a mix of
//! updates alone, as Cloudera's study has it.

mod chooser;
mod operations;
mod table;

use std::sync::Arc;

use super::acknowledged::Acknowledged;
use super::{Operations, Part, Workload};
use crate::error::LabError;
use crate::manifest::Plan;
use chooser::Distribution;
use operations::{Loader, Mixed};
use table::Table;

/// Rows that are loaded when nobody says how many. (YCSB's own thousand fit into any cache.)
pub(crate) const DEFAULT_ROW_COUNT: u64 = 100_000;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One row, all fields.
    Read,
    /// One field of one row.
    Update,
    /// A new row.
    Insert,
    /// Up to so many rows in the order of their tokens.
    Scan,
    /// A read, then an update of the same row, as one operation.
    ReadModifyWrite,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::Insert => "insert",
            Kind::Scan => "scan",
            Kind::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// What `--set` may change.
pub const SETTINGS: &str =
    "fields=10 field-bytes=100 scan-rows=100 distribution=zipfian|true-zipfian|latest|uniform";

/// A mix of operations.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    kinds: &'static [(Kind, f64)],
    distribution: Distribution,
}

/// All mixes.
pub(super) const MIXES: &[Mix] = &[
    Mix {
        name: "ycsb-a",
        about: "half reads, half updates, zipfian: a session store",
        kinds: &[(Kind::Read, 0.5), (Kind::Update, 0.5)],
        distribution: Distribution::Scrambled,
    },
    Mix {
        name: "ycsb-b",
        about: "95% reads, 5% updates, zipfian: photo tags",
        kinds: &[(Kind::Read, 0.95), (Kind::Update, 0.05)],
        distribution: Distribution::Scrambled,
    },
    Mix {
        name: "ycsb-c",
        about: "reads alone, zipfian: a cache of profiles",
        kinds: &[(Kind::Read, 1.0)],
        distribution: Distribution::Scrambled,
    },
    Mix {
        name: "ycsb-d",
        about: "95% reads of the latest rows, 5% inserts: status updates",
        kinds: &[(Kind::Read, 0.95), (Kind::Insert, 0.05)],
        distribution: Distribution::Latest,
    },
    Mix {
        name: "ycsb-e",
        about: "95% scans of 1 to 100 rows, 5% inserts, zipfian: threaded conversations",
        kinds: &[(Kind::Scan, 0.95), (Kind::Insert, 0.05)],
        distribution: Distribution::Scrambled,
    },
    Mix {
        name: "ycsb-f",
        about: "half reads, half read-modify-writes, zipfian: a database of users",
        kinds: &[(Kind::Read, 0.5), (Kind::ReadModifyWrite, 0.5)],
        distribution: Distribution::Scrambled,
    },
    Mix {
        name: "ycsb-u",
        about: "updates alone, zipfian: Cloudera's fourth workload",
        kinds: &[(Kind::Update, 1.0)],
        distribution: Distribution::Scrambled,
    },
];

/// One of the mixes on its table.
pub(super) struct Ycsb {
    mix: &'static Mix,
    distribution: Distribution,
    table: Arc<Table>,
    loaded_count: u64,
    rows: Arc<Acknowledged>,
}

impl Ycsb {
    /// The mix that a plan names.
    ///
    /// # Errors
    /// There is none, or a setting that it does not know, or a value that the setting can not have.
    pub(super) fn of(plan: &Plan) -> Result<Ycsb, LabError> {
        let refuse = |text: String| Err(LabError::Plan(text));
        let Some(mix) = MIXES.iter().find(|mix| mix.name == plan.workload) else {
            return refuse(format!("there is no workload '{}' (see `bench list`)", plan.workload));
        };
        let (mut table, mut distribution) = (Table::default(), mix.distribution);
        for (name, value) in &plan.settings {
            let is_known = match name.as_str() {
                "fields" => value.parse().map(|count| table.field_count = count).is_ok(),
                "field-bytes" => value.parse().map(|count| table.field_bytes = count).is_ok(),
                "scan-rows" => value.parse().map(|count| table.scan_rows_max = count).is_ok(),
                "distribution" => Distribution::named(value).map(|named| distribution = named).is_some(),
                _ => return refuse(format!("{} has no setting '{name}' (see `bench list`)", mix.name)),
            };
            if !is_known {
                return refuse(format!("{name} can not be '{value}'"));
            }
        }
        if table.field_count == 0 || table.scan_rows_max == 0 || plan.row_count == 0 {
            return refuse("a table without rows, or rows without fields, measure nothing".to_owned());
        }
        let rows = Arc::new(Acknowledged::new(plan.row_count));
        Ok(Ycsb { mix, distribution, table: Arc::new(table), loaded_count: plan.row_count, rows })
    }
}

impl Workload for Ycsb {
    fn tables(&self, keyspace: &str) -> Vec<String> {
        vec![self.table.create(keyspace)]
    }

    fn statements(&self, keyspace: &str) -> Vec<String> {
        self.table.statements(keyspace)
    }

    fn kinds(&self) -> Vec<&str> {
        self.mix.kinds.iter().map(|(kind, _)| kind.name()).collect()
    }

    fn loader(&self, part: Part) -> Box<dyn Operations> {
        let kind = 0;
        Box::new(Loader::new(self.table.clone(), self.loaded_count, part, kind))
    }

    fn operations(&self, part: Part) -> Box<dyn Operations> {
        let insert_part: f64 =
            self.mix.kinds.iter().filter(|(kind, _)| *kind == Kind::Insert).map(|(_, weight)| weight).sum();
        // What YCSB expects of a run of as many operations as there are rows.
        let expected_count = (self.loaded_count as f64 * insert_part * 2.0) as u64;
        let chooser = self.distribution.chooser(self.loaded_count, expected_count);
        Box::new(Mixed::new(self.table.clone(), self.mix.kinds, chooser, self.rows.clone(), part))
    }
}
