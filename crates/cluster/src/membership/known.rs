//! What a node knows of its ring: members, how far it has come itself, and how it stands with the others. All threads
//! of the node look at it, and note whom they hear.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging::{Bounds, Context, Established, Identity, MessageCounts, Node, Purpose};
use schema::{Schema, Transformation};
use tls::Credentials;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::{About, Counted, Other, Protection};
use crate::metadata::{Entry, Member, Members, Metadata};

/// What a node knows of its ring. Cheap to clone.
#[derive(Clone)]
pub struct Known(Arc<Inner>);

struct Inner {
    identity: Identity,
    /// `None` when it has no certificates.
    protection: Option<Protection>,
    bounds: Bounds,
    members: Mutex<Option<Arc<Members>>>,
    /// Those of the metadata that are in force on all shards of this node.
    schema_epoch: AtomicU64,
    ring_epoch: AtomicU64,
    /// [`Members::fence`].
    fence: AtomicU64,
    others: Mutex<BTreeMap<Uuid, Arc<Other>>>,
    /// Something of all this is new.
    news: Notify,
    /// May this node serve clients?
    may_serve: AtomicBool,
    /// Does it?
    is_serving: AtomicBool,
    /// Is it to be taken for a node that does not live?
    is_withdrawn: AtomicBool,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Event>>>,
    /// Nodes that this one is told not to talk to.
    cut_off: Mutex<BTreeSet<Uuid>>,
    /// Are there any? Asked for each frame, which need not take the lock then.
    is_any_cut_off: AtomicBool,
    /// Bytes of this node's table files, once somebody has looked.
    load_bytes: Mutex<Option<u64>>,
    /// Set once the node takes no part in the ring any more, with the reason.
    ended: Mutex<Option<String>>,
    /// What became of requests over the connections of all threads.
    counted: Mutex<Vec<Counted>>,
}

/// What clients may want to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node became a member, or is elsewhere now. Its address for clients.
    Joined(SocketAddr),
    /// No member serves there any more.
    Left(SocketAddr),
    /// It serves.
    Up(SocketAddr),
    /// It is not heard any more, or serves no clients.
    Down(SocketAddr),
    /// The schema has changed, on whichever node that was asked for.
    SchemaChanged {
        /// How.
        change: Box<Transformation>,
        /// Did it make something new?
        creates: bool,
    },
}

/// A shard's clock for timestamps: never behind what it has heard.
pub trait Hybrid {
    /// µs since 1970: the next timestamp is greater.
    fn latest(&self) -> i64;
    /// Another node has given this one, or may have.
    fn hear(&self, micros: i64);
}

/// Does this as long as the node takes part in its ring; what is not done by then is dropped.
pub async fn while_in_ring(known: Known, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        _ = known.until_ended() => {}
        () = work => {}
    }
}

/// Members that clients found elsewhere before, or nowhere: where, and where they are now.
fn changes_of_places(
    before: Option<&Members>,
    after: &Members,
) -> Vec<(Uuid, Option<SocketAddr>, Option<SocketAddr>)> {
    let place = |members: &Members, host_id| Some(members.get(host_id)?.candidate.cql_address);
    let lists = before.into_iter().chain([after]).flat_map(|members| members.list());
    let hosts: BTreeSet<Uuid> = lists.map(|member| member.candidate.host_id).collect();
    let places = hosts
        .into_iter()
        .map(|host_id| (host_id, before.and_then(|before| place(before, host_id)), place(after, host_id)));
    places.filter(|(_, was, is)| was != is).collect()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    /// A node that says this of itself and has come so far; the id of its cluster is taken from there. It has no
    /// certificates, and its connections no bounds.
    pub fn new(identity: Identity, metadata: &Metadata) -> Known {
        Known::protected(identity, metadata, None, Bounds::default())
    }

    /// As [`Known::new`], with its talks protected so, and its connections bounded.
    pub fn protected(
        identity: Identity,
        metadata: &Metadata,
        protection: Option<Protection>,
        bounds: Bounds,
    ) -> Known {
        let known = Known(Arc::new(Inner {
            identity,
            protection,
            bounds,
            members: Mutex::default(),
            schema_epoch: AtomicU64::new(metadata.schema.epoch()),
            ring_epoch: AtomicU64::new(0),
            fence: AtomicU64::new(0),
            others: Mutex::default(),
            news: Notify::new(),
            may_serve: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
            is_withdrawn: AtomicBool::new(false),
            listeners: Mutex::default(),
            cut_off: Mutex::default(),
            is_any_cut_off: AtomicBool::new(false),
            load_bytes: Mutex::default(),
            ended: Mutex::default(),
            counted: Mutex::default(),
        }));
        if let Some(members) = &metadata.members {
            known.take_members(Arc::clone(members));
        }
        known
    }

    /// This node.
    pub fn host_id(&self) -> Uuid {
        self.0.identity.host_id
    }

    /// What its connections with other nodes may come to.
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// Who the members are; `None` before this node is one.
    pub fn members(&self) -> Option<Arc<Members>> {
        lock(&self.0.members).clone()
    }

    /// How often the ring has changed, as far as this node has come.
    #[inline]
    pub fn ring_epoch(&self) -> u64 {
        self.0.ring_epoch.load(Ordering::Acquire)
    }

    /// What was asked of a replica at an earlier epoch of the ring is not answered: who asked may have counted on
    /// somebody who is no member any more.
    #[inline]
    pub fn fence(&self) -> u64 {
        self.0.fence.load(Ordering::Acquire)
    }

    /// That of the schema that is in force on all shards of this node.
    pub fn schema_epoch(&self) -> u64 {
        self.0.schema_epoch.load(Ordering::Acquire)
    }

    /// How this node stands with another one.
    pub fn other(&self, host_id: Uuid) -> Arc<Other> {
        Arc::clone(lock(&self.0.others).entry(host_id).or_default())
    }

    /// An entry is in force on this node from now on; before, that was the schema.
    pub fn take(&self, entry: &Entry, before: &Schema) {
        match entry {
            Entry::Schema { epoch, change } => {
                self.0.schema_epoch.fetch_max(*epoch, Ordering::AcqRel);
                let creates = change.creates(before);
                self.tell(Event::SchemaChanged { change: Box::new(change.clone()), creates });
            }
            Entry::Members { members } => {
                let before = self.members();
                self.take_members(Arc::new(members.remembering(before.as_deref())));
            }
        }
        self.0.news.notify_waiters();
    }

    fn take_members(&self, members: Arc<Members>) {
        let epoch = members.epoch();
        let before = lock(&self.0.members).replace(Arc::clone(&members));
        // First, so that whoever sees the epoch sees them, too.
        self.0.fence.store(members.fence(), Ordering::Release);
        self.forget_who_is_gone(&members);
        self.0.ring_epoch.store(epoch, Ordering::Release);
        for (host_id, was, is) in changes_of_places(before.as_deref(), &members) {
            if host_id == self.host_id() {
                continue;
            }
            was.into_iter().for_each(|address| self.tell(Event::Left(address)));
            let Some(address) = is else { continue };
            self.tell(Event::Joined(address));
            // Its heartbeat may have come before this entry.
            if was.is_some() && self.other(host_id).is_up() {
                self.tell(Event::Up(address));
            }
        }
    }

    /// Nobody waits for them any more.
    fn forget_who_is_gone(&self, members: &Members) {
        lock(&self.0.others).retain(|host_id, other| {
            let is_member = members.get(*host_id).is_some();
            if !is_member {
                other.is_gone.store(true, Ordering::Release);
                other.is_alive.store(false, Ordering::Release);
            }
            is_member
        });
    }

    /// Does this node serve clients from now on, or no more?
    pub fn set_serving(&self, is_serving: bool) {
        self.0.is_serving.store(is_serving, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// Does this node serve clients?
    pub fn is_serving(&self) -> bool {
        self.0.is_serving.load(Ordering::Acquire)
    }

    /// From now on the others are told to take this node for one that does not live, or no more. It goes on to have its
    /// part in the agreement, and to hear the others.
    pub fn withdraw(&self, is_withdrawn: bool) {
        self.0.is_withdrawn.store(is_withdrawn, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// Are the others told so?
    pub fn is_withdrawn(&self) -> bool {
        self.0.is_withdrawn.load(Ordering::Acquire)
    }

    /// Others are told from now on that this node's table files have so many bytes.
    pub fn set_load_bytes(&self, bytes: u64) {
        *lock(&self.0.load_bytes) = Some(bytes);
    }

    /// What others are told of that.
    pub fn load_bytes(&self) -> Option<u64> {
        *lock(&self.0.load_bytes)
    }

    /// Has who looks after the others look at once.
    pub(super) fn look_again(&self) {
        self.0.news.notify_waiters();
    }

    /// How another member is from now on.
    pub(super) fn set(&self, host_id: Uuid, is_alive: bool, is_up: bool) {
        let other = self.other(host_id);
        if other.is_alive.swap(is_alive, Ordering::AcqRel) != is_alive {
            let address = self.members().and_then(|members| Some(members.get(host_id)?.candidate.address));
            let address = address.map_or_else(|| "nowhere".to_owned(), |address| address.to_string());
            tracing::info!(%host_id, "node {address} is {}", if is_alive { "UP" } else { "DOWN" });
            self.0.news.notify_waiters();
        }
        if other.is_up.swap(is_up, Ordering::AcqRel) == is_up {
            return;
        }
        if let Some(member) = self.members().as_ref().and_then(|members| members.get(host_id)) {
            let address = member.candidate.cql_address;
            self.tell(if is_up { Event::Up(address) } else { Event::Down(address) });
        }
        self.0.news.notify_waiters();
    }

    /// Waits until that schema is in force on this node, and on the others that live.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn schema_is_everywhere(&self, epoch: u64) {
        self.wait_until(|known| {
            let others = lock(&known.0.others);
            known.schema_epoch() >= epoch
                && others.values().all(|other| !other.is_alive() || other.schema_epoch() >= epoch)
        })
        .await;
    }

    /// Waits until that schema is in force on this node.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn schema_is_here(&self, epoch: u64) {
        self.wait_until(|known| known.schema_epoch() >= epoch).await;
    }

    /// From now on this node may serve clients.
    pub(super) fn let_serve(&self) {
        self.0.may_serve.store(true, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// Waits until this node may serve clients: it is a member, and knows what the others know, as far as they could be
    /// asked.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn may_serve(&self) {
        self.wait_until(|known| known.0.may_serve.load(Ordering::Acquire)).await;
    }

    /// Waits until most of the other members are heard, and this node has come as far as they had then: for a member
    /// that starts again.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub(super) async fn is_up_to_date(&self) {
        self.wait_until(|known| {
            let Some(members) = known.members() else { return false };
            let others = lock(&known.0.others);
            let alive = others.values().filter(|other| other.is_alive());
            let is_behind = |other: &&Arc<Other>| {
                known.schema_epoch() < other.schema_epoch() || known.ring_epoch() < other.ring_epoch()
            };
            let alive: Vec<_> = alive.collect();
            2 * alive.len() >= members.list().len() - 1 && !alive.iter().any(is_behind)
        })
        .await;
    }

    /// Is any other member heard?
    pub(super) fn hears_others(&self) -> bool {
        lock(&self.0.others).values().any(|other| other.is_alive())
    }

    /// Waits until this node is a member.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn is_member(&self) {
        self.wait_until(Known::is_member_now).await;
    }

    /// Is this node a member?
    pub fn is_member_now(&self) -> bool {
        lock(&self.0.members).as_ref().is_some_and(|members| members.get(self.host_id()).is_some())
    }

    /// Is this node a member that has the rows of its tokens?
    pub fn has_rows(&self) -> bool {
        let members = self.members();
        let member = members.as_ref().and_then(|members| members.get(self.host_id()));
        member.is_some_and(|member| member.state.has_rows())
    }

    /// Waits until something is new.
    pub(super) async fn news(&self) {
        self.0.news.notified().await;
    }

    pub(super) async fn wait_until(&self, is_so: impl Fn(&Known) -> bool) {
        loop {
            let news = self.0.news.notified();
            if is_so(self) {
                return;
            }
            news.await;
        }
    }

    /// What is told to clients from now on.
    pub fn events(&self) -> mpsc::UnboundedReceiver<Event> {
        let (listener, events) = mpsc::unbounded_channel();
        lock(&self.0.listeners).push(listener);
        events
    }

    fn tell(&self, event: Event) {
        lock(&self.0.listeners).retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// From now on this node hears and tells the member at that address nothing: a drill. Is there one?
    pub fn cut_off(&self, address: IpAddr) -> bool {
        let Some(members) = self.members() else { return false };
        let is_there = |member: &&Member| member.candidate.address.ip() == address;
        let Some(member) = members.list().iter().find(is_there) else { return false };
        let mut cut_off = lock(&self.0.cut_off);
        cut_off.insert(member.candidate.host_id);
        self.0.is_any_cut_off.store(true, Ordering::Release);
        true
    }

    /// It talks to all others again.
    pub fn heal(&self) {
        let mut cut_off = lock(&self.0.cut_off);
        cut_off.clear();
        self.0.is_any_cut_off.store(false, Ordering::Release);
    }

    /// When this life of the node began, in µs since 1970 by its clock.
    pub fn incarnation(&self) -> u64 {
        self.0.identity.incarnation
    }

    /// What became of this node's requests to others: of each thread to each node.
    pub fn counted(&self) -> Vec<Counted> {
        lock(&self.0.counted).clone()
    }

    /// This node takes no part in the ring any more.
    pub fn end(&self, why: String) {
        *lock(&self.0.ended) = Some(why);
        self.0.news.notify_waiters();
    }

    /// Why this node takes no part in the ring any more, if so: then it must end.
    pub fn ended(&self) -> Option<String> {
        lock(&self.0.ended).clone()
    }

    /// Waits until this node takes no part in the ring any more; why.
    pub async fn until_ended(&self) -> String {
        self.wait_until(|known| known.ended().is_some()).await;
        self.ended().unwrap_or_default()
    }

    fn identity(&self) -> Identity {
        let cluster_id = lock(&self.0.members).as_ref().map(|members| members.cluster_id());
        Identity { cluster_id, ..self.0.identity.clone() }
    }

    fn must_encrypt(&self, there: Option<Uuid>) -> bool {
        let Some(protection) = &self.0.protection else { return false };
        protection.encryption.is_needed(self.members().as_deref(), self.host_id(), there)
    }

    fn is_cut_off(&self, host_id: Uuid) -> bool {
        self.0.is_any_cut_off.load(Ordering::Acquire) && lock(&self.0.cut_off).contains(&host_id)
    }

    /// How this node stands with another member; `None` with a stranger.
    pub(super) fn other_member(&self, host_id: Uuid) -> Option<Arc<Other>> {
        lock(&self.0.members).as_ref()?.get(host_id)?;
        Some(self.other(host_id))
    }

    fn heard(&self, other: &Other, incarnation: u64, context: Context) {
        // Each frame comes by here; few bring another one.
        if other.incarnation.load(Ordering::Relaxed) != incarnation {
            other.incarnation.store(incarnation, Ordering::Relaxed);
        }
        if other.schema_epoch.fetch_max(context.schema_epoch, Ordering::AcqRel) < context.schema_epoch {
            self.0.news.notify_waiters();
        }
        other.ring_epoch.fetch_max(context.ring_epoch, Ordering::AcqRel);
    }
}

/// What messages are about, and the node that they go to.
type AboutWhom = (About, Option<Uuid>);

/// The node as its connections on one thread see it.
pub struct Speaker {
    known: Known,
    clock: Box<dyn Hybrid>,
    /// Members that were heard: each frame of one is, without a lock. Of those that are gone nobody asks any more.
    heard: RefCell<BTreeMap<Uuid, Arc<Other>>>,
    /// What became of the requests over its connections. All connections to a node have one.
    counted: RefCell<BTreeMap<AboutWhom, Arc<MessageCounts>>>,
}

impl Speaker {
    /// Speaks for the node with a thread's clock.
    pub fn new(known: Known, clock: Box<dyn Hybrid>) -> Speaker {
        Speaker { known, clock, heard: RefCell::default(), counted: RefCell::default() }
    }
}

impl Node for Speaker {
    fn identity(&self) -> Identity {
        self.known.identity()
    }

    fn context(&self) -> Context {
        Context {
            clock_micros: self.clock.latest(),
            schema_epoch: self.known.schema_epoch(),
            ring_epoch: self.known.ring_epoch(),
        }
    }

    fn heard(&self, from: &Established, context: Context) {
        self.clock.hear(context.clock_micros);
        let heard = &mut *self.heard.borrow_mut();
        let other = match heard.entry(from.host_id) {
            btree_map::Entry::Occupied(entry) => entry.into_mut(),
            btree_map::Entry::Vacant(entry) => match self.known.other_member(from.host_id) {
                Some(other) => entry.insert(other),
                None => return,
            },
        };
        self.known.heard(other, from.incarnation, context);
    }

    fn is_cut_off(&self, host_id: Uuid) -> bool {
        self.known.is_cut_off(host_id)
    }

    fn credentials(&self) -> Option<Arc<Credentials>> {
        self.known.0.protection.as_ref().map(|protection| protection.certificates.current())
    }

    fn must_encrypt(&self, host_id: Option<Uuid>) -> bool {
        self.known.must_encrypt(host_id)
    }

    fn bounds(&self) -> Bounds {
        self.known.0.bounds.clone()
    }

    fn counts(&self, purpose: &Purpose, host_id: Option<Uuid>) -> Arc<MessageCounts> {
        let about = match purpose {
            Purpose::Shard { .. } => About::Replica,
            Purpose::Urgent => About::Agreement,
        };
        let begin = || {
            let counts = Arc::<MessageCounts>::default();
            lock(&self.known.0.counted).push(Counted { about, host_id, counts: Arc::clone(&counts) });
            counts
        };
        Arc::clone(self.counted.borrow_mut().entry((about, host_id)).or_insert_with(begin))
    }
}
