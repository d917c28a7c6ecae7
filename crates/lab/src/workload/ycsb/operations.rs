//! What a thread does: rows loaded in their order, then operations of a mix.

use std::sync::Arc;

use protocol::Rows;

use super::Kind;
use super::chooser::Chooser;
use super::table::Table;
use crate::generator::{Discrete, Random};
use crate::workload::acknowledged::Acknowledged;
use crate::workload::{Answer, Operation, Operations, Part, Request, Step, rows_of};

/// Writes every n-th row, once.
pub(super) struct Loader {
    table: Arc<Table>,
    next: u64,
    row_count: u64,
    step: u64,
    kind: usize,
    random: Random,
}

impl Loader {
    /// One part of so many rows; its operations count as this kind.
    pub(super) fn new(table: Arc<Table>, row_count: u64, part: Part, kind: usize) -> Loader {
        let random = Random::new(part.seed, part.index as u32);
        Loader { table, next: part.index as u64, row_count, step: part.count as u64, kind, random }
    }
}

impl Operations for Loader {
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation> {
        let row = self.next;
        if row >= self.row_count {
            return None;
        }
        self.next += self.step;
        self.table.insert(row, self.random.next(), request);
        Some(Operation { kind: self.kind, row, ..Operation::default() })
    }

    fn fail(&mut self, _: &Operation) {}

    fn take(&mut self, _: &mut Operation, _: Answer<'_>, _: &mut Request<'_>) -> Step {
        Step::Done
    }
}

/// Operations of a mix.
pub(super) struct Mixed {
    table: Arc<Table>,
    kinds: &'static [(Kind, f64)],
    /// Of a kind, by its place.
    choice: Discrete<usize>,
    chooser: Chooser,
    rows: Arc<Acknowledged>,
    random: Random,
}

impl Mixed {
    /// One thread's.
    pub(super) fn new(
        table: Arc<Table>,
        kinds: &'static [(Kind, f64)],
        chooser: Chooser,
        rows: Arc<Acknowledged>,
        part: Part,
    ) -> Mixed {
        let weights: Vec<(usize, f64)> = kinds.iter().map(|(_, weight)| *weight).enumerate().collect();
        let choice = Discrete::new(&weights);
        let random = Random::new(part.seed, part.index as u32);
        Mixed { table, kinds, choice, chooser, rows, random }
    }

    fn update(&mut self, row: u64, request: &mut Request<'_>) {
        let field = self.random.below(self.table.field_count as u64) as usize;
        let salt = self.random.next();
        self.table.update(row, field, salt, request);
    }

    /// Looks at the rows of an answer; a row that must be there and is not is a fault, too.
    fn fault(&self, kind: Kind, row: u64, rows: &Rows) -> Option<String> {
        let most = if kind == Kind::Scan { self.table.scan_rows_max } else { 1 };
        match rows.row_count {
            0 if self.rows.is_doubtful(row) => return None,
            0 => return Some("a row that was written is not there".to_owned()),
            count if count > most => return Some("there are more rows than were asked for".to_owned()),
            _ => {}
        }
        let asked = (kind != Kind::Scan).then_some(row);
        rows_of(rows, self.table.field_count + 1, |cells| self.table.fault(asked, cells))
    }
}

impl Operations for Mixed {
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation> {
        let kind = self.choice.draw(&mut self.random);
        let row = match self.kinds[kind].0 {
            Kind::Insert => self.rows.begin(),
            _ => self.chooser.next(self.rows.count(), &mut self.random),
        };
        match self.kinds[kind].0 {
            Kind::Read | Kind::ReadModifyWrite => self.table.read(row, request),
            Kind::Update => self.update(row, request),
            Kind::Insert => self.table.insert(row, self.random.next(), request),
            Kind::Scan => {
                let row_count = 1 + self.random.below(self.table.scan_rows_max.into()) as u32;
                self.table.scan(row, row_count, request);
            }
        }
        Some(Operation { kind, row, ..Operation::default() })
    }

    fn fail(&mut self, operation: &Operation) {
        if self.kinds[operation.kind].0 == Kind::Insert {
            self.rows.doubt(operation.row);
        }
    }

    fn take(&mut self, operation: &mut Operation, answer: Answer<'_>, request: &mut Request<'_>) -> Step {
        let kind = self.kinds[operation.kind].0;
        match (kind, answer) {
            (Kind::Insert, Answer::Done) => self.rows.acknowledge(operation.row),
            (Kind::Update, Answer::Done) => {}
            (Kind::ReadModifyWrite, Answer::Done) if operation.answered_count == 1 => {}
            (Kind::Read | Kind::Scan, Answer::Rows(rows)) => {
                if let Some(fault) = self.fault(kind, operation.row, rows) {
                    return Step::Wrong(fault);
                }
            }
            (Kind::ReadModifyWrite, Answer::Rows(rows)) if operation.answered_count == 0 => {
                if let Some(fault) = self.fault(kind, operation.row, rows) {
                    return Step::Wrong(fault);
                }
                self.update(operation.row, request);
                return Step::GoOn;
            }
            (_, Answer::Rows(_)) => return Step::Wrong("a write was answered with rows".to_owned()),
            (_, Answer::Done) => return Step::Wrong("a read was answered without rows".to_owned()),
        }
        Step::Done
    }
}
