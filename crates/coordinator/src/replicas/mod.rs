//! Reads and writes over the nodes of a ring.
//!
//! ```text
//!   write ─► RingView: which replicas? ─► enough alive? ─┬─ this node's shards
//!                                                        └─ Peer::ask, one message for each ─► enough said done?
//!   read ──► as many replicas as must answer ─► merge ─► what one lacks is written to it ─► the page
//! ```
//!
//! What is not here yet, and what its place is: names of mutations (decision 0026); hashes instead of rows also of full
//! reads.
//!
//! | a reader asks | file |
//! |---|---|
//! | how does a shard see the ring as it changes? | `seat.rs` |
//! | who are the replicas, and how are they reached? | `view.rs` |
//! | how many must answer? | `requirement.rs` |
//! | how is a write carried to them? | `write.rs` |
//! | how do their rows become one answer? | `read.rs` |
//! | and those of several keys? | `keys.rs` |
//! | how do they agree on a conditional change? | `agreement.rs` |
//! | in how many rounds, and how often others came between? | `agreement_counts.rs` |
//! | and which of them decides about it? | `deciders.rs` |
//! | how is what they have agreed on written? | `chosen.rs` |
//! | which of them counts what is added to counters? | `counting.rs` |
//! | how often did answers differ? | `read_repairs.rs` |
//! | when is one more replica asked? | `speculation.rs` |
//! | what does a trace tell of other nodes? | `traced.rs` |
//! | how are rows read and written by their keys, several at a time? | `plain.rs` |
//! | which replicas do these go to? | `partners.rs` |
//! | which nodes keep a logged batch? | `keepers.rs` |
//! | what of a write that a replica has missed? | `marks.rs`, `owed.rs`, `slots.rs` |
//! | and of one whose coordinator was killed? | `settled.rs`, `lives.rs` |
//! | how does it come to that replica? | `healing.rs`, `logged.rs`, `repeats.rs` |
//! | what has an operator to say to that? | `handoff.rs` |
//! | what does a seat keep on the disk? | `kept.rs` |
//! | how are rows compared and made equal? | `equal.rs`, `mending.rs` |
//! | how does a node get its rows that has taken the place of a lost one? | `filling.rs` |
//! | how does somebody ask for that? | `repair.rs` |
//! | how is a table emptied everywhere? | `truncate.rs` |
//! | how does a node answer another one? | `service.rs` |
//! | what does a client hear when too few answered? | `error.rs` |

pub(crate) mod agreement;
mod agreement_counts;
mod chosen;
mod counting;
pub(crate) mod deciders;
mod equal;
mod error;
mod filling;
mod handoff;
mod healing;
pub(crate) mod keepers;
mod kept;
mod keys;
mod lives;
mod logged;
mod marks;
mod mending;
mod owed;
pub(crate) mod partners;
mod phases;
pub(crate) mod plain;
mod read;
mod read_repairs;
mod repair;
mod repeats;
pub(crate) mod requirement;
mod seat;
mod service;
mod settled;
mod slots;
mod speculation;
mod traced;
mod truncate;
mod view;
mod write;

pub use ::replica::Failure;
pub use agreement_counts::AgreementCounts;
pub(crate) use counting::count_by_one;
pub use equal::{Compared, Participants};
pub use error::{ReplicaError, TooFew};
pub use filling::fill;
pub use handoff::Handoff;
pub(crate) use keys::is_alone_with;
pub use marks::Marks;
pub use owed::Pending;
pub use read_repairs::ReadRepairs;
pub use repair::{RepairExtent, Repairer, Repairs, carry_out_repairs, repairs};
pub use seat::RingSeat;
pub use service::ReplicaService;
pub use speculation::Latencies;
pub(crate) use truncate::truncate_as_agreed;
pub use view::{Remote, RingView, Way};

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::replica::{Answer, Asked, PlannedOn};
use bytes::BytesMut;
use messaging::{AskError, Peer};
use ring::NodeIndex;
use runtime::{Alarm, Plant, trace};
use schema::{Schema, Table, TableId};
use smallvec::SmallVec;
use stdx::id_map::IdMap;
use storage::ShardHandle;
use tokio::time::Instant;
use types::Token;

use crate::{Consistency, CoordinatorError};
use chosen::Commits;
use requirement::{Factors, Requirement};
use settled::UnderWay;
use slots::slot_of;
use traced::Sent;
use view::{Plan, Replicated};

/// Carries reads and writes to the replicas of a ring. Belongs to one shard; clone it freely there.
#[derive(Clone)]
pub struct Replicas {
    view: Rc<RingView>,
    shard: ShardHandle,
    /// The epoch of the schema that all of this is planned on.
    schema_epoch: u64,
    /// And that of the ring: whose replicas these are.
    ring_epoch: u64,
    marker: Rc<Marker>,
    read_repairs: Arc<ReadRepairs>,
    homes: Rc<RefCell<IdMap<TableId, Rc<Replicated>>>>,
    commits: Rc<Commits>,
    /// For waits that most answers end soon.
    alarm: Alarm,
}

/// Why a replica did not do its part.
#[derive(Clone, Debug, PartialEq)]
enum Missed {
    /// It was not asked, or what it was asked was lost or given up: nobody knows.
    Silent {
        /// Did anything leave this node?
        was_sent: bool,
    },
    /// It said why.
    Failed(Failure),
}

impl From<AskError> for Missed {
    fn from(error: AskError) -> Missed {
        Missed::Silent { was_sent: error != AskError::NotSent }
    }
}

impl Replicas {
    /// The way to the replicas of a ring, as one of its nodes sees it. What others miss is marked.
    pub fn new(view: Rc<RingView>, shard: ShardHandle, marks: Marks) -> Replicas {
        let schema_epoch = shard.local().with_schema(Schema::epoch);
        let marker = Rc::new(Marker { marks, shard: shard.clone() });
        let (read_repairs, homes, commits) = (Arc::default(), Rc::default(), Rc::default());
        let alarm = Alarm::default();
        Replicas { view, shard, schema_epoch, ring_epoch: 0, marker, read_repairs, homes, commits, alarm }
    }

    /// The same; that is how often the ring had changed when it was seen so.
    pub fn at_ring_epoch(self, ring_epoch: u64) -> Replicas {
        Replicas { ring_epoch, ..self }
    }

    /// The same; reads are counted there.
    pub(crate) fn counting(self, read_repairs: Arc<ReadRepairs>) -> Replicas {
        Replicas { read_repairs, ..self }
    }

    /// Where reads are counted.
    pub fn read_repairs(&self) -> &Arc<ReadRepairs> {
        &self.read_repairs
    }

    fn has_planted(&self, plant: Plant) -> bool {
        self.shard.local().runtime().plants.has(plant)
    }

    /// Are there replicas of the table on the ring? If not, it is this node's own.
    pub(crate) fn has(&self, table: TableId) -> bool {
        self.home(table).is_some()
    }

    /// The keyspace of a table, if it is on the ring. All of this is planned on one schema, so it is looked for once.
    fn home(&self, table: TableId) -> Option<Rc<Replicated>> {
        if let Some(home) = self.homes.borrow().get(&table) {
            return Some(Rc::clone(home));
        }
        let home = self.shard.local().with_schema(|schema| {
            schema.keyspace_of(table).and_then(|keyspace| self.view.replicated(&keyspace.name)).map(Rc::clone)
        })?;
        self.homes.borrow_mut().insert(table, Rc::clone(&home));
        Some(home)
    }

    /// All tables that are on the ring.
    fn tables(&self) -> Vec<Arc<Table>> {
        let on_ring = |schema: &Schema| {
            let keyspaces = schema.keyspaces().values().filter(|keyspace| self.view.has(&keyspace.name));
            keyspaces.flat_map(|keyspace| keyspace.tables.values()).map(Arc::clone).collect()
        };
        self.shard.local().with_schema(on_ring)
    }

    /// The replicas of a partition but for this node.
    fn others_of(&self, table: TableId, token: Token) -> SmallVec<[NodeIndex; 4]> {
        let nodes = self.plan_of(table, token).map_or(&[][..], |plan| plan.nodes);
        nodes.iter().copied().filter(|node| *node != self.view.here()).collect()
    }

    /// The replicas of a partition; `None` when its table is not on the ring.
    fn plan_of(&self, table: TableId, token: Token) -> Option<Plan<'_>> {
        self.shard.local().with_schema(|schema| {
            schema.keyspace_of(table).and_then(|keyspace| self.view.plan(&keyspace.name, token))
        })
    }

    /// The last token up to `last` that has the same replicas as all before it from `first` on.
    fn end_of_replicas(&self, table: TableId, first: Token, last: Token) -> Result<Token, ReplicaError> {
        if self.has_planted(Plant::OneSetOfReplicas) {
            return Ok(last);
        }
        let end = self.shard.local().with_schema(|schema| {
            let placement = self.view.placement(&schema.keyspace_of(table)?.name)?;
            Some(placement.end_of_group(first, last))
        });
        end.ok_or(ReplicaError::NoTable)
    }

    /// Asks a replica for something about these tables, at once; what it answers can be waited for.
    fn ask(
        &self,
        peer: &Peer,
        tables: impl IntoIterator<Item = TableId>,
        deadline: Instant,
        put: impl FnOnce(&mut BytesMut),
    ) -> impl Future<Output = Result<Answer, Missed>> + 'static {
        let of_table = |schema: &Schema| tables.into_iter().map(|table| schema.truncated_at(table)).max();
        let truncated_at = self.shard.local().with_schema(of_table).unwrap_or(0);
        let trace = trace::current();
        let mut sent = None;
        let asked = peer.ask(deadline.saturating_duration_since(Instant::now()), |out| {
            let (schema_epoch, ring_epoch) = (self.schema_epoch, self.ring_epoch);
            let start = out.len();
            Asked::begin(PlannedOn { schema_epoch, truncated_at, ring_epoch }, out);
            if trace.is_some() {
                Asked::put_traced(out);
            }
            put(out);
            sent = trace.map(|trace| Box::new(Sent::of(trace, peer.address(), &out[start..])));
        });
        async move {
            let answer = asked.map_err(|error| failed(error.to_string()))?.await;
            let read = match sent {
                None => Answer::read(answer?),
                Some(sent) => sent.take_in(answer)?,
            };
            read.map_err(|error| failed(error.to_string()))
        }
    }

    /// As [`Replicas::ask`], of a read: how long the answer takes is noted.
    fn ask_to_read(
        &self,
        node: NodeIndex,
        table: TableId,
        deadline: Instant,
        put: impl FnOnce(&mut BytesMut),
    ) -> impl Future<Output = Result<Answer, Missed>> + 'static {
        let peer = self.view.peer(node).expect("it is another node");
        let ask = self.ask(peer, [table], deadline, put);
        let latencies = self.view.latencies(node).map(Rc::clone).unwrap_or_default();
        latencies.ask();
        let mut timing = Timing { latencies, begun: Instant::now(), is_answered: false };
        async move {
            let answer = ask.await;
            timing.note(&answer);
            answer
        }
    }

    /// How long answers of these nodes are waited for before another one is asked; `None` for ever.
    fn lateness(&self, table: &Table, nodes: &[NodeIndex]) -> Option<Duration> {
        let asked = nodes.iter().filter_map(|node| self.view.latencies(*node)).map(Rc::as_ref);
        speculation::delay(&table.options().speculative_retry.0, asked)
    }

    /// The replicas of a partition, and how many must answer.
    ///
    /// # Errors
    /// `Unavailable` when fewer live, `Overloaded` when too much waits to be sent to them, or `NoTable`.
    fn admit(
        &self,
        table: TableId,
        token: Token,
        consistency: Consistency,
    ) -> Result<(Plan<'_>, Requirement), ReplicaError> {
        self.admit_at(table, token, |_| consistency)
    }

    /// The same, at a level that depends on how many replicas there are.
    fn admit_at(
        &self,
        table: TableId,
        token: Token,
        level: impl FnOnce(&Factors) -> Consistency,
    ) -> Result<(Plan<'_>, Requirement), ReplicaError> {
        let plan = self.plan_of(table, token).ok_or(ReplicaError::NoTable)?;
        let consistency = level(plan.factors);
        let consistency = if self.has_planted(Plant::OneIsEnough) { Consistency::One } else { consistency };
        let requirement = Requirement::of(consistency, plan.factors);
        match requirement.shortage(&self.view.alive(&plan)) {
            None => Ok((plan, requirement)),
            Some(_) if requirement.shortage(&self.view.alive_or_crowded(&plan)).is_none() => Err(crowded()),
            Some(shortage) => Err(shortage.unavailable(consistency)),
        }
    }
}

/// Marks what others have missed.
struct Marker {
    marks: Marks,
    shard: ShardHandle,
}

impl Marker {
    /// A write began then, in this turn; it is not settled until what is given is dropped.
    fn begin_write(&self, begun: Instant) -> UnderWay {
        self.marks.of(self.shard.local().index()).begin_write(begun)
    }

    /// A node has not acknowledged a write to a table at a token. `logged` is when it began, if this node has written
    /// it itself.
    fn mark(
        &self,
        view: &RingView,
        node: NodeIndex,
        (table, token): (TableId, Token),
        logged: Option<Instant>,
    ) {
        if !self.marks.handoff().is_for(view.center_name_of(node)) {
            return;
        }
        // Of other keyspaces the log has nothing.
        let is_logged =
            |schema: &Schema| schema.keyspace_of(table).is_some_and(|keyspace| keyspace.durable_writes);
        let logged = logged.filter(|_| self.shard.local().with_schema(is_logged));
        let node = view.host_of(node);
        match logged {
            Some(begun) => {
                let owner = self.shard.shards().owner(token);
                if !self.marks.of(owner).add_logged(node, table, token, begun) {
                    self.marks.compare(node, table, slot_of(token));
                }
            }
            None => self.marks.compare(node, table, slot_of(token)),
        }
    }
}

/// Notes how long an answer took when it is dropped, or that it was given up.
struct Timing {
    latencies: Rc<Latencies>,
    begun: Instant,
    is_answered: bool,
}

impl Timing {
    fn note(&mut self, answer: &Result<Answer, Missed>) {
        self.is_answered = !matches!(answer, Err(Missed::Silent { .. }));
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        match self.is_answered {
            true => self.latencies.note(self.begun.elapsed()),
            false => self.latencies.give_up(self.begun.elapsed()),
        }
    }
}

/// It has answered something that is no answer to that.
fn misanswered() -> Missed {
    failed("an answer to something else".to_owned())
}

/// They live, and take too little.
fn crowded() -> ReplicaError {
    let what = "too much waits to be sent to other nodes".to_owned();
    CoordinatorError::Overloaded { what }.into()
}

fn failed(what: String) -> Missed {
    Missed::Failed(Failure::Other { what })
}
