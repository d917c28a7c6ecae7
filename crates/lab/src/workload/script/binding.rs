//! A script and its prepared statements put together: all that threads need, or why it can not be.

use protocol::Prepared;

use super::audit::Auditing;
use super::bound::Bound;
use super::check::Written;
use super::fitting::Fitting;
use super::held::Held;
use super::operations::{self, Stage};
use super::text::{Effect, OperationText, ScriptText, StatementText};
use crate::workload::acknowledged::Acknowledged;

/// A script with its statements as a server prepared them.
pub(super) struct Binding<'a> {
    text: &'a ScriptText,
    partition_count: u64,
    /// Each with who has it.
    statements: Vec<(String, StatementText)>,
    prepared: &'a [Prepared],
}

impl<'a> Binding<'a> {
    /// # Errors
    /// A statement has more or fewer markers than values.
    pub(super) fn new(
        text: &'a ScriptText,
        partition_count: u64,
        prepared: &'a [Prepared],
    ) -> Result<Binding<'a>, String> {
        let statements = text.statements();
        assert_eq!(statements.len(), prepared.len(), "each statement is prepared once");
        let binding = Binding { text, partition_count, statements, prepared };
        for (place, (_, statement)) in binding.statements.iter().enumerate() {
            let value_count = statement.values.len() * statement.times as usize;
            let marker_count = prepared[place].bind.columns.len();
            if marker_count != value_count {
                let why = format!("there are {marker_count} markers and {value_count} values");
                return Err(binding.of_statement(place, why));
            }
        }
        Ok(binding)
    }

    /// All that threads need.
    ///
    /// # Errors
    /// A value does not fit its marker: why, in words.
    pub(super) fn stage(&self) -> Result<Stage, String> {
        let written = self.written()?;
        let mut places = 0..self.statements.len();
        let mut next = |count: usize| -> Result<Vec<Bound>, String> {
            places.by_ref().take(count).map(|place| self.bound(place, &written)).collect()
        };
        let load = next(usize::from(self.text.load.is_some()))?.pop();
        let mut operations = Vec::new();
        let mut kind_not_applied = self.text.operation.len();
        for text in &self.text.operation {
            let turns = next(text.statements().len())?;
            let first = next(usize::from(text.first.is_some()))?.pop();
            operations.push(self.operation(text, turns, first, kind_not_applied));
            kind_not_applied += usize::from(text.has_condition());
        }
        let audit = next(usize::from(self.text.audit.is_some()))?.pop();
        let auditing = audit.zip(self.text.audit.as_ref()).and_then(|(bound, text)| {
            let kind = self.text.operation.iter().position(|operation| operation.name == text.counts)?;
            Some(Auditing::new(bound, kind))
        });
        let held_count = if self.text.holds() { self.partition_count } else { 0 };
        Ok(Stage {
            partition_count: self.partition_count,
            rows_per_partition: self.text.rows_per_partition,
            load,
            operations,
            partitions: Acknowledged::new(self.partition_count),
            held: Held::new(held_count),
            auditing,
        })
    }

    fn operation(
        &self,
        text: &OperationText,
        turns: Vec<Bound>,
        first: Option<Bound>,
        kind_not_applied: usize,
    ) -> operations::Prepared {
        operations::Prepared {
            weight: text.weight,
            partition: text.partition.unwrap_or(self.text.partition),
            row: text.row.unwrap_or(self.text.row),
            turns,
            first,
            kind_not_applied,
        }
    }

    /// What all statements write.
    fn written(&self) -> Result<Vec<Written>, String> {
        let mut written = Vec::new();
        for (place, (_, statement)) in self.statements.iter().enumerate() {
            if statement.effect()? != Effect::Read {
                let columns = self.fitting(place).written();
                written.extend(columns.map_err(|why| self.of_statement(place, why))?);
            }
        }
        Ok(written)
    }

    fn bound(&self, place: usize, written: &[Written]) -> Result<Bound, String> {
        let (statement, fitting) = (&self.statements[place].1, self.fitting(place));
        let bound = Bound::new(place, statement, &self.prepared[place], fitting, written);
        bound.map_err(|why| self.of_statement(place, why))
    }

    fn fitting(&self, place: usize) -> Fitting<'_> {
        Fitting {
            generators: &self.text.values,
            partition_count: self.partition_count,
            rows_per_partition: self.text.rows_per_partition,
            values: &self.statements[place].1.values,
            markers: &self.prepared[place].bind.columns[..self.statements[place].1.values.len()],
        }
    }

    fn of_statement(&self, place: usize, why: String) -> String {
        let (whose, statement) = &self.statements[place];
        format!("{whose}: {why} (in `{}`)", statement.statement)
    }
}
