//! Step 3 of a life: truncations and changes of the schema, while no client works.

use std::sync::Arc;

use coordinator::{Coordinator, CoordinatorError};
use schema::{ColumnKind, DroppedColumn, Schema, Table, TableId, Transformation};
use types::CqlType;

use crate::dice::Dice;
use crate::life::Life;
use crate::model::Unit;
use crate::scenario::{Stopped, wrong};
use crate::world::{self, CHURN, KEYSPACE};

impl Life {
    /// Step 3.
    pub(crate) async fn between_rounds(&self, dice: &Dice, coordinator: &Coordinator) -> Result<(), Stopped> {
        let tables = world::tables(&self.schema());
        match dice.below(10) {
            0 => self.truncate(coordinator, dice.pick(&tables)).await,
            1 | 2 => self.change(coordinator, add_column(&self.schema(), dice)).await,
            3 => self.change(coordinator, drop_column(&self.schema(), coordinator)).await,
            4 => self.recreate(coordinator).await,
            5 | 6 => self.change(coordinator, set_compaction(&self.schema(), dice)).await,
            _ => Ok(()),
        }
    }

    pub(crate) async fn truncate(
        &self,
        coordinator: &Coordinator,
        table: &Arc<Table>,
    ) -> Result<(), Stopped> {
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

/// Another compaction strategy for one of the tables.
pub(crate) fn set_compaction(schema: &Schema, dice: &Dice) -> Option<Transformation> {
    let tables = world::tables(schema);
    let table = dice.pick(&tables);
    let mut builder = table.to_builder();
    builder.options.compaction = world::compaction(dice.below(world::STRATEGY_COUNT));
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
            format!("alter {} to {columns:?}, {strategy}", table.name())
        }
        Transformation::CreateTable { table } => format!("create {}", table.name()),
        Transformation::DropTable { name, .. } => format!("drop {name}"),
        other => format!("{other:?}"),
    }
}
