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

use coordinator::{Consistency, Coordinator, CoordinatorError};
use ring::Sharding;
use rows::{PartitionKey, Slices};
use runtime::memory_disk::Faults;
use runtime::{MemoryDisk, Runtime};
use schema::{ColumnKind, DroppedColumn, Schema, Table, TableId, Transformation};
use storage::{PartitionRows, ReadCommand, ReadLimits, ReadTarget, RingRange};
use types::CqlType;

use crate::dice::Dice;
use crate::gremlin::make_trouble;
use crate::model::{Model, Unit, View};
use crate::node::{Setup, SimulatedNode};
use crate::workload::{Imagination, Op};
use crate::world::{self, CHURN, CLIENT_COUNT, KEYSPACE};
use crate::{Events, Fate, Machine, MachineOptions};

/// Rounds of a life, if it lasts.
const ROUND_COUNT: u64 = 3;
/// Pages after which a read is taken to go round in circles.
const PAGES_MAX: usize = 20_000;

/// How often a read is tried again because a second passed while it went on: what expires in it
/// may be there on one page and be compacted away before the next.
const TRIES_MAX: usize = 30;

/// No life lasts longer, in virtual time.
const LIFE_MAX: Duration = Duration::from_secs(1_800);

/// A node that did what it must not.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Violation {
    /// In words.
    pub what: String,
}

impl Violation {
    fn new(what: impl Into<String>) -> Violation {
        Violation { what: what.into() }
    }
}

/// Why a life did not go on.
#[derive(Debug)]
enum Stopped {
    /// The node was wrong.
    Violation(Violation),
    /// The node said that it could not: right when the disk fails.
    Fault(String),
}

fn wrong(what: impl Into<String>) -> Stopped {
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
    Outcome { seed, violation, events }
}

/// What outlives every life.
struct Run {
    seed: u64,
    state: RefCell<State>,
}

struct State {
    model: Model,
    /// The schema after the last change that was acknowledged, or found after a restart.
    schema: Arc<Schema>,
    /// What each client had under way, in parts that each are whole or absent.
    under_way: BTreeMap<usize, Vec<Unit>>,
    /// What was under way between rounds.
    truncating: Vec<Unit>,
    changing: Option<Transformation>,
    events: Events,
}

impl State {
    fn new() -> State {
        State {
            model: Model::default(),
            schema: Arc::new(world::base_schema()),
            under_way: BTreeMap::new(),
            truncating: Vec::new(),
            changing: None,
            events: Events::default(),
        }
    }

    fn apply(&mut self, units: &[Unit]) {
        for unit in units {
            self.model.apply(unit, &self.schema);
        }
    }

    /// Takes over a schema in force; what was in tables that are gone is forgotten.
    fn take_schema(&mut self, schema: Arc<Schema>) {
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
    fn note(&self, line: impl std::fmt::Display) {
        self.state.borrow_mut().events.add(line);
    }
}

/// What a seed has in mind for a life.
struct Plan {
    number: u64,
    setup: Setup,
    fate: Fate,
    op_count: u64,
    flush_at_stop: bool,
    /// Does the disk fail now and then?
    has_gremlin: bool,
}

impl Plan {
    fn roll(seed: u64, number: u64) -> Plan {
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
            setup: Setup::roll(&dice),
            fate,
            op_count: dice.between(5, 40),
            flush_at_stop: dice.one_in(2),
            has_gremlin: !is_countdown && dice.one_in(2),
        }
    }
}

/// One life.
struct Life {
    run: Rc<Run>,
    plan: Rc<Plan>,
    runtime: Runtime,
    disk: MemoryDisk,
}

impl Life {
    /// A life that neither ends nor goes on is wrong, too.
    async fn live_in_time(self) -> Result<(), Violation> {
        if self.plan.has_gremlin {
            let dice = Dice::new(self.run.seed, self.plan.number, 4_000);
            tokio::task::spawn_local(make_trouble(self.disk.clone(), dice));
        }
        let (run, has_gremlin) = (Rc::clone(&self.run), self.plan.has_gremlin);
        match tokio::time::timeout(LIFE_MAX, self.live()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Stopped::Violation(violation))) => Err(violation),
            Ok(Err(Stopped::Fault(what))) if has_gremlin => {
                run.note(format_args!("given up: {what}"));
                Ok(())
            }
            Ok(Err(Stopped::Fault(what))) => Err(Violation { what }),
            Err(_) => Err(Violation::new("the node is stuck")),
        }
    }

    async fn live(self) -> Result<(), Stopped> {
        let started = SimulatedNode::start(&self.runtime, &self.plan.setup).await;
        let (node, batch_count) = self.unless_off("start the node", started).await?;
        let life = Rc::new(self);
        life.note(format_args!("started, finished {batch_count} batches"));
        life.settle(&node.coordinator(0)).await?;
        life.check_all(&node.coordinator(0)).await?;
        for round in 0..ROUND_COUNT {
            let mut clients = tokio::task::JoinSet::new();
            for client in 0..CLIENT_COUNT {
                let dice = Dice::new(life.run.seed, life.plan.number, round * 100 + client as u64);
                let coordinator = node.coordinator(dice.below(8));
                let life = Rc::clone(&life);
                clients.spawn_local(async move { life.client(client, &dice, &coordinator).await });
            }
            while let Some(done) = clients.join_next().await {
                done.map_err(|error| wrong(format!("a client ended badly: {error}")))??;
            }
            let dice = Dice::new(life.run.seed, life.plan.number, 3_000 + round);
            life.between_rounds(&dice, &node.coordinator(dice.below(8))).await?;
            life.check_all(&node.coordinator(dice.below(8))).await?;
        }
        let stopped = node.stop(life.plan.flush_at_stop).await;
        life.unless_off("stop the node", stopped).await
    }

    fn faults(&self) -> &Faults {
        self.disk.faults()
    }

    fn note(&self, line: impl std::fmt::Display) {
        let millis = self.runtime.clock.elapsed().as_millis();
        let changes = self.faults().change_count();
        self.run.note(format_args!("{millis:>6} ms {changes:>5} {line}"));
    }

    /// When the power is off, this life is over: an error then means nothing.
    async fn unless_off<T, E: std::fmt::Display>(&self, act: &str, done: Result<T, E>) -> Result<T, Stopped> {
        match done {
            Ok(done) => Ok(done),
            Err(_) if self.faults().is_off() => std::future::pending().await,
            Err(error) => Err(Stopped::Fault(format!("{act}: {error}"))),
        }
    }

    /// Of work that may fail without harm, as it is tried again.
    async fn unless_harmless<E: std::fmt::Display>(
        &self,
        act: &str,
        done: Result<(), E>,
    ) -> Result<(), Stopped> {
        match self.unless_off(act, done).await {
            Err(Stopped::Fault(what)) if self.plan.has_gremlin => {
                self.note(format_args!("failed: {what}"));
                Ok(())
            }
            other => other,
        }
    }

    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.run.state.borrow().schema)
    }

    /// Step 1.
    async fn settle(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
        self.settle_schema(coordinator)?;
        let shown = self.everything(coordinator).await?;
        let truncating = self.run.state.borrow().truncating.clone();
        if !truncating.is_empty() {
            let is_anyones = |_: &PartitionKey| true;
            self.explain("a truncation", &truncating, &shown, is_anyones)?;
            for unit in &truncating {
                let Unit::Truncate { table, .. } = unit else { continue };
                let truncated = coordinator.truncate(*table).await;
                self.unless_off("truncate again", truncated).await?;
            }
            let mut state = self.run.state.borrow_mut();
            state.apply(&truncating);
            state.truncating.clear();
        }
        let under_way = self.run.state.borrow().under_way.clone();
        for (client, units) in under_way {
            let is_own = |key: &PartitionKey| world::owner_of(key) == Some(client);
            self.explain(&format!("what client {client} had under way"), &units, &shown, is_own)?;
            for unit in &units {
                let Unit::Write(mutations) = unit else { continue };
                let written = coordinator.write(mutations.clone(), Consistency::One).await;
                self.unless_off("write again", written).await?;
            }
            let mut state = self.run.state.borrow_mut();
            state.apply(&units);
            state.under_way.remove(&client);
        }
        Ok(())
    }

    fn settle_schema(&self, coordinator: &Coordinator) -> Result<(), Violation> {
        let found = coordinator.schema();
        let mut state = self.run.state.borrow_mut();
        let known = state.schema.epoch();
        let newest = known + u64::from(state.changing.is_some());
        if !(known..=newest).contains(&found.epoch()) {
            let what = format!("the schema is at epoch {}, not {known} to {newest}", found.epoch());
            return Err(Violation::new(what));
        }
        state.take_schema(found);
        Ok(())
    }

    /// Finds which of the units happened: there must be some choice that explains what is shown.
    fn explain(
        &self,
        what: &str,
        units: &[Unit],
        shown: &Shown,
        concerns: impl Fn(&PartitionKey) -> bool,
    ) -> Result<(), Stopped> {
        let (model, schema) = {
            let state = self.run.state.borrow();
            (state.model.clone(), Arc::clone(&state.schema))
        };
        let mut differences = Vec::new();
        for choice in 0..1u64 << units.len() {
            let mut model = model.clone();
            for (index, unit) in units.iter().enumerate() {
                if choice & (1 << index) != 0 {
                    model.apply(unit, &schema);
                }
            }
            match shown.difference(&model, &schema, &concerns) {
                None => {
                    self.note(format_args!("{what}: {} units, choice {choice:b}", units.len()));
                    return Ok(());
                }
                Some(difference) => differences.push(format!("choice {choice:b}: {difference}")),
            }
        }
        let differences = differences.join("\n");
        Err(wrong(format!("{what} is neither there nor absent: {units:?}\n{differences}")))
    }

    /// Step 2.
    async fn client(&self, client: usize, dice: &Dice, coordinator: &Coordinator) -> Result<(), Stopped> {
        let imagination = Imagination { dice, client, coordinator };
        for _ in 0..self.plan.op_count {
            match imagination.next() {
                Op::Write { mutations, is_logged } => {
                    self.write(client, coordinator, mutations, is_logged).await?;
                }
                Op::Read(command) => self.read(client, coordinator, command).await?,
                Op::Flush(table) => {
                    let shard = coordinator.shard().local();
                    self.note(format_args!("client {client}: flush {table:?} on shard {}", shard.index()));
                    self.unless_harmless("flush", shard.flush(table).await).await?;
                }
                Op::Compact(table) => {
                    let shard = coordinator.shard().local();
                    self.note(format_args!("client {client}: compact {table:?} on shard {}", shard.index()));
                    self.unless_harmless("compact", shard.compact(table).await).await?;
                }
                Op::Rest(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }

    async fn write(
        &self,
        client: usize,
        coordinator: &Coordinator,
        mutations: Vec<rows::Mutation>,
        is_logged: bool,
    ) -> Result<(), Stopped> {
        let units = units_of(&mutations, is_logged, self.plan.setup.sharding());
        let kind = if is_logged { "logged batch" } else { "write" };
        let schema = self.schema();
        let what: Vec<String> = mutations.iter().map(|mutation| in_brief(mutation, &schema)).collect();
        self.note(format_args!("client {client}: {kind} {}", what.join(" + ")));
        self.run.state.borrow_mut().under_way.insert(client, units.clone());
        let written = match is_logged {
            true => coordinator.write_logged_batch(mutations, Consistency::One).await,
            false => coordinator.write(mutations, Consistency::One).await,
        };
        self.unless_off("write", written).await?;
        {
            let mut state = self.run.state.borrow_mut();
            state.under_way.remove(&client);
            state.apply(&units);
        }
        self.note(format_args!("client {client}: written"));
        Ok(())
    }

    async fn read(
        &self,
        client: usize,
        coordinator: &Coordinator,
        mut command: ReadCommand,
    ) -> Result<(), Stopped> {
        for _ in 0..TRIES_MAX {
            let found = self.read_once(client, coordinator, command.clone()).await;
            let now = coordinator.now_seconds();
            if found.is_ok() || command.now == now {
                return found;
            }
            command.now = now;
        }
        self.note(format_args!("client {client}: a read always takes longer than a second"));
        Ok(())
    }

    async fn read_once(
        &self,
        client: usize,
        coordinator: &Coordinator,
        command: ReadCommand,
    ) -> Result<(), Stopped> {
        let read = self.all_pages(coordinator, command.clone(), Some(client)).await?;
        let view = View {
            slices: &command.slices,
            reversed: command.reversed,
            rows_per_partition: command.limits.rows_per_partition,
            now: command.now,
        };
        let keys = match &command.target {
            ReadTarget::Keys(keys) => keys.clone(),
            ReadTarget::Range(range) => {
                let keys = self.run.state.borrow().model.keys(command.table.id());
                keys.into_iter().filter(|key| range.contains(key.token)).collect()
            }
        };
        let own = |key: &PartitionKey| world::owner_of(key) == Some(client);
        let read: Vec<_> = read.into_iter().filter(|partition| own(&partition.key)).collect();
        let expected: Vec<_> = {
            let state = self.run.state.borrow();
            let read = |key| state.model.read(&command.table, key, &view);
            keys.iter().filter(|key| own(key)).filter_map(read).collect()
        };
        let row_count: usize = read.iter().map(|partition| partition.rows.len()).sum();
        if let Some(difference) = difference(&read, &expected) {
            return Err(wrong(format!("client {client} reads wrongly, {command:?}: {difference}")));
        }
        self.note(format_args!("client {client}: read {} partitions, {row_count} rows", read.len()));
        Ok(())
    }

    /// Reads page after page; the parts of a partition on several pages are joined. With a client,
    /// others may be writing to what is not its own.
    async fn all_pages(
        &self,
        coordinator: &Coordinator,
        mut command: ReadCommand,
        client: Option<usize>,
    ) -> Result<Vec<PartitionRows>, Stopped> {
        let mut joined: Vec<PartitionRows> = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = coordinator.read(command.clone(), Consistency::One).await;
            let page = self.unless_off("read", page).await?;
            let row_count: usize = page.partitions.iter().map(|partition| partition.rows.len().max(1)).sum();
            if row_count > command.limits.row_count as usize {
                return Err(wrong(format!("a page of {row_count} rows for {command:?}")));
            }
            for partition in page.partitions {
                match joined.last_mut() {
                    Some(last) if last.key == partition.key => {
                        let is_stable = client.is_none_or(|it| world::owner_of(&last.key) == Some(it));
                        if is_stable && last.static_row != partition.static_row {
                            return Err(wrong("pages of a partition differ in their static row"));
                        }
                        last.rows.extend(partition.rows);
                    }
                    _ => joined.push(partition),
                }
            }
            match page.next {
                Some(next) => command.resume = Some(next),
                None => return Ok(joined),
            }
        }
        Err(wrong(format!("a read does not end: {command:?}")))
    }

    /// Step 3.
    async fn between_rounds(&self, dice: &Dice, coordinator: &Coordinator) -> Result<(), Stopped> {
        let tables = world::tables(&self.schema());
        match dice.below(8) {
            0 => self.truncate(coordinator, dice.pick(&tables)).await,
            1 | 2 => self.change(coordinator, add_column(&self.schema(), dice)).await,
            3 => self.change(coordinator, drop_column(&self.schema(), coordinator)).await,
            4 => self.recreate(coordinator).await,
            _ => Ok(()),
        }
    }

    async fn truncate(&self, coordinator: &Coordinator, table: &Arc<Table>) -> Result<(), Stopped> {
        let sharding = self.plan.setup.sharding();
        let unit = |shard| Unit::Truncate { table: table.id(), sharding, shard };
        let units: Vec<Unit> = (0..sharding.shard_count()).map(unit).collect();
        self.note(format_args!("truncate {}", table.name()));
        self.run.state.borrow_mut().truncating = units.clone();
        let truncated = coordinator.truncate(table.id()).await;
        self.unless_off("truncate", truncated).await?;
        let mut state = self.run.state.borrow_mut();
        state.truncating.clear();
        state.apply(&units);
        Ok(())
    }

    async fn change(&self, coordinator: &Coordinator, change: Option<Transformation>) -> Result<(), Stopped> {
        let Some(change) = change else { return Ok(()) };
        self.note(format_args!("change the schema: {}", brief(&change)));
        let epoch = self.schema().epoch();
        self.run.state.borrow_mut().changing = Some(change.clone());
        let changed: Result<_, CoordinatorError> = coordinator.change_schema(change, epoch).await;
        let schema = self.unless_off("change the schema", changed).await?;
        self.run.state.borrow_mut().take_schema(schema);
        Ok(())
    }

    /// Drops the table whose columns come and go, or makes it anew.
    async fn recreate(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
        let schema = self.schema();
        let change = match schema.table(KEYSPACE, CHURN) {
            Some(table) => {
                Transformation::DropTable { keyspace: KEYSPACE.into(), name: CHURN.into(), id: table.id() }
            }
            None => {
                let id = TableId(self.runtime.random.uuid_v1(&*self.runtime.clock));
                let table = world::churn(id).build().map_err(|error| wrong(error.to_string()))?;
                Transformation::CreateTable { table: Box::new(table) }
            }
        };
        self.change(coordinator, Some(change)).await
    }

    /// Step 4.
    async fn check_all(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
        let shown = self.everything(coordinator).await?;
        let state = self.run.state.borrow();
        match shown.difference(&state.model, &state.schema, &|_: &PartitionKey| true) {
            None => Ok(()),
            Some(difference) => Err(wrong(format!("not all is as it was written: {difference}"))),
        }
    }

    async fn everything(&self, coordinator: &Coordinator) -> Result<Shown, Stopped> {
        for _ in 0..TRIES_MAX {
            let shown = self.everything_once(coordinator).await?;
            if shown.now == coordinator.now_seconds() {
                return Ok(shown);
            }
        }
        Err(wrong("reading everything always takes longer than a second"))
    }

    async fn everything_once(&self, coordinator: &Coordinator) -> Result<Shown, Stopped> {
        let now = coordinator.now_seconds();
        let mut partitions = BTreeMap::new();
        for table in world::tables(&self.schema()) {
            let command = ReadCommand {
                table: Arc::clone(&table),
                target: ReadTarget::Range(RingRange::ALL),
                slices: Slices::all(),
                reversed: false,
                limits: ReadLimits { row_count: 999, ..ReadLimits::PAGE },
                now,
                resume: None,
            };
            partitions.insert(table.id(), self.all_pages(coordinator, command, None).await?);
        }
        Ok(Shown { now, partitions })
    }
}

/// All that the node shows at one moment.
struct Shown {
    now: u32,
    partitions: BTreeMap<TableId, Vec<PartitionRows>>,
}

impl Shown {
    /// What differs from the model, among the keys that are asked about.
    fn difference(
        &self,
        model: &Model,
        schema: &Schema,
        concerns: &impl Fn(&PartitionKey) -> bool,
    ) -> Option<String> {
        let slices = Slices::all();
        let view = View { slices: &slices, reversed: false, rows_per_partition: u32::MAX, now: self.now };
        for table in world::tables(schema) {
            let keys = model.keys(table.id()).into_iter().filter(|key| concerns(key));
            let expected: Vec<_> = keys.filter_map(|key| model.read(&table, &key, &view)).collect();
            let shown = self.partitions.get(&table.id()).into_iter().flatten();
            let shown: Vec<_> = shown.filter(|partition| concerns(&partition.key)).cloned().collect();
            if let Some(found) = difference(&shown, &expected) {
                return Some(format!("table {}, now {}: {found}", table.name(), self.now));
            }
        }
        None
    }
}

/// The first thing that differs, in words.
fn difference(read: &[PartitionRows], expected: &[PartitionRows]) -> Option<String> {
    if read == expected {
        return None;
    }
    let keys = |partitions: &[PartitionRows]| -> Vec<_> {
        partitions.iter().map(|partition| partition.key.bytes.clone()).collect()
    };
    if keys(read) != keys(expected) {
        return Some(format!("read keys {:?}, expected {:?}", keys(read), keys(expected)));
    }
    let (read, expected) = read.iter().zip(expected).find(|(read, expected)| read != expected)?;
    let key = &read.key.bytes;
    if read.static_row != expected.static_row {
        return Some(format!(
            "key {key:?}: static {:?}, expected {:?}",
            read.static_row, expected.static_row
        ));
    }
    let place = read.rows.iter().zip(&expected.rows).position(|(read, expected)| read != expected);
    let place = place.unwrap_or(read.rows.len().min(expected.rows.len()));
    Some(format!(
        "key {key:?}: {} rows, expected {}; row {place} is {:?}, expected {:?}",
        read.rows.len(),
        expected.rows.len(),
        read.rows.get(place).map(details),
        expected.rows.get(place).map(details)
    ))
}

/// A row in words that can be compared by eye.
fn details(row: &rows::Row) -> String {
    let mut text = format!("{:?} {:?}", row.encoded_clustering(), row.liveness());
    for column in row.columns() {
        match column.data {
            rows::ColumnData::Simple(cell) => {
                text += &format!(
                    "; {}: ts {} ttl {} ldt {} {} bytes",
                    column.id.0,
                    cell.timestamp,
                    cell.ttl,
                    cell.local_deletion_time,
                    cell.value.len()
                );
            }
            rows::ColumnData::Complex(complex) => {
                text += &format!("; {}: {:?}", column.id.0, complex.cells().collect::<Vec<_>>());
            }
        }
    }
    text
}

/// A mutation in a few words.
fn in_brief(mutation: &rows::Mutation, schema: &Schema) -> String {
    let table = schema.table_by_id(mutation.table).map_or("?", |table| table.name());
    let mut text = format!("{table}/{}", mutation.key.bytes.last().copied().unwrap_or_default());
    if !mutation.deletion.is_live() {
        text += &format!(" partition deletion {}", mutation.deletion.timestamp);
    }
    for range in &mutation.ranges {
        text += &format!(" range deletion {}", range.deletion.timestamp);
    }
    for row in mutation.static_row.iter().chain(&mutation.rows).take(2) {
        text += &format!(" row {}", details(row));
    }
    text
}

/// The parts of a write that each are whole or absent after a crash.
fn units_of(mutations: &[rows::Mutation], is_logged: bool, sharding: Sharding) -> Vec<Unit> {
    if is_logged {
        return vec![Unit::Write(mutations.to_vec())];
    }
    let mut parts: BTreeMap<usize, Vec<rows::Mutation>> = BTreeMap::new();
    for mutation in mutations {
        parts.entry(sharding.shard_of(mutation.key.token)).or_default().push(mutation.clone());
    }
    parts.into_values().map(Unit::Write).collect()
}

fn add_column(schema: &Schema, dice: &Dice) -> Option<Transformation> {
    let table = schema.table(KEYSPACE, CHURN)?;
    let name = format!("x{}", dice.below(3));
    if table.column(&name).is_some() {
        return None;
    }
    let table = table.to_builder().column(name, ColumnKind::Regular, CqlType::Text).build().ok()?;
    Some(Transformation::AlterTable { table: Box::new(table) })
}

fn drop_column(schema: &Schema, coordinator: &Coordinator) -> Option<Transformation> {
    let table = schema.table(KEYSPACE, CHURN)?;
    let column = table.regular_columns().iter().find(|column| column.name != "a")?.clone();
    let mut builder = table.to_builder();
    builder.columns.retain(|other| other.id != column.id);
    let dropped = DroppedColumn { column: column.clone(), dropped_time_us: coordinator.next_timestamp() };
    builder.dropped_columns.insert(column.name, dropped);
    Some(Transformation::AlterTable { table: Box::new(builder.build().ok()?) })
}

fn brief(change: &Transformation) -> String {
    match change {
        Transformation::AlterTable { table } => {
            let columns: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
            format!("alter {} to {columns:?}", table.name())
        }
        Transformation::CreateTable { table } => format!("create {}", table.name()),
        Transformation::DropTable { name, .. } => format!("drop {name}"),
        other => format!("{other:?}"),
    }
}
