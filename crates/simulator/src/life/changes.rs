//! Step 3 of a life: truncations and changes of the schema, while no client works; and what the operator
//! does while they do, which no client may notice: other options of tables, flushes, compactions.

use std::sync::Arc;
use std::time::Duration;

use coordinator::{Coordinator, CoordinatorError};
use schema::{ChunkLength, ColumnKind, DroppedColumn, Prefetch, Schema, Table, TableId, Transformation};
use storage::Shard;
use types::CqlType;

use crate::dice::Dice;
use crate::life::Life;
use crate::model::Unit;
use crate::node::Seat;
use crate::scenario::{Stopped, wrong};
use crate::world::{self, CHURN, KEYSPACE};

impl Life {
    /// Step 3.
    pub(crate) async fn between_rounds(&self, dice: &Dice, seat: &Seat) -> Result<(), Stopped> {
        let (tables, coordinator) = (world::tables(&self.schema()), &seat.coordinator);
        match dice.below(10) {
            0 => {
                // Flushes and compactions of the same table go on beside it.
                let (truncated, kept) = tokio::join!(
                    self.truncate(coordinator, dice.pick(&tables)),
                    self.upkeep(dice, &seat.shard)
                );
                truncated.and(kept)
            }
            1 | 2 => self.change(coordinator, add_column(&self.schema(), dice)).await,
            3 => self.change(coordinator, drop_column(&self.schema(), coordinator)).await,
            4 => self.recreate(coordinator).await,
            5 | 6 => self.change(coordinator, set_options(&self.schema(), dice)).await,
            _ => Ok(()),
        }
    }

    /// Beside the clients of step 2.
    pub(crate) async fn operate(&self, dice: &Dice, seat: &Seat) -> Result<(), Stopped> {
        for _ in 0..dice.below(4) {
            tokio::time::sleep(Duration::from_millis(dice.between(1, 4_000))).await;
            match dice.below(3) {
                0 => self.change(&seat.coordinator, set_options(&self.schema(), dice)).await?,
                _ => self.upkeep(dice, &seat.shard).await?,
            }
        }
        Ok(())
    }

    /// A flush or a compaction of some table on one shard.
    async fn upkeep(&self, dice: &Dice, shard: &Shard) -> Result<(), Stopped> {
        let tables = world::tables(&self.schema());
        let table = dice.pick(&tables);
        let (act, done) = match dice.one_in(2) {
            true => ("flush", shard.flush(table.id()).await),
            false => ("compact", shard.compact(table.id()).await),
        };
        self.note(format_args!("operator: {act} {} on shard {}", table.name(), shard.index()));
        self.unless_harmless(act, done).await
    }

    pub(crate) async fn truncate(
        &self,
        coordinator: &Coordinator,
        table: &Arc<Table>,
    ) -> Result<(), Stopped> {
        let units = vec![Unit::Truncate { table: table.id() }];
        self.note(format_args!("truncate {}", table.name()));
        self.run.state.borrow_mut().truncating = units.clone();
        let truncated = coordinator.truncate(table.id()).await;
        self.unless_off("truncate", truncated).await?;
        let mut state = self.run.state.borrow_mut();
        state.truncating.clear();
        state.apply(&units);
        Ok(())
    }

    pub(crate) async fn change(
        &self,
        coordinator: &Coordinator,
        change: Option<Transformation>,
    ) -> Result<(), Stopped> {
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
    pub(crate) async fn recreate(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
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
}

pub(crate) fn add_column(schema: &Schema, dice: &Dice) -> Option<Transformation> {
    let table = schema.table(KEYSPACE, CHURN)?;
    let name = format!("x{}", dice.below(3));
    if table.column(&name).is_some() {
        return None;
    }
    let table = table.to_builder().column(name, ColumnKind::Regular, CqlType::Text).build().ok()?;
    Some(Transformation::AlterTable { table: Box::new(table) })
}

/// Another compaction strategy, other chunks, another prefetch or flush period for one of the tables.
pub(crate) fn set_options(schema: &Schema, dice: &Dice) -> Option<Transformation> {
    let tables = world::tables(schema);
    let table = dice.pick(&tables);
    let mut builder = table.to_builder();
    let options = &mut builder.options;
    match dice.below(4) {
        0 => {
            let lengths =
                [ChunkLength::Auto, ChunkLength::Auto, ChunkLength::Fixed(4096), ChunkLength::Fixed(65536)];
            options.compression.chunk_length = *dice.pick(&lengths);
        }
        1 => {
            options.caching.prefetch = *dice.pick(&Prefetch::ALL);
            options.memtable_flush_period_in_ms = *dice.pick(&[0, 300, 3_000]);
        }
        _ => options.compaction = world::compaction(dice.below(world::STRATEGY_COUNT)),
    }
    Some(Transformation::AlterTable { table: Box::new(builder.build().ok()?) })
}

pub(crate) fn drop_column(schema: &Schema, coordinator: &Coordinator) -> Option<Transformation> {
    let table = schema.table(KEYSPACE, CHURN)?;
    let column = table.regular_columns().iter().find(|column| column.name != "a")?.clone();
    let mut builder = table.to_builder();
    builder.columns.retain(|other| other.id != column.id);
    let dropped = DroppedColumn { column: column.clone(), dropped_time_us: coordinator.next_timestamp() };
    builder.dropped_columns.insert(column.name, dropped);
    Some(Transformation::AlterTable { table: Box::new(builder.build().ok()?) })
}

pub(crate) fn brief(change: &Transformation) -> String {
    match change {
        Transformation::AlterTable { table } => {
            let columns: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
            let strategy = table.options().compaction.class.rsplit('.').next().unwrap_or_default();
            let chunks = table.options().compression.chunk_length;
            format!("alter {} to {columns:?}, {strategy}, {chunks:?}", table.name())
        }
        Transformation::CreateTable { table } => format!("create {}", table.name()),
        Transformation::DropTable { name, .. } => format!("drop {name}"),
        other => format!("{other:?}"),
    }
}
