//! A node's part in a ring, put together: a thread for it, and a seat on each shard.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use cluster::MetadataLog;
use cluster::membership::{
    Doors, Encryption, Known, MembershipOptions, Proposals, Proposer, Protection, proposals, take_part,
};
use cluster::metadata::{Candidate, Entry, HISTORY_VERSION};
use cluster::raft::Timing;
use coordinator::replicas::{Handoff, Marks, Repairer, Repairs, repairs};
use messaging::{Bounds, Guests, Handed, Identity, Room, Secret};
use runtime::{BoundListener, Io, Runtime};
use schema::Schema;
use storage::{Layout, NodeFacts};
use tls::{Certificates, NameCheck, TlsFiles};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use crate::{AssemblyError, NodeOptions};

/// What a node's part in a ring begins with.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Where other nodes come in.
    pub listen: SocketAddr,
    /// Where they are told that it is.
    pub broadcast: SocketAddr,
    /// Nodes to ask first; this one may be among them.
    pub seeds: Vec<SocketAddr>,
    /// Where the member was whose place the node is to take, as long as it is no member itself.
    pub replaces: Option<SocketAddr>,
    /// How many tokens the node is to have.
    pub num_tokens: u16,
    /// Those that its operator has chosen, as many; none: they are chosen for it.
    pub initial_tokens: Vec<i64>,
    /// What strangers do not know.
    pub secret: Option<Secret>,
    /// How what is said to other nodes is encrypted; `None` when it is not.
    pub tls: Option<RingTls>,
    /// Are long messages to other nodes compressed?
    pub wants_compression: bool,
    /// What connections with other nodes may come to.
    pub limits: RingLimits,
    /// How long others are waited for.
    pub timing: Timing,
    /// What is done with what others have missed.
    pub handoff: Arc<Handoff>,
}

/// What connections with other nodes may come to.
#[derive(Clone, Copy, Debug)]
pub struct RingLimits {
    /// What they hold in memory together, in bytes.
    pub message_bytes: usize,
    /// How many others may have to this node.
    pub connection_count: usize,
    /// And how many from one address.
    pub connection_count_per_address: usize,
}

impl RingLimits {
    fn bounds(self) -> Bounds {
        let guests = Guests::new(self.connection_count, self.connection_count_per_address);
        Bounds { room: Room::new(self.message_bytes), guests }
    }
}

/// How what is said to other nodes is encrypted.
#[derive(Clone, Debug)]
pub struct RingTls {
    /// Which talks must be under TLS; others may be.
    pub encryption: Encryption,
    /// Where the node's certificate stands, and the CAs that it believes.
    pub files: TlsFiles,
    /// Must a certificate name the address that was connected to?
    pub names: NameCheck,
}

impl RingTls {
    fn open(&self, runtime: &Runtime) -> Result<Protection, AssemblyError> {
        let (disk, clock) = (Arc::clone(&runtime.disk), Arc::clone(&runtime.clock));
        let certificates = Certificates::open(self.files.clone(), self.names, disk, clock);
        let certificates = certificates.map_err(AssemblyError::Certificates)?;
        Ok(Protection { encryption: self.encryption, certificates })
    }
}

/// What the shards' threads need for their seats in the ring.
#[derive(Clone)]
pub(crate) struct Seats {
    pub(crate) known: Known,
    pub(crate) proposer: Proposer,
    pub(crate) repairer: Repairer,
    /// What others have missed.
    pub(crate) marks: Marks,
    /// What repairs are asked for; taken by the first shard.
    repairs: Arc<Mutex<Option<Repairs>>>,
    /// Connections of other nodes to each shard; taken by it.
    handed: Arc<Mutex<Vec<Option<mpsc::UnboundedReceiver<Handed>>>>>,
    /// What was agreed on; taken by the first shard.
    entries: Arc<Mutex<Option<mpsc::UnboundedReceiver<Entry>>>>,
}

impl Seats {
    /// Connections of other nodes to a shard. Once.
    pub(crate) fn take_handed(&self, shard: usize) -> Option<mpsc::UnboundedReceiver<Handed>> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)[shard].take()
    }

    /// What was agreed on. Once.
    pub(crate) fn take_entries(&self) -> Option<mpsc::UnboundedReceiver<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What repairs are asked for. Once.
    pub(crate) fn take_repairs(&self) -> Option<Repairs> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A node's part in a ring that has yet to begin.
pub(crate) struct RingPart {
    pub(crate) seats: Seats,
    options: MembershipOptions,
    certificates: Option<Certificates>,
    listener: BoundListener,
    entries: mpsc::UnboundedSender<Entry>,
    proposals: Proposals,
    to_shards: Vec<mpsc::UnboundedSender<Handed>>,
}

/// Ends a node's part in a ring when it is dropped.
pub(crate) struct Stop(#[expect(dead_code, reason = "it is dropped, and nothing else")] oneshot::Sender<()>);

/// Tells the node when the thread of its part in the ring is gone, however it went.
struct TellsEnd(Known);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        if self.0.ended().is_none() {
            self.0.end("its thread has ended".to_owned());
        }
    }
}

impl RingPart {
    /// The part of a node with that identity and history.
    ///
    /// # Errors
    /// Its address is taken, its certificates are no good, or its history can not be read again.
    pub(crate) fn prepare(
        ring: &RingOptions,
        node: &NodeOptions,
        facts: &NodeFacts,
        (metadata, layout, base): (&MetadataLog, &Layout, Arc<Schema>),
        runtime: &Runtime,
    ) -> Result<RingPart, AssemblyError> {
        let shard_count = node.storage.shard_count;
        let candidate = Candidate {
            host_id: facts.host_id,
            address: ring.broadcast,
            cql_address: node.cql_broadcast,
            data_center: node.data_center.clone(),
            rack: node.rack.clone(),
            shard_count,
            num_tokens: ring.num_tokens,
            initial_tokens: ring.initial_tokens.clone(),
            history_version: HISTORY_VERSION,
        };
        let identity = Identity {
            cluster_name: node.cluster_name.clone(),
            cluster_id: None,
            host_id: facts.host_id,
            incarnation: u64::try_from(runtime.clock.now_micros()).unwrap_or(0),
            shard_count,
            wants_compression: ring.wants_compression,
            secret: ring.secret.clone(),
        };
        let history = match metadata.metadata().members {
            None => metadata.changes(&layout.schema_log())?,
            // What the ring has agreed on is in its own log.
            Some(_) => Vec::new(),
        };
        let options = MembershipOptions {
            candidate,
            seeds: ring.seeds.clone(),
            replaces: ring.replaces,
            directory: layout.agreement(),
            timing: ring.timing,
            base,
            history,
        };
        let protection = ring.tls.as_ref().map(|tls| tls.open(runtime)).transpose()?;
        let certificates = protection.as_ref().map(|protection| protection.certificates.clone());
        let listener = bind(ring.listen, runtime)?;
        let (proposer, proposals) = proposals();
        let (repairer, repairs) = repairs();
        let (entries, taken) = mpsc::unbounded_channel();
        let (to_shards, handed) =
            (0..shard_count).map(|_| mpsc::unbounded_channel()).unzip::<_, _, Vec<_>, Vec<_>>();
        let seats = Seats {
            known: Known::protected(identity, metadata.metadata(), protection, ring.limits.bounds()),
            proposer,
            repairer,
            marks: Marks::new(usize::from(shard_count), Arc::clone(&ring.handoff)),
            repairs: Arc::new(Mutex::new(Some(repairs))),
            handed: Arc::new(Mutex::new(handed.into_iter().map(Some).collect())),
            entries: Arc::new(Mutex::new(Some(taken))),
        };
        Ok(RingPart { seats, options, certificates, listener, entries, proposals, to_shards })
    }

    /// Begins, on a thread of its own.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(self, runtime: &Runtime) -> io::Result<Stop> {
        let (runtime, (stop, stopped)) = (runtime.clone(), oneshot::channel());
        runtime::start_service("ring", move || self.run(runtime, stopped))?;
        Ok(Stop(stop))
    }

    /// Begins, as a task of the surrounding `LocalSet`. What it starts ends with it, as on a thread of its own.
    pub(crate) fn start_local(self, runtime: &Runtime) -> Stop {
        let (runtime, (stop, stopped)) = (runtime.clone(), oneshot::channel());
        let running = async move { LocalSet::new().run_until(self.run(runtime, stopped)).await };
        runtime::spawn_local("ring", Box::pin(running));
        Stop(stop)
    }

    async fn run(self, runtime: Runtime, stopped: oneshot::Receiver<()>) {
        let RingPart { seats, options, certificates, listener, entries, proposals, to_shards } = self;
        let known = seats.known;
        let _tells_end = TellsEnd(known.clone());
        let hand_over = move |shard: u16, handed: Handed| match to_shards.get(usize::from(shard)) {
            // A shard that has ended answers nobody.
            Some(to_shard) => _ = to_shard.send(handed),
            None => tracing::warn!(shard, "a connection for a shard that is not there"),
        };
        let hand_over = Box::new(hand_over);
        let doors = Doors { known: known.clone(), listener, entries, proposals, hand_over };
        tokio::select! {
            biased;
            // Also when it was dropped.
            _ = stopped => known.end("the node stops".to_owned()),
            never = follow(certificates, runtime.io.clone()) => match never {},
            failed = take_part(options, runtime.clone(), doors) => {
                let Err(error) = failed;
                tracing::error!(%error, "this node takes no part in its ring");
                known.end(error.to_string());
            }
        }
    }
}

/// Looks whether certificates change, if there are any.
async fn follow(certificates: Option<Certificates>, io: Io) -> Infallible {
    match certificates {
        Some(certificates) => certificates.follow(io).await,
        None => std::future::pending().await,
    }
}

fn bind(address: SocketAddr, runtime: &Runtime) -> Result<BoundListener, AssemblyError> {
    let bound = runtime.network.bind(address, 1);
    let listener = bound.map_err(|source| AssemblyError::Internode { address, source })?.into_iter().next();
    Ok(listener.expect("one was asked for"))
}

/// Waits until the node is a member of its ring and may serve.
///
/// # Errors
/// It will not be one.
pub(crate) async fn comes_in(known: &Known) -> Result<(), AssemblyError> {
    tokio::select! {
        biased;
        () = known.may_serve() => Ok(()),
        why = known.until_ended() => Err(AssemblyError::Ring(why)),
    }
}
