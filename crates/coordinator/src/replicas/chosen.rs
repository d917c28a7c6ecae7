//! What the replicas of a partition have chosen is written on all of them; then those that have written it are told
//! that a quorum has, some moments later and many of them together, unless something else was proposed meanwhile that
//! tells it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use futures_util::future::{FutureExt, join_all};
use replica::{Committed, CommittedIn, PaxosRequest, Phase, Proposal, Request, Written};
use ring::NodeIndex;
use rows::PartitionKey;
use schema::TableId;
use smallvec::SmallVec;
use stdx::index_set::IndexSet;
use storage::{KEYS_TOGETHER, Unit};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::error::ReplicaError;
use super::phases::{Word, ask_one};
use super::requirement::Requirement;
use super::write::{Term, begin_group_of, together};
use super::{Missed, Replicas, RingSeat, misanswered};
use crate::Consistency;

/// What is committed is told so much later: time for what comes next to tell it.
const TOLD_AFTER: Duration = Duration::from_millis(20);
/// How long replicas are waited for that are told.
const PATIENCE: Duration = Duration::from_secs(2);

/// Replicas that have written something.
pub(super) type WrittenBy = Rc<RefCell<SmallVec<[NodeIndex; 4]>>>;

/// A partition of a table.
type Place = (TableId, PartitionKey);

/// What is committed and not told yet, by partition, with the nodes that have written it.
#[derive(Default)]
pub(super) struct Commits {
    untold: RefCell<BTreeMap<Place, (Committed, Vec<Uuid>)>>,
    some: Notify,
}

/// Something that is chosen and is being written, until all replicas have answered or are late.
struct Chosen {
    place: Place,
    committed: Committed,
    replicas: Replicas,
    written_by: WrittenBy,
    /// Has a quorum written it?
    is_committed: Cell<bool>,
}

impl Commits {
    /// It is told by the way.
    pub(super) fn forget(&self, table: TableId, key: &PartitionKey) {
        self.untold.borrow_mut().remove(&(table, key.clone()));
    }

    /// It is to be told, unless something later is.
    fn add(&self, place: Place, committed: Committed, nodes: Vec<Uuid>) {
        let mut untold = self.untold.borrow_mut();
        if untold.get(&place).is_none_or(|(before, _)| before.ballot < committed.ballot) {
            untold.insert(place, (committed, nodes));
            self.some.notify_one();
        }
    }

    /// Takes all, by the node that is to be told.
    fn take(&self) -> BTreeMap<Uuid, Vec<CommittedIn>> {
        let mut of_nodes: BTreeMap<Uuid, Vec<CommittedIn>> = BTreeMap::new();
        for ((table, key), (committed, nodes)) in std::mem::take(&mut *self.untold.borrow_mut()) {
            for node in nodes {
                let one = CommittedIn { table, key: key.clone(), committed };
                of_nodes.entry(node).or_default().push(one);
            }
        }
        of_nodes
    }
}

impl Drop for Chosen {
    fn drop(&mut self) {
        if self.is_committed.get() {
            let view = &self.replicas.view;
            let nodes = self.written_by.borrow().iter().map(|node| view.host_of(*node)).collect();
            self.replicas.commits.add(self.place.clone(), self.committed, nodes);
        }
    }
}

/// Writes what was agreed on at the second level on all replicas, and waits until as many as the first asks for have
/// it, and this node has. Who has written it, until all have answered?
///
/// # Errors
/// As [`Replicas::write`].
///
/// # Cancel safety
/// As [`Replicas::write`].
pub(super) async fn write_chosen(
    replicas: &Replicas,
    (table, key): (TableId, &PartitionKey),
    proposal: &Proposal,
    (level, agreed): (Consistency, Consistency),
    patience: Duration,
) -> Result<WrittenBy, ReplicaError> {
    assert!(!proposal.mutations.is_empty(), "what is written changes something");
    let (term, place) = (Term::of(patience), (table, key.token));
    let (plan, requirement) = replicas.admit(place.0, place.1, level)?;
    let written_by = WrittenBy::default();
    let chosen = Rc::new(Chosen {
        place: (table, key.clone()),
        committed: Committed::from(proposal),
        replicas: replicas.clone(),
        written_by: Rc::clone(&written_by),
        is_committed: Cell::new(false),
    });
    let phase = Phase::Write(Box::new(proposal.clone()));
    let write_at = |node: NodeIndex| {
        let request = PaxosRequest { table, key: key.clone(), phase: phase.clone() };
        let (chosen, asked) = (Rc::clone(&chosen), ask_one(replicas, node, request, term.deadline));
        async move {
            let written = written_of(asked.await)?;
            chosen.written_by.borrow_mut().push(node);
            Ok(written)
        }
        .boxed_local()
    };
    let unit = (Unit::All, Rc::from([place]));
    let group = begin_group_of(replicas, &plan, requirement.clone(), unit, term, write_at);
    let written = group.awaiting(replicas.view.here()).finish(level).await;
    together(written)?;
    // A level may want fewer than those that agree.
    let agreed = Requirement::of(agreed, plan.factors);
    chosen.is_committed.set(requirement.implies(&agreed, plan.factors.center_count));
    Ok(written_by)
}

fn written_of(word: Result<Word, Missed>) -> Result<Written, Missed> {
    match word? {
        Word::Done => Ok(Written { done: IndexSet::first(1), ..Written::default() }),
        _ => Err(misanswered()),
    }
}

/// Tells replicas what is committed, for as long as the seat is taken.
pub(super) async fn tell_committed(seat: Weak<RingSeat>) {
    let Some(commits) = seat.upgrade().map(|seat| Rc::clone(seat.commits())) else { return };
    loop {
        commits.some.notified().await;
        sleep(TOLD_AFTER).await;
        let Some(seat) = seat.upgrade() else { return };
        let Some(replicas) = seat.replicas() else { continue };
        let told = commits.take().into_iter().flat_map(|(node, committed)| {
            let node = replicas.view.index_of(node);
            let parts = committed.chunks(KEYS_TOGETHER).map(<[CommittedIn]>::to_vec).collect::<Vec<_>>();
            parts.into_iter().filter_map(move |part| Some((node?, part)))
        });
        join_all(told.map(|(node, part)| tell(&replicas, node, part))).await;
    }
}

/// Who does not hear it tells it to whoever asks for a promise.
async fn tell(replicas: &Replicas, node: NodeIndex, committed: Vec<CommittedIn>) {
    let Some(peer) = replicas.view.peer(node) else {
        replica::note_committed(&replicas.shard, committed).await;
        return;
    };
    let tables: Vec<TableId> = committed.iter().map(|one| one.table).collect();
    let deadline = Instant::now() + PATIENCE;
    _ = replicas.ask(peer, tables, deadline, |out| Request::put_committed(&committed, out)).await;
}
