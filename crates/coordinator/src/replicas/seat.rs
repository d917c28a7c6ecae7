//! A shard's seat in the ring: its connections to the others, and the ring as it sees it between two changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::Members;
use cluster::membership::{Hybrid, Known, Proposer, Speaker, while_in_ring};
use cluster::metadata::Member;
use messaging::{Handed, Node, Peer, PeerOptions, Purpose, answer};
use ring::Strategy;
use runtime::Plant;
use schema::{Schema, TableId};
use storage::{Shard, ShardHandle};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use super::chosen::{Commits, tell_committed};
use super::healing::{heal, keep_marks};
use super::lives::watch_lives;
use super::marks::{Marks, ShardMarks};
use super::speculation::Latencies;
use super::{ReadRepairs, Remote, ReplicaService, Replicas, RingView, Way};
use crate::Timeouts;
use crate::conditional::Agreements;

/// Nothing more is sent to a node that takes nothing while so much waits.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// So many requests to one node wait for their answers.
const ASKED_COUNT_MAX: usize = 16_384;

/// A shard's seat in the ring.
pub struct RingSeat {
    known: Known,
    proposer: Proposer,
    timeouts: Arc<Timeouts>,
    shard: ShardHandle,
    node: Rc<dyn Node>,
    connections: RefCell<BTreeMap<Uuid, Connection>>,
    marks: Marks,
    read_repairs: Arc<ReadRepairs>,
    /// Logged batches that others need not keep any more and are not told of yet, by who keeps them.
    pub(super) let_go: RefCell<BTreeMap<Uuid, Vec<Uuid>>>,
    agreements: Agreements,
    commits: Rc<Commits>,
    seen: RefCell<Option<Seen>>,
}

/// The ring as it was seen last.
struct Seen {
    ring_epoch: u64,
    schema_epoch: u64,
    /// `None` when this node has no others.
    replicas: Option<Rc<Replicas>>,
    /// Has it none because it is no member of the ring that it knows?
    is_left_out: bool,
}

/// A connection of this shard to one of another node.
struct Connection {
    address: SocketAddr,
    purpose: Purpose,
    peer: Peer,
    latencies: Rc<Latencies>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The timestamps of a shard.
struct Timestamps(Rc<Shard>);

impl Hybrid for Timestamps {
    fn latest(&self) -> i64 {
        self.0.timestamps().latest()
    }

    fn hear(&self, micros: i64) {
        if self.0.runtime().plants.has(Plant::TimestampUnheard) {
            return;
        }
        if self.0.runtime().plants.has(Plant::SkewBelieved) {
            return self.0.timestamps().believe(micros);
        }
        self.0.timestamps().hear(micros);
    }
}

impl RingSeat {
    /// Takes the seat of a shard.
    pub fn take(
        known: Known,
        proposer: Proposer,
        timeouts: Arc<Timeouts>,
        shard: ShardHandle,
        marks: Marks,
    ) -> Rc<RingSeat> {
        let clock = Timestamps(Rc::clone(shard.local()));
        let node: Rc<dyn Node> = Rc::new(Speaker::new(known.clone(), Box::new(clock)));
        let (connections, seen, read_repairs) = (RefCell::default(), RefCell::default(), Arc::default());
        let let_go = RefCell::default();
        let seat = Rc::new(RingSeat {
            known,
            proposer,
            timeouts,
            shard,
            node,
            connections,
            marks,
            read_repairs,
            let_go,
            agreements: Agreements::default(),
            commits: Rc::default(),
            seen,
        });
        // Without one of these, replicas would go on lacking what was acknowledged, and nobody would see it.
        let failsafe = &seat.shard.local().runtime().failsafe;
        failsafe.spawn_local("healing", heal(Rc::downgrade(&seat)));
        failsafe.spawn_local("marks", keep_marks(Rc::downgrade(&seat), seat.known.clone()));
        failsafe.spawn_local("lives of other nodes", watch_lives(Rc::downgrade(&seat)));
        failsafe.spawn_local("what is committed", tell_committed(Rc::downgrade(&seat)));
        seat
    }

    /// Answers on the connections that are handed to the shard, from now on.
    pub(crate) fn answer(&self, handed: UnboundedReceiver<Handed>, service: ReplicaService) {
        let answering = answer_all(handed, Rc::clone(&self.node), Rc::new(service));
        runtime::spawn_local("connections of other nodes", while_in_ring(self.known.clone(), answering));
    }

    /// Decides about what comes to the shard, from now on.
    pub(crate) fn decide(&self, deciding: impl Future<Output = ()> + 'static) {
        let deciding = while_in_ring(self.known.clone(), Box::pin(deciding));
        runtime::spawn_local("conditional changes of others", deciding);
    }

    /// Settles what is accepted and is not written, from now on. Without that, reads of it would wait for ever.
    pub(crate) fn settle_accepted(&self, settling: impl Future<Output = ()> + 'static) {
        let settling = while_in_ring(self.known.clone(), Box::pin(settling));
        self.shard.local().runtime().failsafe.spawn_local("what is accepted and not written", settling);
    }

    /// What is committed and not told yet.
    pub(super) fn commits(&self) -> &Rc<Commits> {
        &self.commits
    }

    /// The agreements that nobody has claimed now.
    pub(crate) fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    /// The way to this node's shards.
    pub(crate) fn shard(&self) -> &ShardHandle {
        &self.shard
    }

    /// What others have missed of what this node's shards own.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The same of what this shard owns.
    pub(super) fn own_marks(&self) -> &ShardMarks {
        self.marks.of(self.shard.local().index())
    }

    /// Where this shard's reads are counted.
    pub(crate) fn read_repairs(&self) -> &Arc<ReadRepairs> {
        &self.read_repairs
    }

    /// What the node knows of its ring.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The way to propose something to the ring.
    pub(crate) fn proposer(&self) -> &Proposer {
        &self.proposer
    }

    /// How long requests may take.
    pub(crate) fn timeouts(&self) -> &Arc<Timeouts> {
        &self.timeouts
    }

    /// Is this node no member of the ring that it knows? Then it is not alone either: others have what it had. So it is
    /// for a moment when its place was taken, until it ends.
    pub(crate) fn is_left_out(&self) -> bool {
        self.replicas().is_none() && self.seen.borrow().as_ref().is_some_and(|seen| seen.is_left_out)
    }

    /// Is the table one of those that the ring has?
    pub(crate) fn is_on_ring(&self, table: TableId) -> bool {
        let is_on_ring = |schema: &Schema| {
            let keyspace = schema.keyspace_of(table)?;
            Some(!matches!(Strategy::of(&keyspace.replication), Ok(Strategy::Local) | Err(_)))
        };
        self.shard.local().with_schema(is_on_ring).unwrap_or(false)
    }

    /// The way to the replicas of the ring as it is now; `None` when this node has no others: it is the only one, or
    /// [left out](RingSeat::is_left_out).
    pub(crate) fn replicas(&self) -> Option<Rc<Replicas>> {
        let ring_epoch = self.ring_epoch();
        let schema_epoch = self.shard.local().with_schema(Schema::epoch);
        if let Some(seen) = &*self.seen.borrow()
            && (seen.ring_epoch, seen.schema_epoch) == (ring_epoch, schema_epoch)
        {
            return seen.replicas.clone();
        }
        let members = self.known.members();
        let replicas = members.as_ref().and_then(|members| self.look(members, ring_epoch));
        // Before it is let in it knows of none.
        let is_left_out = members.is_some_and(|members| members.get(self.known.host_id()).is_none());
        *self.seen.borrow_mut() =
            Some(Seen { ring_epoch, schema_epoch, replicas: replicas.clone(), is_left_out });
        replicas
    }

    /// That of the ring as it is seen.
    fn ring_epoch(&self) -> u64 {
        if self.has_planted(Plant::StaleRingKept)
            && let Some(seen) = &*self.seen.borrow()
            && seen.replicas.is_some()
        {
            return seen.ring_epoch;
        }
        self.known.ring_epoch()
    }

    fn look(&self, members: &Members, ring_epoch: u64) -> Option<Rc<Replicas>> {
        let here = members.topology().index_of(self.known.host_id())?;
        self.connections.borrow_mut().retain(|host_id, _| members.get(*host_id).is_some());
        if members.list().len() < 2 {
            return None;
        }
        let keyspaces = self.shard.local().with_schema(replicated);
        // Most changes of the schema are of tables, and make no difference to where anything is.
        let view = self.view_as_before(ring_epoch, &keyspaces).unwrap_or_else(|| {
            let ways = members.list().iter().map(|member| self.way_to(member)).collect();
            Rc::new(RingView::new(members.topology(), here, ways, keyspaces))
        });
        let replicas = Replicas::new(view, self.shard.clone(), self.marks.clone()).at_ring_epoch(ring_epoch);
        let commits = Rc::clone(&self.commits);
        Some(Rc::new(Replicas { commits, ..replicas.counting(Arc::clone(&self.read_repairs)) }))
    }

    /// What was seen before, if it is the same ring with the same keyspaces.
    fn view_as_before(&self, ring_epoch: u64, keyspaces: &[(String, Strategy)]) -> Option<Rc<RingView>> {
        let seen = self.seen.borrow();
        let seen = seen.as_ref().filter(|seen| seen.ring_epoch == ring_epoch)?;
        let view = &seen.replicas.as_ref()?.view;
        view.is_of(keyspaces).then(|| Rc::clone(view))
    }

    fn way_to(&self, member: &Member) -> Way {
        let (address, host_id) = (member.candidate.address, member.candidate.host_id);
        let has_rows = member.state.has_rows();
        if host_id == self.known.host_id() {
            return Way { address, remote: None, has_rows };
        }
        let open = &mut *self.connections.borrow_mut();
        let is_ghost = |connection: &Connection| {
            connection.address != address && !self.has_planted(Plant::GhostAddressKept)
        };
        let is_other = |connection: &Connection| connection.purpose != self.purpose_to(member);
        if open.get(&host_id).is_none_or(|connection| is_ghost(connection) || is_other(connection)) {
            open.insert(host_id, self.connect(member));
        }
        let connection = &open[&host_id];
        let (peer, latencies) = (connection.peer.clone(), Rc::clone(&connection.latencies));
        let remote = Remote { peer, other: self.known.other(host_id), latencies };
        Way { address, remote: Some(remote), has_rows }
    }

    pub(super) fn has_planted(&self, plant: Plant) -> bool {
        self.shard.local().runtime().plants.has(plant)
    }

    /// Shards that have one number are connected, as far as there are as many.
    fn purpose_to(&self, member: &Member) -> Purpose {
        let from = u16::try_from(self.shard.local().index()).unwrap_or(u16::MAX);
        Purpose::Shard { from, to: from % member.candidate.shard_count.max(1) }
    }

    fn connect(&self, member: &Member) -> Connection {
        let purpose = self.purpose_to(member);
        let (address, host_id) = (member.candidate.address, member.candidate.host_id);
        let options = PeerOptions {
            address,
            host_id: Some(host_id),
            purpose,
            unsent_bytes_max: UNSENT_BYTES_MAX,
            asked_count_max: ASKED_COUNT_MAX,
        };
        let peer = Peer::new(options, Rc::clone(&self.node));
        let ended = move |error| tracing::debug!(%host_id, %error, "a connection to another node has ended");
        let runtime = self.shard.local().runtime();
        let (network, random) = (runtime.network.clone(), Arc::clone(&runtime.random));
        let run = peer.clone().run(network, random, Rc::clone(&self.node), ended);
        let task = runtime::spawn_local("connection to another node", run);
        Connection { address, purpose, peer, latencies: Rc::default(), task }
    }
}

/// Keyspaces that are on the ring, with their strategies.
fn replicated(schema: &Schema) -> Vec<(String, Strategy)> {
    let strategy = |replication| match Strategy::of(replication) {
        Ok(Strategy::Local) => None,
        Ok(strategy) => Some(strategy),
        Err(error) => {
            tracing::error!(%error, "a keyspace has no place on the ring");
            None
        }
    };
    let keyspaces = schema.keyspaces().values();
    keyspaces.filter_map(|keyspace| Some((keyspace.name.clone(), strategy(&keyspace.replication)?))).collect()
}

/// Answers on connections of other nodes. They end with it, and it with the node's part in the ring: whoever asked on
/// one that stays would be answered by a node that has stopped, also when another one has begun in its place.
async fn answer_all(mut handed: UnboundedReceiver<Handed>, node: Rc<dyn Node>, service: Rc<ReplicaService>) {
    let mut connections = JoinSet::new();
    loop {
        let handed = tokio::select! {
            biased;
            Some(_) = connections.join_next() => continue,
            handed = handed.recv() => handed,
        };
        match handed.map(Handed::take) {
            Some(Ok(met)) => {
                let answering = answer(met, Rc::clone(&node), Rc::<ReplicaService>::clone(&service));
                connections.spawn_local(runtime::measured("connection of another node", async move {
                    let ended = answering.await;
                    tracing::debug!(%ended, "a connection of another node has ended");
                }));
            }
            Some(Err(error)) => tracing::warn!(%error, "a connection of another node can not be taken"),
            None => return,
        }
    }
}
