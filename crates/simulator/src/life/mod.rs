//! One life of a node: it starts, settles what the last one left, works, and stops.
//!
//! | a reader asks | file |
//! |---|---|
//! | what was under way when the last life ended? | `settle.rs` |
//! | what do clients do, and what must they read? | `clients.rs` |
//! | what happens between rounds? | `changes.rs` |
//! | is all there that was written? | `check.rs` |

mod changes;
mod check;
mod clients;
mod settle;

use std::rc::Rc;
use std::sync::Arc;

use runtime::memory_disk::Faults;
use runtime::{MemoryDisk, Runtime};
use schema::Schema;

use crate::dice::Dice;
use crate::gremlin::make_trouble;
use crate::node::SimulatedNode;
use crate::scenario::{LIFE_MAX, Plan, ROUND_COUNT, Run, Stopped, Violation, wrong};
use crate::world::CLIENT_COUNT;

/// One life.
pub(crate) struct Life {
    pub(crate) run: Rc<Run>,
    pub(crate) plan: Rc<Plan>,
    pub(crate) runtime: Runtime,
    pub(crate) disk: MemoryDisk,
}

impl Life {
    /// A life that neither ends nor goes on is wrong, too.
    pub(crate) async fn live_in_time(self) -> Result<(), Violation> {
        if self.plan.has_gremlin {
            let dice = Dice::new(self.run.seed, self.plan.number, 4_000);
            tokio::task::spawn_local(make_trouble(self.disk.clone(), dice));
        }
        let (run, has_gremlin) = (Rc::clone(&self.run), self.plan.has_gremlin);
        let failsafe = self.runtime.failsafe.clone();
        let lived = tokio::time::timeout(LIFE_MAX, self.live()).await;
        // What a broken node answers looks like a fault of its disk.
        failsafe.check().map_err(|broken| Violation::new(broken.to_string()))?;
        match lived {
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

    pub(crate) async fn live(self) -> Result<(), Stopped> {
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
                let seat = node.seat(dice.below(8));
                let life = Rc::clone(&life);
                clients.spawn_local(async move { life.client(client, &dice, &seat).await });
            }
            let dice = Dice::new(life.run.seed, life.plan.number, 5_000 + round);
            let (operator, seat) = (Rc::clone(&life), node.seat(dice.below(8)));
            clients.spawn_local(async move { operator.operate(&dice, &seat).await });
            while let Some(done) = clients.join_next().await {
                done.map_err(|error| wrong(format!("a client ended badly: {error}")))??;
            }
            let dice = Dice::new(life.run.seed, life.plan.number, 3_000 + round);
            life.between_rounds(&dice, &node.seat(dice.below(8))).await?;
            life.check_all(&node.coordinator(dice.below(8))).await?;
        }
        let stopped = node.stop(life.plan.flush_at_stop).await;
        life.unless_off("stop the node", stopped).await
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.disk.faults()
    }

    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        let millis = self.runtime.clock.elapsed().as_millis();
        let changes = self.faults().change_count();
        self.run.note(format_args!("{millis:>6} ms {changes:>5} {line}"));
    }

    /// When the power is off, this life is over: an error then means nothing.
    pub(crate) async fn unless_off<T, E: std::fmt::Display>(
        &self,
        act: &str,
        done: Result<T, E>,
    ) -> Result<T, Stopped> {
        match done {
            Ok(done) => Ok(done),
            Err(_) if self.faults().is_off() => std::future::pending().await,
            Err(error) => Err(Stopped::Fault(format!("{act}: {error}"))),
        }
    }

    /// Of work that may fail without harm, as it is tried again.
    pub(crate) async fn unless_harmless<E: std::fmt::Display>(
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

    pub(crate) fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.run.state.borrow().schema)
    }
}
