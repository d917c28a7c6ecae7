//! Step 2 of a life: clients write and read, and know what they must read.

use std::collections::BTreeMap;

use coordinator::{BatchProgress, Consistency, Coordinator};
use read::{PartitionRows, ReadCommand, ReadTarget};
use ring::Sharding;
use rows::PartitionKey;
use schema::Schema;

use crate::dice::Dice;
use crate::life::Life;
use crate::model::{Unit, View};
use crate::node::Seat;
use crate::scenario::{PAGES_MAX, Stopped, TRIES_MAX, wrong};
use crate::shown::{details, difference};
use crate::workload::{Imagination, Op};
use crate::world;

impl Life {
    /// Step 2.
    pub(crate) async fn client(&self, client: usize, dice: &Dice, seat: &Seat) -> Result<(), Stopped> {
        let Seat { coordinator, shard } = seat;
        let imagination = Imagination { dice, client, coordinator };
        for _ in 0..self.plan.op_count {
            match imagination.next() {
                Op::Write { mutations, is_logged } => {
                    self.write(client, coordinator, mutations, is_logged).await?;
                }
                Op::Read(command) => self.read(client, coordinator, *command).await?,
                Op::Flush(table) => {
                    self.note(format_args!("client {client}: flush {table:?} on shard {}", shard.index()));
                    self.unless_harmless("flush", shard.flush(table).await).await?;
                }
                Op::Compact(table) => {
                    self.note(format_args!("client {client}: compact {table:?} on shard {}", shard.index()));
                    self.unless_harmless("compact", shard.compact(table).await).await?;
                }
                Op::Rest(time) => tokio::time::sleep(time).await,
            }
        }
        Ok(())
    }

    pub(crate) async fn write(
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
            true => {
                let progress = BatchProgress::default();
                coordinator.write_logged_batch(mutations, Consistency::One, progress).await
            }
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

    pub(crate) async fn read(
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

    pub(crate) async fn read_once(
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
                keys.into_iter().filter(|key| range.contains(key)).collect()
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
    pub(crate) async fn all_pages(
        &self,
        coordinator: &Coordinator,
        mut command: ReadCommand,
        client: Option<usize>,
    ) -> Result<Vec<PartitionRows>, Stopped> {
        let mut joined: Vec<PartitionRows> = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = coordinator.read(&command, Consistency::One).await;
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
}

/// A mutation in a few words.
pub(crate) fn in_brief(mutation: &rows::Mutation, schema: &Schema) -> String {
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
pub(crate) fn units_of(mutations: &[rows::Mutation], is_logged: bool, sharding: Sharding) -> Vec<Unit> {
    if is_logged {
        return vec![Unit::Write(mutations.to_vec())];
    }
    let mut parts: BTreeMap<usize, Vec<rows::Mutation>> = BTreeMap::new();
    for mutation in mutations {
        parts.entry(sharding.shard_of(mutation.key.token)).or_default().push(mutation.clone());
    }
    parts.into_values().map(Unit::Write).collect()
}
