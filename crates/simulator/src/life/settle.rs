//! Step 1 of a life: what was under way when the last one ended is there whole or not at all.

use std::sync::Arc;

use coordinator::{Consistency, Coordinator};
use rows::PartitionKey;

use crate::life::Life;
use crate::model::Unit;
use crate::scenario::{Stopped, Violation, wrong};
use crate::shown::Shown;
use crate::world;

impl Life {
    /// Step 1.
    pub(crate) async fn settle(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
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

    pub(crate) fn settle_schema(&self, coordinator: &Coordinator) -> Result<(), Violation> {
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
    pub(crate) fn explain(
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
}
