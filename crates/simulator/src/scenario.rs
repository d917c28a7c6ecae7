//! A run: several lives of one machine, clients at work in each, every answer checked.
//!
//! 1. The node starts on what the last life left. What was under way when that ended must be there
//!    whole or not at all, unit by unit; then it is written again, so that it surely is there.
//! 2. Clients work side by side, each on keys of its own: it knows what every read must give.
//! 3. Between two rounds of that, alone: a truncation, a change of the schema, a flush of all.
//! 4. All is read back and compared, and the life ends as the seed says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use schema::{Schema, Transformation};

use crate::dice::Dice;
use crate::faults::Scale;
use crate::life::Life;
use crate::model::{Model, Unit};
use crate::node::Setup;
use crate::{Events, Fate, Machine, MachineOptions, world};

/// Rounds of a life, if it lasts.
pub(crate) const ROUND_COUNT: u64 = 3;
/// Pages after which a read is taken to go round in circles.
pub(crate) const PAGES_MAX: usize = 20_000;

/// How often a read is tried again because a second passed while it went on: what expires in it
/// may be there on one page and be compacted away before the next.
pub(crate) const TRIES_MAX: usize = 30;

/// No life lasts longer, in virtual time.
pub(crate) const LIFE_MAX: Duration = Duration::from_secs(1_800);

/// A node that did what it must not.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Violation {
    /// In words.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(what: impl Into<String>) -> Violation {
        Violation { what: what.into() }
    }
}

/// Why a life did not go on.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The node was wrong.
    Violation(Violation),
    /// The node said that it could not: right when the disk fails.
    Fault(String),
}

pub(crate) fn wrong(what: impl Into<String>) -> Stopped {
    Stopped::Violation(Violation::new(what))
}

impl From<Violation> for Stopped {
    fn from(violation: Violation) -> Self {
        Stopped::Violation(violation)
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed that repeats it.
    pub seed: u64,
    /// What was found wrong, if anything.
    pub violation: Option<Violation>,
    /// What happened.
    pub events: Events,
    /// How much that was; nothing where it is not counted.
    pub scale: Scale,
}

/// Runs one seed.
pub fn simulate(seed: u64) -> Outcome {
    let dice = Dice::new(seed, 0, 1_000);
    let options = MachineOptions {
        io_delay_max: Duration::from_micros(dice.between(0, 6_000)),
        background_delay_max: Duration::from_millis(dice.between(0, 300)),
        ..MachineOptions::default()
    };
    let mut machine = Machine::new(seed, options);
    let run = Rc::new(Run { seed, state: RefCell::new(State::new()) });
    let mut violation = None;
    for number in 1..=dice.between(3, 6) {
        let plan = Plan::roll(seed, number);
        run.note(format_args!("life {number}: {} shards, {:?}", plan.setup.shard_count, plan.fate));
        let disk = machine.disk().clone();
        let (plan, this) = (Rc::new(plan), Rc::clone(&run));
        let ended = machine.live(plan.fate, |runtime| {
            let life = Life { run: this, plan, runtime, disk };
            async move { life.live_in_time().await }
        });
        run.note(format_args!("life {number} ended: {}", if ended.is_some() { "by itself" } else { "cut" }));
        if let Some(Err(found)) = ended {
            violation = Some(found);
            break;
        }
    }
    let events = run.state.borrow().events.clone();
    Outcome { seed, violation, events, scale: Scale::default() }
}

/// What outlives every life.
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) state: RefCell<State>,
}

pub(crate) struct State {
    pub(crate) model: Model,
    /// The schema after the last change that was acknowledged, or found after a restart.
    pub(crate) schema: Arc<Schema>,
    /// What each client had under way, in parts that each are whole or absent.
    pub(crate) under_way: BTreeMap<usize, Vec<Unit>>,
    /// What was under way between rounds.
    pub(crate) truncating: Vec<Unit>,
    pub(crate) changing: Option<Transformation>,
    pub(crate) events: Events,
}

impl State {
    pub(crate) fn new() -> State {
        State {
            model: Model::default(),
            schema: Arc::new(world::base_schema()),
            under_way: BTreeMap::new(),
            truncating: Vec::new(),
            changing: None,
            events: Events::default(),
        }
    }

    pub(crate) fn apply(&mut self, units: &[Unit]) {
        for unit in units {
            self.model.apply(unit, &self.schema);
        }
    }

    /// Takes over a schema in force; what was in tables that are gone is forgotten.
    pub(crate) fn take_schema(&mut self, schema: Arc<Schema>) {
        for table in world::tables(&self.schema) {
            if schema.table_by_id(table.id()).is_none() {
                self.model.drop_table(table.id());
            }
        }
        self.schema = schema;
        self.changing = None;
    }
}

impl Run {
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.state.borrow_mut().events.add(line);
    }
}

/// What a seed has in mind for a life.
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) setup: Setup,
    pub(crate) fate: Fate,
    pub(crate) op_count: u64,
    pub(crate) flush_at_stop: bool,
    /// Does the disk fail now and then?
    pub(crate) has_gremlin: bool,
}

impl Plan {
    pub(crate) fn roll(seed: u64, number: u64) -> Plan {
        let dice = Dice::new(seed, number, 2_000);
        let time = Duration::from_millis(dice.between(1, 40_000));
        let fate = match dice.below(8) {
            0 => Fate::LiveOn,
            1 => Fate::KillAfter(time),
            2 | 3 => Fate::PowerCutAfter(time),
            4 => Fate::PowerCutAfterChanges(dice.between(1, 60)),
            _ => Fate::PowerCutAfterChanges(dice.between(60, 4_000)),
        };
        // Clearing a full disk would give the power back, too.
        let is_countdown = matches!(fate, Fate::PowerCutAfterChanges(_));
        Plan {
            number,
            setup: Setup::roll(&dice).on_disks_of(seed),
            fate,
            op_count: dice.between(5, 40),
            flush_at_stop: dice.one_in(2),
            has_gremlin: !is_countdown && dice.one_in(2),
        }
    }
}
