//! What a thread does: rows loaded in their order, then operations by weight.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::Rows;

use super::audit::Auditing;
use super::bound::Bound;
use super::choice::Chooser;
use super::held::{Held, number_of};
use super::maker::Moment;
use super::span::Distribution;
use super::text::Effect;
use crate::generator::{Discrete, Random};
use crate::workload::acknowledged::Acknowledged;
use crate::workload::{Answer, Operation, Operations, Part, Request, Step, rows_of};

/// A script that is ready, shared by threads and repetitions.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) partition_count: u64,
    pub(super) rows_per_partition: u64,
    pub(super) load: Option<Bound>,
    pub(super) operations: Vec<Prepared>,
    /// Partitions that are there.
    pub(super) partitions: Acknowledged,
    /// What they hold, if some statement asks.
    pub(super) held: Held,
    /// What is counted, if something is.
    pub(super) auditing: Option<Auditing>,
}

/// One kind of operation.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) weight: f64,
    pub(super) partition: Distribution,
    pub(super) row: Distribution,
    /// Take turns.
    pub(super) turns: Vec<Bound>,
    pub(super) first: Option<Bound>,
    /// The kind that it counts as when it was not applied.
    pub(super) kind_not_applied: usize,
}

/// The place of an operation's `first` among its statements.
const FIRST: usize = usize::MAX;
/// The operation changes no number that a partition holds.
const HOLDS_NOTHING: u64 = u64::MAX;

impl Stage {
    /// What a statement that was applied does to what is known.
    fn hold(&self, operation: &Operation) {
        if operation.note != HOLDS_NOTHING {
            self.held.set(operation.row, Some(operation.note));
        }
    }

    /// Puts a request, and says what its partition holds if it is applied.
    pub(super) fn put(
        &self,
        bound: &Bound,
        partition: u64,
        row: u64,
        thread: &mut Thread,
        request: &mut Request<'_>,
    ) -> u64 {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let partition = bound.first_partition(partition, self.partition_count);
        let held = self.held.of(partition);
        let mut moment = Moment { partition, row, now_ms, held, random: &mut thread.random };
        bound.put(&mut moment, self.partition_count, &mut thread.values, request);
        bound.holds_after(&mut moment).unwrap_or(HOLDS_NOTHING)
    }
}

/// What a thread has of its own.
pub(super) struct Thread {
    random: Random,
    /// Buffers of values.
    values: Vec<Vec<u8>>,
}

impl Thread {
    pub(super) fn new(part: Part) -> Thread {
        Thread { random: Random::new(part.seed, part.index as u32), values: Vec::new() }
    }
}

/// Writes every n-th row, once.
pub(super) struct Loader {
    stage: Arc<Stage>,
    next: u64,
    step: u64,
    thread: Thread,
}

impl Loader {
    /// One part of all rows.
    pub(super) fn new(stage: Arc<Stage>, part: Part) -> Loader {
        Loader { stage, next: part.index as u64, step: part.count as u64, thread: Thread::new(part) }
    }
}

impl Operations for Loader {
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation> {
        let stage = self.stage.clone();
        let bound = stage.load.as_ref()?;
        let (partition, row) = (self.next / stage.rows_per_partition, self.next % stage.rows_per_partition);
        if partition >= stage.partition_count {
            return None;
        }
        self.next += self.step;
        let note = stage.put(bound, partition, row, &mut self.thread, request);
        Some(Operation { row: partition, note, ..Operation::default() })
    }

    fn fail(&mut self, _: &Operation) {}

    fn take(&mut self, operation: &mut Operation, answer: Answer<'_>, _: &mut Request<'_>) -> Step {
        match answer {
            Answer::Rows(rows) if !Outcome::of(rows).is_applied => {}
            _ => self.stage.hold(operation),
        }
        Step::Done
    }
}

/// Operations by weight.
pub(super) struct Mixed {
    stage: Arc<Stage>,
    /// Of a kind, by its place.
    choice: Discrete<usize>,
    kinds: Vec<Kind>,
    thread: Thread,
}

/// What a thread has of its own for a kind of operation.
struct Kind {
    partitions: Chooser,
    rows: Chooser,
    /// The statement whose turn it is.
    turn: usize,
    /// What all turns of a sequence are about, before it goes on to the next.
    partition: Option<u64>,
}

impl Mixed {
    /// One thread's.
    pub(super) fn new(stage: Arc<Stage>, part: Part) -> Mixed {
        let weights: Vec<(usize, f64)> = stage.operations.iter().map(|one| one.weight).enumerate().collect();
        let kind = |one: &Prepared| Kind {
            partitions: Chooser::new(one.partition, stage.partition_count, part),
            rows: Chooser::new(one.row, stage.rows_per_partition, part),
            turn: 0,
            partition: None,
        };
        let kinds = stage.operations.iter().map(kind).collect();
        Mixed { choice: Discrete::new(&weights), kinds, thread: Thread::new(part), stage }
    }
}

impl Operations for Mixed {
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation> {
        let stage = self.stage.clone();
        let index = self.choice.draw(&mut self.thread.random);
        let (prepared, kind) = (&stage.operations[index], &mut self.kinds[index]);
        let turn_count = prepared.turns.len();
        let goes_on = prepared.partition == Distribution::Sequence && !kind.turn.is_multiple_of(turn_count);
        let same = kind.partition.filter(|_| goes_on);
        let partition =
            same.unwrap_or_else(|| kind.partitions.next(&stage.partitions, &mut self.thread.random));
        kind.partition = Some(partition);
        let row = kind.rows.next(&stage.partitions, &mut self.thread.random);
        let (statement, bound) = match &prepared.first {
            Some(first) if stage.held.of(partition).is_none() => (FIRST, first),
            _ => {
                let turn = kind.turn % turn_count;
                kind.turn += 1;
                (turn, &prepared.turns[turn])
            }
        };
        let note = stage.put(bound, partition, row, &mut self.thread, request);
        Some(Operation { kind: index, row: partition, statement, note, ..Operation::default() })
    }

    fn fail(&mut self, operation: &Operation) {
        self.stage.auditing.iter().for_each(|auditing| auditing.doubt(operation.kind));
        // A new partition that may be there or not must hold up none behind it.
        if self.stage.operations[operation.kind].partition == Distribution::Next {
            self.stage.partitions.doubt(operation.row);
        }
    }

    fn take(&mut self, operation: &mut Operation, answer: Answer<'_>, _: &mut Request<'_>) -> Step {
        let prepared = &self.stage.operations[operation.kind];
        let first = prepared.first.as_ref().filter(|_| operation.statement == FIRST);
        let bound = first.unwrap_or_else(|| &prepared.turns[operation.statement]);
        match (bound.effect, answer) {
            (Effect::Read, Answer::Rows(rows)) => match bound.fault(rows) {
                Some(fault) => return Step::Wrong(fault),
                None => return Step::Done,
            },
            (Effect::Write, Answer::Done) => {
                self.stage.auditing.iter().for_each(|auditing| auditing.acknowledge(operation.kind));
                self.stage.hold(operation);
            }
            (Effect::Condition, Answer::Rows(rows)) => match Outcome::of(rows) {
                Outcome { is_applied: true, .. } => self.stage.hold(operation),
                Outcome { held, .. } => {
                    self.stage.held.set(operation.row, held);
                    operation.kind = prepared.kind_not_applied;
                    return Step::Done;
                }
            },
            (_, Answer::Rows(_)) => return Step::Wrong("a write was answered with rows".to_owned()),
            (_, Answer::Done) => return Step::Wrong("rows were asked for, and none came".to_owned()),
        }
        if prepared.partition == Distribution::Next {
            self.stage.partitions.acknowledge(operation.row);
        }
        Step::Done
    }
}

/// The answer to a condition.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    is_applied: bool,
    /// What is there instead of what was expected; none if nothing is there.
    held: Option<u64>,
}

impl Outcome {
    /// Takes an answer apart: `[applied]`, and behind it what the condition asked for. An INSERT that finds a row is
    /// told all of it, in an order that is not known here; then the number counts as 0, and an UPDATE that expects it
    /// will be told better.
    fn of(rows: &Rows) -> Outcome {
        let mut outcome = Outcome::default();
        rows_of(rows, usize::MAX, |cells| {
            outcome.is_applied =
                cells.next().flatten().is_some_and(|cell| cell.first().is_some_and(|byte| *byte != 0));
            let held: Vec<Option<&[u8]>> = cells.collect();
            outcome.held = match held.as_slice() {
                [] => None,
                [alone] => alone.and_then(number_of),
                _ => Some(0),
            };
            None
        });
        outcome
    }
}
