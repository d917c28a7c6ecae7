//! One who changes the schema and empties tables while everybody writes.
//!
//! Slots are keyspaces that come and go, each with one table that comes and goes; columns come and go in a
//! table that stays, types in a keyspace that stays. The operator alone writes to these, so that
//! their keys have one order. Tables that stay get other options and are truncated now and then.
//! What a table's options are follows from a version that its comment tells.

use std::time::Duration;

use super::Dice;
use super::ledger::{Key, Ledger, Place, State};
use super::worker::Report;
use crate::wire::{Connection, WireError};

pub(super) const SLOT_COUNT: u32 = 3;
pub(super) const COLUMN_COUNT: u32 = 3;
const TYPE_COUNT: u32 = 2;
/// The tables that stay, in the keyspace `crash`.
pub(super) const TABLES: [&str; 3] = ["rows", "batches", "columns"];
/// Keys of one slot's table, or of one column.
const KEY_COUNT: u64 = 20;
/// Rows of one statement.
const WRITE_COUNT: usize = 5;
/// The longest rest between two acts.
const REST_MILLIS_MAX: u64 = 30;

/// Strategies that have something to do with little data.
const COMPACTIONS: [(&str, &str); 4] = [
    ("SizeTieredCompactionStrategy", "'min_threshold': 2"),
    ("LeveledCompactionStrategy", "'sstable_size_in_mb': 1"),
    ("TimeWindowCompactionStrategy", "'compaction_window_unit': 'MINUTES', 'compaction_window_size': 1"),
    ("UnifiedCompactionStrategy", "'scaling_parameters': 'L4, T2'"),
];
/// Something that `system_schema` tells of it, and the options.
const COMPRESSIONS: [(&str, &str); 4] = [
    ("auto", "'class': 'LZ4Compressor', 'chunk_length_in_kb': 'auto'"),
    ("ZstdCompressor", "'class': 'ZstdCompressor', 'chunk_length_in_kb': 4"),
    ("SnappyCompressor", "'class': 'SnappyCompressor', 'chunk_length_in_kb': 64"),
    ("false", "'enabled': 'false'"),
];
const PREFETCHES: [&str; 3] = ["", ", 'prefetch': 'ALL'", ", 'prefetch': 'HOT'"];
const FLUSH_PERIODS: [u64; 3] = [0, 80, 300];

/// Who knows what comes and goes.
pub(super) struct Operator {
    dice: Dice,
    slots: Vec<State>,
    columns: Vec<State>,
    types: Vec<State>,
}

/// One statement, and what it changes.
struct Act {
    statement: String,
    writes: Vec<(Key, State)>,
    empties: Option<Place>,
}

impl Operator {
    /// One who knows what the last look found.
    pub(super) fn new(ledger: &Ledger, seed: u64) -> Operator {
        let found = |count: u32, key: fn(u32) -> Key| (0..count).map(|n| ledger.found(&key(n))).collect();
        Operator {
            dice: Dice(seed),
            slots: found(SLOT_COUNT, Key::Slot),
            columns: found(COLUMN_COUNT, Key::Column),
            types: found(TYPE_COUNT, Key::Type),
        }
    }

    /// Works until the server is killed.
    pub(super) fn act_until_broken(
        &mut self,
        address: &str,
        first_version: u64,
        report: &mut Report,
    ) -> Result<(), WireError> {
        let mut connection = Connection::open(address, 5)?;
        for version in first_version.. {
            let Act { statement, writes, empties } = self.next(version);
            if report.ask(&mut connection, &statement, &writes, empties)? {
                self.know(&writes);
            }
            // Two acts in a row now and then.
            std::thread::sleep(Duration::from_millis(
                self.dice.between(0, REST_MILLIS_MAX + 10).saturating_sub(10),
            ));
        }
        Ok(())
    }

    fn know(&mut self, writes: &[(Key, State)]) {
        for (key, state) in writes {
            match *key {
                Key::Slot(slot) => self.slots[slot as usize] = *state,
                Key::Column(column) => self.columns[column as usize] = *state,
                Key::Type(number) => self.types[number as usize] = *state,
                _ => {}
            }
        }
    }

    fn next(&mut self, version: u64) -> Act {
        match self.dice.between(0, 40) {
            0 => Act {
                statement: "TRUNCATE crash.rows".into(),
                writes: Vec::new(),
                empties: Some(Place::Rows),
            },
            1 => Act {
                statement: "TRUNCATE crash.batches".into(),
                writes: Vec::new(),
                empties: Some(Place::Batches),
            },
            2..6 => self.options(version),
            6..8 => self.type_(),
            8..18 => self.column(version),
            _ => self.slot(version),
        }
    }

    fn options(&mut self, version: u64) -> Act {
        let table = self.dice.between(0, TABLES.len() as u64) as u32;
        let options = TableOptions::of(version).text;
        let statement = format!("ALTER TABLE crash.{} WITH {options}", TABLES[table as usize]);
        Act { statement, writes: vec![(Key::Options(table), Some(version))], empties: None }
    }

    fn type_(&mut self) -> Act {
        let number = self.dice.between(0, u64::from(TYPE_COUNT)) as u32;
        let (statement, state) = match self.types[number as usize] {
            Some(_) => (format!("DROP TYPE crash.type{number}"), None),
            None => (format!("CREATE TYPE crash.type{number} (first int, second text)"), Some(0)),
        };
        Act { statement, writes: vec![(Key::Type(number), state)], empties: None }
    }

    fn column(&mut self, version: u64) -> Act {
        let column = self.dice.between(0, u64::from(COLUMN_COUNT)) as u32;
        let name = format!("extra{column}");
        if self.columns[column as usize].is_none() {
            let statement = format!("ALTER TABLE crash.columns ADD {name} bigint");
            return Act { statement, writes: vec![(Key::Column(column), Some(0))], empties: None };
        }
        if self.dice.between(0, 4) == 0 {
            let writes = vec![(Key::Column(column), None)];
            let statement = format!("ALTER TABLE crash.columns DROP {name}");
            return Act { statement, writes, empties: Some(Place::Column(column)) };
        }
        let target = format!("crash.columns (key, {name})");
        self.rows(version, &target, |key| Key::Value { column, key })
    }

    fn slot(&mut self, version: u64) -> Act {
        let slot = self.dice.between(0, u64::from(SLOT_COUNT)) as u32;
        let become_ = |statement: String, state: State| Act {
            statement,
            writes: vec![(Key::Slot(slot), state)],
            empties: None,
        };
        let turn = self.dice.between(0, 20);
        match (self.slots[slot as usize], turn) {
            (None, _) => {
                let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
                become_(format!("CREATE KEYSPACE crash_{slot} WITH replication = {replication}"), Some(0))
            }
            (Some(0), 0..5) => become_(format!("DROP KEYSPACE crash_{slot}"), None),
            (Some(0), _) => {
                let options = TableOptions::of(version).text;
                let columns = "(key int PRIMARY KEY, version bigint)";
                become_(format!("CREATE TABLE crash_{slot}.t {columns} WITH {options}"), Some(version))
            }
            (Some(_), 0) => Act {
                empties: Some(Place::Slot(slot)),
                ..become_(format!("DROP KEYSPACE crash_{slot}"), None)
            },
            (Some(_), 1 | 2) => Act {
                empties: Some(Place::Slot(slot)),
                ..become_(format!("DROP TABLE crash_{slot}.t"), Some(0))
            },
            (Some(_), 3..6) => Act {
                statement: format!("TRUNCATE crash_{slot}.t"),
                writes: Vec::new(),
                empties: Some(Place::Slot(slot)),
            },
            _ => {
                let target = format!("crash_{slot}.t (key, version)");
                self.rows(version, &target, |key| Key::SlotRow { slot, key })
            }
        }
    }

    /// An unlogged batch of some rows with one value.
    fn rows(&mut self, version: u64, target: &str, key_of: impl Fn(u32) -> Key) -> Act {
        let first = self.dice.between(0, KEY_COUNT - WRITE_COUNT as u64) as u32;
        let keys = first..first + WRITE_COUNT as u32;
        let inserts: Vec<String> =
            keys.clone().map(|key| format!("INSERT INTO {target} VALUES ({key}, {version});")).collect();
        let statement = format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", inserts.join(" "));
        Act { statement, writes: keys.map(|key| (key_of(key), Some(version))).collect(), empties: None }
    }
}

/// The options of a table, and how to know them again.
pub(super) struct TableOptions {
    pub(super) text: String,
    compaction: &'static str,
    compression: &'static str,
}

impl TableOptions {
    /// They follow from the version, so that a mixture of two changes is seen.
    pub(super) fn of(version: u64) -> TableOptions {
        let mut dice = Dice(version);
        let mut turn = |count: usize| dice.between(0, count as u64) as usize;
        let (class, options) = COMPACTIONS[turn(COMPACTIONS.len())];
        let (compression, compression_options) = COMPRESSIONS[turn(COMPRESSIONS.len())];
        let prefetch = PREFETCHES[turn(PREFETCHES.len())];
        let flush_period = FLUSH_PERIODS[turn(FLUSH_PERIODS.len())];
        let text = format!(
            "comment = '{version}' AND compaction = {{'class': '{class}', {options}}} \
             AND compression = {{{compression_options}}} \
             AND caching = {{'keys': 'ALL', 'rows_per_partition': 'NONE'{prefetch}}} \
             AND memtable_flush_period_in_ms = {flush_period}"
        );
        TableOptions { text, compaction: class, compression }
    }

    /// Are these the maps that the schema shows?
    pub(super) fn are(&self, compaction: &[u8], compression: &[u8]) -> bool {
        let has = |map: &[u8], text: &str| map.windows(text.len()).any(|part| part == text.as_bytes());
        has(compaction, self.compaction) && has(compression, self.compression)
    }
}
