//! A partition that is claimed in a ring, on a shard of one of its replicas; and what is decided there together.
//!
//! ```text
//!   one       claim ─► ready ─► read ─► decide ─► joins the round ──────────────┐
//!   another           waits            claim ─► read what the round makes ─► joins it
//!   the round                                   waits        claim ─► settle ─┴─► all are told
//! ```
//!
//! Whoever begins a round has it wait for a claim as all others do: so those that wait already come with it. They read
//! what the replica has and what the round would change, which is in memory. All of a round has one fate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use read::{ReadCommand, ReadPage, ReadTarget};
use replica::Seen;
use rows::{Mutation, PartitionKey};
use runtime::trace;
use schema::TableId;
use storage::{Claim, Overlay};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::{ConditionalLevels, Settled, outcome_here};
use crate::read::read_until_current;
use crate::replicas::agreement::{Agreement, Ready, Settling};
use crate::replicas::deciders::{is_here, who_agree_on};
use crate::replicas::{ReplicaError, Replicas, RingSeat};
use crate::write::come_to;
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// So many changes are proposed together, at most.
const ROUND_MAX: usize = 256;
/// Or so many bytes of them and a change. A record of the log has them twice, and those of the round before: the least
/// segment has room for that.
const ROUND_BYTES: usize = 8 << 10;

/// What is written of an operation beside its outcome, about.
const OPERATION_BYTES: usize = 100;

/// So many partitions are remembered in which this shard has proposed something.
const AGREEMENTS_MAX: usize = 4_096;

/// A partition of a table, and whether only the replicas of the data centre agree.
type Place = (TableId, PartitionKey, bool);

/// The agreements of a shard that nobody has claimed now.
#[derive(Default)]
pub(crate) struct Agreements(RefCell<BTreeMap<Place, Box<Held>>>);

/// What whoever has a claim has.
struct Held {
    agreement: Agreement,
    round: Round,
}

/// Changes that were decided one after the other, and are to be proposed together.
#[derive(Default)]
struct Round {
    mutations: Vec<Mutation>,
    /// What has come of operations that their clients gave ids.
    operations: Vec<(Uuid, Bytes)>,
    bytes: usize,
    /// What they were decided on.
    seen: RefCell<Vec<Seen>>,
    /// What they make, when somebody has read it; and how many of them are in it.
    made: RefCell<Option<(Overlay, usize)>>,
    levels: Vec<Consistency>,
    waiting: Waiting,
}

/// A claim on a partition, with the agreement on it.
pub(super) struct ClaimedInRing {
    coordinator: Coordinator,
    seat: Rc<RingSeat>,
    place: Place,
    levels: ConditionalLevels,
    /// `None` when it has ended.
    claimed: Option<(Box<Held>, Claim)>,
}

impl Agreements {
    /// That of a place; a new one when there is none.
    fn take(&self, place: &Place, new: impl FnOnce() -> Agreement) -> Box<Held> {
        let held = self.0.borrow_mut().remove(place);
        held.unwrap_or_else(|| Box::new(Held { agreement: new(), round: Round::default() }))
    }

    fn put(&self, place: Place, held: Box<Held>) {
        let mut all = self.0.borrow_mut();
        if all.len() >= AGREEMENTS_MAX {
            // Without it the next one asks for a promise.
            let left = all.iter().find(|(_, held)| held.round.is_empty()).map(|(place, _)| place.clone());
            left.map(|place| all.remove(&place));
        }
        all.insert(place, held);
    }

    /// Forgets a place, and the round there.
    fn forget(&self, place: &Place) {
        self.0.borrow_mut().remove(place);
    }
}

impl Round {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= ROUND_MAX || self.bytes >= ROUND_BYTES
    }

    /// A change joins, or somebody who changes nothing, and wants to know that what was read stands; with what has come
    /// of an operation by that.
    fn join(
        &mut self,
        mutation: Option<Mutation>,
        operation: Option<(Uuid, Bytes)>,
        level: Consistency,
    ) -> oneshot::Receiver<Result<Settled, CoordinatorError>> {
        let (told, tell) = oneshot::channel();
        self.waiting.push(told);
        if let Some(mutation) = mutation {
            self.bytes += mutation.as_encoded().len();
            self.mutations.push(mutation);
            if !self.levels.contains(&level) {
                self.levels.push(level);
            }
        }
        if let Some((id, outcome)) = operation {
            self.bytes += OPERATION_BYTES + outcome.len();
            self.operations.push((id, outcome));
        }
        tell
    }

    /// What its changes make of a partition of a table, taken out of it; `None` when there are none.
    fn take_made(&self, command: &ReadCommand) -> Option<Overlay> {
        if self.mutations.is_empty() {
            return None;
        }
        let made = self.made.borrow_mut().take();
        let (mut overlay, count) = made.unwrap_or_else(|| (Overlay::new(Arc::clone(&command.table)), 0));
        self.mutations[count..].iter().for_each(|mutation| overlay.add(mutation));
        Some(overlay)
    }

    fn put_made(&self, overlay: Option<Overlay>) {
        *self.made.borrow_mut() = overlay.map(|overlay| (overlay, self.mutations.len()));
    }

    /// Has somebody of the round done that read? What the first has seen counts: if it is something else now, replicas
    /// find it, and all is decided again.
    fn has_seen(&self, read: &Bytes) -> bool {
        self.seen.borrow().iter().any(|seen| seen.read == *read)
    }

    /// Tells all who wait.
    fn tell(self, outcome: impl Fn() -> Result<Settled, CoordinatorError>) {
        tell_all(self.waiting, outcome);
    }
}

/// Those that wait for a round.
type Waiting = Vec<oneshot::Sender<Result<Settled, CoordinatorError>>>;

fn tell_all(waiting: Waiting, outcome: impl Fn() -> Result<Settled, CoordinatorError>) {
    // Who does not wait any more was told that nobody knows.
    waiting.into_iter().for_each(|told| _ = told.send(outcome()));
}

impl ClaimedInRing {
    pub(super) async fn claim(
        coordinator: &Coordinator,
        replicas: &Rc<Replicas>,
        table: TableId,
        key: &PartitionKey,
        levels: ConditionalLevels,
    ) -> Result<ClaimedInRing, CoordinatorError> {
        let agreement = levels.agreement;
        // Both levels before anything is done: nobody is told after a write that its level can not be had.
        who_agree_on(replicas, table, key.token, levels.write)?;
        let agree = who_agree_on(replicas, table, key.token, agreement)?;
        let owner = coordinator.owners().of(key.token);
        let is_here =
            owner == coordinator.shard().local().index() && agree.iter().any(|node| is_here(replicas, *node));
        let Some(seat) = coordinator.seat().filter(|_| is_here) else {
            let what = "this node decides nothing about the partition any more".to_owned();
            return Err(CoordinatorError::Overloaded { what });
        };
        let place = (table, key.clone(), agreement == Consistency::LocalSerial);
        let (coordinator, seat) = (coordinator.clone(), Rc::clone(seat));
        let mut claimed = ClaimedInRing { coordinator, seat, place, levels, claimed: None };
        claimed.claim_to_decide().await?;
        Ok(claimed)
    }

    /// Claims it, as soon as there is a round that takes one more. One that takes no more waits for its claim, and goes
    /// first.
    async fn claim_to_decide(&mut self) -> Result<(), CoordinatorError> {
        self.claim_anew().await?;
        while self.held().is_some_and(Held::takes_no_more) {
            self.give_back();
            self.claim_anew().await?;
        }
        Ok(())
    }

    async fn claim_anew(&mut self) -> Result<(), CoordinatorError> {
        let (table, key, _) = &self.place;
        let shard = self.coordinator.shard();
        let claim = shard.claim(shard.local().index(), *table, key).await?;
        let Some(replicas) = self.coordinator.replicas_of(*table) else {
            let what = "the ring has changed".to_owned();
            return Err(CoordinatorError::Overloaded { what });
        };
        let counts = Arc::clone(&self.coordinator.node.agreement_counts);
        let new = || Agreement::new(replicas, (*table, key.clone()), self.levels.agreement, counts);
        let held = self.seat.agreements().take(&self.place, new);
        self.claimed = Some((held, claim));
        Ok(())
    }

    fn held(&self) -> Option<&Held> {
        self.claimed.as_ref().map(|(held, _)| &**held)
    }

    fn give_back(&mut self) {
        if let Some((held, claim)) = self.claimed.take() {
            self.seat.agreements().put(self.place.clone(), held);
            drop(claim);
        }
    }

    fn held_mut(&mut self) -> &mut Held {
        &mut self.claimed.as_mut().expect("the partition is claimed").0
    }

    pub(super) async fn ready(&mut self) -> Result<(), CoordinatorError> {
        let deadline = Instant::now() + self.coordinator.patience(TimeoutKind::Contention);
        let coordinator = self.coordinator.clone();
        let table = self.place.0;
        let held = self.held_mut();
        if !held.round.is_empty() {
            // It was ready for the first of the round.
            return Ok(());
        }
        // Somebody may have read, and then decided nothing.
        held.round = Round::default();
        loop {
            held.come_to_ring(&coordinator, table);
            match held.agreement.ready(&[], deadline).await {
                Err(ReplicaError::Outdated { epoch }) => {
                    come_to(&coordinator, epoch, TimeoutKind::Contention).await?;
                }
                outcome => {
                    let ready = outcome?;
                    assert_eq!(ready, Ready::ToDecide, "those of the round before were told");
                    return Ok(());
                }
            }
        }
    }

    pub(super) fn timestamp(&mut self) -> i64 {
        self.held_mut().agreement.timestamp()
    }

    pub(super) async fn read(&self, command: &ReadCommand) -> Result<ReadPage, CoordinatorError> {
        let Held { agreement, round } = self.held().expect("the partition is claimed");
        if !agreement.is_on_own_rows() {
            assert!(round.is_empty(), "what is decided on a quorum's rows is proposed alone");
            let (kind, replicas) = (TimeoutKind::Read, Rc::clone(agreement.replicas()));
            let within = (kind, self.coordinator.patience(kind));
            return read_until_current(&self.coordinator, replicas, command, agreement.level(), within).await;
        }
        let shard = self.coordinator.shard().local();
        assert!(matches!(&command.target, ReadTarget::Keys(keys) if keys[..] == [self.place.1.clone()]));
        let read = Seen::read_of(command);
        if !round.has_seen(&read) {
            // The hash before the rows: what comes between is found to differ.
            let digest = shard.read_digest(command).await?;
            round.seen.borrow_mut().push(Seen { read, digest });
        }
        let made = round.take_made(command);
        let page = match &made {
            Some(made) => made.read(shard, command).await,
            None => shard.read(command).await,
        };
        round.put_made(made);
        Ok(page?)
    }

    /// What has come of an operation already, or comes of it with this round; `None` when that is nothing.
    pub(super) async fn outcome(&self, id: Uuid) -> Result<Option<Bytes>, CoordinatorError> {
        let round = &self.held().expect("the partition is claimed").round;
        if let Some((_, outcome)) = round.operations.iter().find(|(of, _)| *of == id) {
            return Ok(Some(outcome.clone()));
        }
        let (table, key, _) = &self.place;
        outcome_here(&self.coordinator, *table, key, id).await
    }

    /// Has it proposed what was decided, together with what others decide; tells how it came out. The partition is
    /// claimed anew when it is to be decided again.
    pub(super) async fn settle(
        &mut self,
        mutation: Option<Mutation>,
        operation: Option<(Uuid, Bytes)>,
    ) -> Result<Settled, CoordinatorError> {
        let level = self.levels.write;
        let round = &mut self.held_mut().round;
        let is_first = round.is_empty();
        let outcome = round.join(mutation, operation, level);
        if is_first {
            let (coordinator, seat) = (self.coordinator.clone(), Rc::clone(&self.seat));
            let (place, levels) = (self.place.clone(), self.levels);
            let proposer = ClaimedInRing { coordinator, seat, place, levels, claimed: None };
            let proposing = trace::carry(trace::current(), Box::pin(proposer.propose()));
            runtime::spawn_local("a round of conditional changes", proposing);
        }
        self.give_back();
        // What it waits for has ended with the shard, and may have been made.
        let settled = outcome.await.unwrap_or(Err(CoordinatorError::InDoubt))?;
        if settled == Settled::Again {
            self.claim_to_decide().await?;
        }
        Ok(settled)
    }

    /// Proposes a round, as soon as those that wait have joined it.
    async fn propose(mut self) {
        if let Err(error) = self.claim_anew().await {
            self.seat.agreements().forget(&self.place);
            return tracing::debug!(%error, "a round of conditional changes is not proposed");
        }
        let mut round = std::mem::take(&mut self.held_mut().round);
        if round.is_empty() {
            return;
        }
        trace::note(|| format!("Proposing {} conditional changes", round.waiting.len()));
        let settled = self.agree(&mut round).await;
        let agreement = &mut self.held_mut().agreement;
        let is_in_doubt = agreement.is_in_doubt();
        agreement.leave_in_doubt();
        self.give_back();
        match settled {
            Ok(settled) => round.tell(|| Ok(settled)),
            // Whatever stands in the way is no answer when what was proposed may be made.
            Err(error) if is_in_doubt && !matches!(error, ReplicaError::Chosen { .. }) => {
                round.tell(|| Err(in_doubt(&error)));
            }
            Err(error) => round.tell(|| Err(told(&error))),
        }
    }

    /// Until it is known how a round has come out, or nobody can know.
    async fn agree(&mut self, round: &mut Round) -> Result<Settled, ReplicaError> {
        let (coordinator, table) = (self.coordinator.clone(), self.place.0);
        let deadline = Instant::now() + coordinator.patience(TimeoutKind::Write);
        let held = self.held_mut();
        // Others compare what was read on this node's own rows; of a quorum they need not.
        let seen = match held.agreement.is_on_own_rows() {
            true => round.seen.take(),
            false => Vec::new(),
        };
        let mutations = std::mem::take(&mut round.mutations);
        let operations = std::mem::take(&mut round.operations);
        let settling = Settling { mutations, operations, seen };
        let Round { levels, waiting, .. } = round;
        let tell = || tell_all(std::mem::take(waiting), || Ok(Settled::Done));
        let mut settled = held.agreement.settle(settling, levels, deadline, tell).await;
        loop {
            match settled {
                Err(ReplicaError::Outdated { epoch }) => {
                    come_to(&coordinator, epoch, TimeoutKind::Write).await?;
                }
                Ok(Settled::Again) if held.agreement.is_in_doubt() => {}
                settled => return settled,
            }
            if !held.agreement.is_in_doubt() {
                return Ok(Settled::Again);
            }
            // It is made good, or can not be any more when something else is chosen: nothing.
            held.come_to_ring(&coordinator, table);
            settled = match held.agreement.ready(&round.levels, deadline).await {
                Ok(Ready::Made) => return Ok(Settled::Done),
                Ok(Ready::ToDecide) => {
                    match held.agreement.settle(Settling::default(), &[], deadline, || ()).await {
                        Ok(Settled::Done) => return Ok(Settled::Again),
                        settled => settled,
                    }
                }
                Err(error) => Err(error),
            };
        }
    }
}

impl Drop for ClaimedInRing {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Held {
    /// Does the next one have to wait until the round is settled?
    fn takes_no_more(&self) -> bool {
        self.round.is_full() || !self.round.is_empty() && !self.agreement.is_on_own_rows()
    }

    fn come_to_ring(&mut self, coordinator: &Coordinator, table: TableId) {
        if let Some(replicas) = coordinator.replicas_of(table) {
            self.agreement.renew(replicas);
        }
    }
}

/// What stands in the way of a round, as each of those is told who wait for it.
fn told(error: &ReplicaError) -> CoordinatorError {
    match error {
        ReplicaError::Unavailable { consistency, required, alive } => {
            let (consistency, required, alive) = (consistency.name(), *required, *alive);
            CoordinatorError::Unavailable { consistency, required, alive }
        }
        ReplicaError::Chosen { received, required } => {
            CoordinatorError::Chosen { received: *received, required: *required }
        }
        ReplicaError::Coordinator(CoordinatorError::Overloaded { what }) => {
            CoordinatorError::Overloaded { what: what.clone() }
        }
        error => in_doubt(error),
    }
}

fn in_doubt(error: &ReplicaError) -> CoordinatorError {
    tracing::debug!(%error, "conditional changes may or may not be made");
    CoordinatorError::InDoubt
}
