//! What clients do: random writes of every kind, and reads of every shape, over their own keys.

use std::sync::Arc;
use std::time::Duration;

use coordinator::Coordinator;
use read::{ReadCommand, ReadLimits, ReadTarget};
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, DeletionTime, Liveness,
    Mutation, MutationBuilder, PartitionKey, RangeTombstone, RingRange, Row, RowBuilder, Slice, Slices,
};
use schema::{Column, Table, TableId};
use types::{CqlType, Token};

use crate::dice::Dice;
use crate::world::{self, KEYS_PER_CLIENT, NARROW, WIDE};

/// Values of the first clustering column that most writes use.
const PLACE_COUNT: usize = 8;

/// Something a client does.
#[derive(Debug)]
pub(crate) enum Op {
    Write { mutations: Vec<Mutation>, is_logged: bool },
    Read(Box<ReadCommand>),
    Flush(TableId),
    Compact(TableId),
    Rest(Duration),
}

/// Makes up what one client does.
pub(crate) struct Imagination<'a> {
    pub(crate) dice: &'a Dice,
    pub(crate) client: usize,
    pub(crate) coordinator: &'a Coordinator,
}

/// The times of one statement.
#[derive(Clone, Copy)]
struct Times {
    timestamp: i64,
    now: u32,
    /// 0 for what stays.
    ttl: u32,
}

impl Times {
    fn deletion(self) -> DeletionTime {
        DeletionTime { timestamp: self.timestamp, local_deletion_time: self.now }
    }

    fn cell(self, value: &[u8]) -> CellRef<'_> {
        match self.ttl {
            0 => CellRef::live(self.timestamp, value),
            ttl => CellRef::expiring(self.timestamp, ttl, self.now + ttl, value),
        }
    }

    fn tombstone(self) -> CellRef<'static> {
        CellRef::tombstone(self.timestamp, self.now)
    }

    fn liveness(self) -> Liveness {
        match self.ttl {
            0 => Liveness::at(self.timestamp),
            ttl => Liveness::expiring(self.timestamp, ttl, self.now + ttl),
        }
    }
}

impl Imagination<'_> {
    /// The next thing to do.
    pub(crate) fn next(&self) -> Op {
        let tables = world::tables(&self.coordinator.schema());
        let table = self.dice.pick(&tables);
        match self.dice.below(100) {
            0..45 => Op::Write { mutations: vec![self.mutation(table)], is_logged: false },
            45..55 => Op::Write { mutations: self.batch(&tables), is_logged: true },
            55..60 => Op::Write { mutations: self.batch(&tables), is_logged: false },
            60..92 => Op::Read(Box::new(self.read(table))),
            92..95 => Op::Flush(table.id()),
            95..97 => Op::Compact(table.id()),
            _ => Op::Rest(Duration::from_millis(self.dice.between(1, 3_000))),
        }
    }

    fn batch(&self, tables: &[Arc<Table>]) -> Vec<Mutation> {
        (0..self.dice.between(2, 5)).map(|_| self.mutation(self.dice.pick(tables).as_ref())).collect()
    }

    fn own_key(&self) -> PartitionKey {
        world::key(self.client, self.dice.below(KEYS_PER_CLIENT))
    }

    fn times(&self, table: &Table) -> Times {
        let now = self.coordinator.now_seconds();
        if table.name() == WIDE && self.dice.one_in(6) {
            // A timestamp of the client's own: old, and tied with others now and then.
            return Times { timestamp: self.dice.between(1, 12) as i64, now, ttl: 0 };
        }
        let ttl = if self.dice.one_in(5) { self.dice.between(1, 12) as u32 } else { 0 };
        Times { timestamp: self.coordinator.next_timestamp(), now, ttl }
    }

    /// A change of one of the client's own partitions.
    fn mutation(&self, table: &Table) -> Mutation {
        let times = self.times(table);
        let mut mutation = MutationBuilder::new(table.id(), self.own_key());
        if table.name() == NARROW {
            match self.dice.below(6) {
                0 => _ = mutation.partition_deletion(times.deletion()),
                _ => _ = mutation.row(self.row(table, Clustering::EMPTY, times)),
            }
            return mutation.finish();
        }
        match self.dice.below(20) {
            0 => _ = mutation.partition_deletion(times.deletion()),
            1 | 2 => {
                let tombstone = RangeTombstone { slice: self.slice(table), deletion: times.deletion() };
                mutation.range(tombstone);
            }
            3 | 4 => {
                let row = RowBuilder::new(&self.place(table), Liveness::NONE, times.deletion()).finish();
                mutation.row(row);
            }
            5 | 6 if !table.static_columns().is_empty() => {
                mutation.static_row(self.static_row(table, times));
            }
            7 => self.many_rows(table, times, &mut mutation),
            _ => {
                mutation.row(self.row(table, self.place(table), times));
            }
        }
        mutation.finish()
    }

    /// Enough rows to need a row index and to lie across chunks.
    fn many_rows(&self, table: &Table, times: Times, mutation: &mut MutationBuilder) {
        let first = self.dice.below(50);
        for number in first..first + self.dice.between(10, 80) as usize {
            mutation.row(self.row(table, clustering(table, number, self.dice.below(2)), times));
        }
    }

    fn place(&self, table: &Table) -> Clustering {
        clustering(table, self.dice.below(PLACE_COUNT), self.dice.below(3))
    }

    fn static_row(&self, table: &Table, times: Times) -> Row {
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        for column in table.static_columns() {
            let value = self.text();
            let cell = if self.dice.one_in(4) { times.tombstone() } else { times.cell(&value) };
            row.cell(column.id, cell);
        }
        row.finish()
    }

    fn row(&self, table: &Table, at: Clustering, times: Times) -> Row {
        let is_insert = self.dice.one_in(2);
        let liveness = if is_insert { times.liveness() } else { Liveness::NONE };
        let mut row = RowBuilder::new(&at, liveness, DeletionTime::LIVE);
        let mut columns: Vec<&Column> = table.regular_columns().iter().collect();
        columns.sort_by_key(|column| column.id);
        let sure = self.dice.below(columns.len().max(1));
        for (index, column) in columns.into_iter().enumerate() {
            if index != sure && self.dice.one_in(2) {
                continue;
            }
            self.column(&mut row, column, times);
        }
        row.finish()
    }

    fn column(&self, row: &mut RowBuilder, column: &Column, times: Times) {
        if column.cql_type.is_multi_cell() {
            return self.collection(row, column, times);
        }
        let value = match column.cql_type {
            CqlType::Int => (self.dice.below(1000) as i32).to_be_bytes().to_vec(),
            _ => self.text(),
        };
        let cell = if self.dice.one_in(6) { times.tombstone() } else { times.cell(&value) };
        row.cell(column.id, cell);
    }

    fn collection(&self, row: &mut RowBuilder, column: &Column, times: Times) {
        let is_set = matches!(column.cql_type, CqlType::Set { .. });
        let mut numbers: Vec<i32> = (0..5).filter(|_| self.dice.one_in(2)).collect();
        numbers.dedup();
        let elements: Vec<(Vec<u8>, Vec<u8>, bool)> = numbers
            .into_iter()
            .map(|number| {
                let path = if is_set { number.to_be_bytes().to_vec() } else { vec![b'a' + number as u8] };
                let value = if is_set { Vec::new() } else { self.text() };
                (path, value, self.dice.one_in(4))
            })
            .collect();
        // An overwrite leaves a deletion just older than its own cells.
        let deletion = match self.dice.below(3) {
            0 => DeletionTime { timestamp: times.timestamp - 1, local_deletion_time: times.now },
            _ => DeletionTime::LIVE,
        };
        let cells = elements.iter().map(|(path, value, is_gone)| {
            let cell = if *is_gone { times.tombstone() } else { times.cell(value) };
            cell.with_path(path)
        });
        row.complex(column.id, deletion, cells);
    }

    fn text(&self) -> Vec<u8> {
        let length = match self.dice.below(20) {
            0 => self.dice.between(1_000, 6_000),
            1..5 => self.dice.between(100, 400),
            _ => self.dice.between(0, 20),
        };
        let first = self.dice.below(26) as u8;
        (0..length).map(|index| b'a' + ((u64::from(first) + index * 7) % 26) as u8).collect()
    }

    fn slice(&self, table: &Table) -> Slice {
        let bound = |kinds: [BoundKind; 2]| {
            let kind = kinds[self.dice.below(2)];
            match self.dice.below(4) {
                0 => None,
                1 | 2 => {
                    let mut prefix = ClusteringBuilder::new();
                    prefix.push(Some(&(self.dice.below(PLACE_COUNT) as i32).to_be_bytes()));
                    Some(Bound { kind, prefix: prefix.finish() })
                }
                _ => Some(Bound { kind, prefix: self.place(table) }),
            }
        };
        Slice {
            start: bound([BoundKind::InclusiveStart, BoundKind::ExclusiveStart]).unwrap_or(Bound::BOTTOM),
            end: bound([BoundKind::InclusiveEnd, BoundKind::ExclusiveEnd]).unwrap_or(Bound::TOP),
        }
    }

    fn read(&self, table: &Arc<Table>) -> ReadCommand {
        let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
        let slices = match self.dice.below(6) {
            _ if table.clustering().is_empty() => Slices::all(),
            0..3 => Slices::all(),
            3 => Slices::new(vec![Slice::prefix(self.place(table))], &comparator),
            _ => {
                let count = self.dice.between(1, 3);
                Slices::new((0..count).map(|_| self.slice(table)).collect(), &comparator)
            }
        };
        let target = match self.dice.below(10) {
            0 => ReadTarget::Range(RingRange::ALL),
            1 => {
                let (a, b) = (self.own_key().token, self.own_key().token);
                ReadTarget::Range(RingRange::tokens(a.min(b), Token(a.max(b).0.saturating_sub(1))))
            }
            2..5 => {
                let mut keys: Vec<_> = (0..self.dice.between(2, 5)).map(|_| self.own_key()).collect();
                keys.sort();
                keys.dedup();
                if self.dice.one_in(2) {
                    keys.reverse();
                }
                ReadTarget::Keys(keys)
            }
            _ => ReadTarget::Keys(vec![self.own_key()]),
        };
        let limits = ReadLimits {
            row_count: *self.dice.pick(&[1, 2, 7, 30, 5_000]),
            rows_per_partition: *self.dice.pick(&[1, 3, u32::MAX, u32::MAX, u32::MAX]),
            bytes: *self.dice.pick(&[300, 4_000, 4 << 20]),
            // No row of this workload is as large.
            bytes_max: *self.dice.pick(&[100_000, 1_000_000, usize::MAX]),
        };
        let reversed = matches!(target, ReadTarget::Keys(_)) && self.dice.one_in(3);
        let command = ReadCommand::new(Arc::clone(table), target, self.coordinator.now_seconds());
        ReadCommand { slices, reversed, limits, ..command }
    }
}

fn clustering(table: &Table, first: usize, second: usize) -> Clustering {
    let mut clustering = ClusteringBuilder::new();
    for (index, column) in table.clustering().iter().enumerate() {
        match (index, &column.cql_type) {
            (_, CqlType::Int) => clustering.push(Some(&(first as i32).to_be_bytes())),
            _ => clustering.push(Some(&b"xyz"[..second.min(3)])),
        };
    }
    clustering.finish()
}
