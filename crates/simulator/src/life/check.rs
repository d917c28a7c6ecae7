//! Step 4 of a life: all is read back and compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use coordinator::Coordinator;
use read::{ReadCommand, ReadLimits, ReadTarget};
use rows::{PartitionKey, RingRange};

use crate::life::Life;
use crate::scenario::{Stopped, TRIES_MAX, wrong};
use crate::shown::Shown;
use crate::world;

impl Life {
    /// Step 4.
    pub(crate) async fn check_all(&self, coordinator: &Coordinator) -> Result<(), Stopped> {
        let shown = self.everything(coordinator).await?;
        let state = self.run.state.borrow();
        match shown.difference(&state.model, &state.schema, &|_: &PartitionKey| true) {
            None => Ok(()),
            Some(difference) => Err(wrong(format!("not all is as it was written: {difference}"))),
        }
    }

    pub(crate) async fn everything(&self, coordinator: &Coordinator) -> Result<Shown, Stopped> {
        for _ in 0..TRIES_MAX {
            let shown = self.everything_once(coordinator).await?;
            if shown.now == coordinator.now_seconds() {
                return Ok(shown);
            }
        }
        Err(wrong("reading everything always takes longer than a second"))
    }

    pub(crate) async fn everything_once(&self, coordinator: &Coordinator) -> Result<Shown, Stopped> {
        let now = coordinator.now_seconds();
        let mut partitions = BTreeMap::new();
        for table in world::tables(&self.schema()) {
            let limits = ReadLimits { row_count: 999, ..ReadLimits::PAGE };
            let all = ReadTarget::Range(RingRange::ALL);
            let command = ReadCommand { limits, ..ReadCommand::new(Arc::clone(&table), all, now) };
            partitions.insert(table.id(), self.all_pages(coordinator, command, None).await?);
        }
        Ok(Shown { now, partitions })
    }
}
