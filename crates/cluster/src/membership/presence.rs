//! A member that starts with other addresses than the history knows is found there.
//!
//! The history says where members are, and is agreed on by nodes that reach each other: who is elsewhere now has to be
//! reached before. So each member that starts goes to those whom it knows, and to its seeds, and says where it is (a
//! *claim*). They go there, and believe it once they have met it: what nobody can reach is never agreed on. They tell
//! it in their turn of themselves and of others whose claims they have heard. So a whole ring that comes up in another
//! network finds together as soon as its seeds are there. Then the leader reaches it, and it has its addresses agreed
//! on: [`Command::Present`]. Clients are served after that.
//!
//! A member says it also when it is where its own history says: that may be old, and the ring have agreed since on
//! another place. And who is told looks who is at the place that is agreed on: when the member lives there, who claims
//! to be it, too, is another node with a copy of its directory, and must end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use messaging::Peer;
use runtime::{Plant, Runtime};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::contact::{Contact, Contacts};
use super::message::{Question, Reply, Said, ask};
use super::{Known, MembershipError, MembershipOptions};
use crate::metadata::{Command, Member, MetadataMachine, Presence, Refusal, decode_outcome};
use crate::raft::Agreement;

/// How long a node is tried to be met where it says to be.
const MEET_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long who is told may take to answer: it meets who tells it before.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two rounds of telling, and of proposing.
const PAUSE: Duration = Duration::from_millis(200);
/// So often the log says what is waited for.
const TELL_AFTER: Duration = Duration::from_secs(5);
const _: () =
    assert!(MEET_PATIENCE.as_millis() < PATIENCE.as_millis(), "who tells it hears why it is not believed");

/// Where a member says that it is, since this life of it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) incarnation: u64,
    pub(super) presence: Presence,
}

/// A claim as it was heard.
#[derive(Clone, Copy)]
struct Heard {
    claim: Claim,
    /// What the history said then. When it says something else, it knows better.
    instead_of: Presence,
}

/// Claims that were heard, of members. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Claims {
    known: Known,
    contacts: Contacts,
    own: Claim,
    /// Invariant: this node has met each of them where it says to be.
    heard: Rc<RefCell<BTreeMap<Uuid, Heard>>>,
    /// Has a member met this node where it says to be?
    is_met: Rc<Cell<bool>>,
    /// Were all asked once?
    is_told: Rc<Cell<bool>>,
}

impl Claims {
    /// Of a node that is there itself.
    pub(super) fn new(known: Known, contacts: Contacts, presence: Presence) -> Claims {
        let own = Claim { incarnation: known.incarnation(), presence };
        let (is_met, is_told) = (Rc::default(), Rc::default());
        Claims { known, contacts, own, heard: Rc::default(), is_met, is_told }
    }

    /// A member says it of itself; what it is answered.
    pub(super) async fn hear(&self, host_id: Uuid, claim: Claim) -> Reply {
        match self.look_into(host_id, claim).await {
            Ok(()) => Reply::Present(self.all()),
            Err(doubt) => doubt,
        }
    }

    /// Another member says it of others, and of itself.
    async fn take_over(&self, claims: &BTreeMap<Uuid, Claim>) {
        let is_new = |host_id: Uuid, claim: &Claim| {
            let there = self.valid(host_id);
            host_id != self.known.host_id()
                && there.is_none_or(|heard| heard.claim.incarnation < claim.incarnation)
                && self
                    .known
                    .other_member(host_id)
                    .is_some_and(|other| other.incarnation() <= Some(claim.incarnation))
        };
        let new = claims.iter().filter(|(host_id, claim)| is_new(**host_id, claim));
        // Whose claim is doubted says it itself.
        join_all(new.map(|(host_id, claim)| self.look_into(*host_id, *claim))).await;
    }

    /// Goes where a member is said to be, and keeps that if it is there.
    ///
    /// # Errors
    /// What is to be answered: it is not reached there, or is another one.
    async fn look_into(&self, host_id: Uuid, claim: Claim) -> Result<(), Reply> {
        let Some(agreed) = self.in_history(host_id) else {
            return Err(Reply::Later("it knows of no such member".to_owned()));
        };
        if self.valid(host_id).is_some_and(|heard| heard.claim == claim) {
            return Ok(());
        }
        let (address, here) = (claim.presence.address, self.here());
        let meet =
            |address| async move { (address, self.contacts.meet(host_id, address, MEET_PATIENCE).await) };
        let met = join_all(BTreeSet::from([agreed.address, address]).into_iter().map(meet)).await;
        let met: BTreeMap<SocketAddr, Result<u64, String>> = met.into_iter().collect();
        if met[&agreed.address].as_ref().is_ok_and(|incarnation| *incarnation != claim.incarnation) {
            let what = format!(
                "node {host_id} lives at {}, and another one with its id says to be at {address}: was its data \
                 directory copied? Each node needs its own; one that is to join begins with an empty one",
                agreed.address
            );
            return Err(Reply::Refused(Refusal::Candidate { what }));
        }
        match &met[&address] {
            Ok(incarnation) if *incarnation == claim.incarnation => {
                let Some(instead_of) = self.in_history(host_id) else { return Ok(()) };
                self.heard.borrow_mut().insert(host_id, Heard { claim, instead_of });
                Ok(())
            }
            Ok(_) => Err(Reply::Later(format!("at {address} there is another life of node {host_id}"))),
            Err(trouble) => {
                Err(Reply::Later(format!("the node at {here} can not reach it at {address}: {trouble}")))
            }
        }
    }

    /// The claim of a member, unless it was started again since, or the history knows better.
    fn valid(&self, host_id: Uuid) -> Option<Heard> {
        let heard = self.heard.borrow().get(&host_id).copied();
        heard.filter(|heard| self.is_valid(host_id, heard))
    }

    fn is_valid(&self, host_id: Uuid, heard: &Heard) -> bool {
        let incarnation = self.known.other(host_id).incarnation();
        incarnation == Some(heard.claim.incarnation) && self.in_history(host_id) == Some(heard.instead_of)
    }

    fn in_history(&self, host_id: Uuid) -> Option<Presence> {
        Some(self.known.members()?.get(host_id)?.candidate.presence())
    }

    /// Where this node says to be itself.
    pub(super) fn here(&self) -> SocketAddr {
        self.own.presence.address
    }

    /// Where a member is reached by other nodes.
    pub(super) fn address_of(&self, member: &Member) -> SocketAddr {
        let valid = self.valid(member.candidate.host_id);
        valid.map_or(member.candidate.address, |heard| heard.claim.presence.address)
    }

    /// Those that hold, and this node's own.
    fn all(&self) -> BTreeMap<Uuid, Claim> {
        self.heard.borrow_mut().retain(|host_id, heard| self.is_valid(*host_id, heard));
        let heard = self.heard.borrow();
        let others = heard.iter().map(|(host_id, heard)| (*host_id, heard.claim));
        others.chain([(self.known.host_id(), self.own)]).collect()
    }

    /// Does the history say of this node where it is, and what it knows?
    fn is_in_history(&self) -> bool {
        self.in_history(self.known.host_id()) == Some(self.own.presence)
    }

    /// Does it say where this node is?
    pub(super) fn is_found(&self) -> bool {
        let places = |presence: Presence| (presence.address, presence.cql_address);
        self.in_history(self.known.host_id()).map(places) == Some(places(self.own.presence))
    }

    /// Waits until all members and seeds were told once where this node is, as far as they are reached.
    pub(super) async fn are_told(&self) {
        self.known.wait_until(|_| self.is_told.get()).await;
    }
}

/// Sees to it, until that fails, that the history says of this member where it is.
pub(super) async fn see_to(
    options: &MembershipOptions,
    runtime: &Runtime,
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> MembershipError {
    known.is_member().await;
    if runtime.plants.has(Plant::ElsewhereUntold) {
        return std::future::pending().await;
    }
    if let Err(error) = begin(options, known, agreement, claims).await {
        return error;
    }
    loop {
        known.wait_until(|known| known.is_member_now() && !claims.is_in_history()).await;
        let seeds = claims.contacts.to_seeds(options);
        tokio::select! {
            biased;
            () = known.wait_until(|_| claims.is_in_history()) => {}
            error = tell_until_it_fails(agreement, claims, &seeds) => return error,
            () = propose(runtime, agreement, claims) => {}
        }
        tracing::info!(address = %options.candidate.address, "the ring knows where this node is now");
    }
}

/// Tells all where this node is, until what its history says of that is what the ring has agreed on.
async fn begin(
    options: &MembershipOptions,
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> Result<(), MembershipError> {
    let seeds = claims.contacts.to_seeds(options);
    loop {
        tell_all(agreement, claims, &seeds).await?;
        claims.is_told.set(true);
        known.look_again();
        if agreement.catch_up().await.is_ok() {
            break;
        }
        sleep(PAUSE).await;
    }
    let ring_epoch = agreement.look(|machine| machine.members().map_or(0, |members| members.epoch()));
    known.wait_until(|known| known.ring_epoch() >= ring_epoch).await;
    Ok(())
}

async fn tell_until_it_fails(
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
    seeds: &[Contact],
) -> MembershipError {
    let mut told = Instant::now();
    loop {
        let doubts = match tell_all(agreement, claims, seeds).await {
            Ok(doubts) => doubts,
            Err(error) => return error,
        };
        if told.elapsed() >= TELL_AFTER {
            told = Instant::now();
            let (Presence { address, .. }, is_met) = (claims.own.presence, claims.is_met.get());
            tracing::warn!(%address, is_met, doubts, "this node is elsewhere now, and the ring has not agreed on it yet");
        }
        sleep(PAUSE).await;
    }
}

/// Tells members, where they are as far as is known, and seeds; why some do not believe it.
///
/// # Errors
/// This node must end.
async fn tell_all(
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
    seeds: &[Contact],
) -> Result<String, MembershipError> {
    let members = claims.known.members();
    let members = members.iter().flat_map(|members| members.list());
    let others = members.filter(|member| member.candidate.host_id != claims.known.host_id());
    let peers = others.map(|member| agreement.peer(member.candidate.host_id, claims.address_of(member)));
    let peers: Vec<(Peer, Option<&Contact>)> = peers
        .map(|peer| (peer, None))
        .chain(seeds.iter().map(|seed| (seed.peer().clone(), Some(seed))))
        .collect();
    let doubts = try_join_all(peers.iter().map(|(peer, seed)| tell(peer, *seed, claims))).await?;
    let doubts: BTreeSet<String> = doubts.into_iter().flatten().collect();
    Ok(doubts.into_iter().collect::<Vec<_>>().join("; "))
}

/// Tells one; why it does not believe it, if it does not.
async fn tell(
    peer: &Peer,
    seed: Option<&Contact>,
    claims: &Claims,
) -> Result<Option<String>, MembershipError> {
    match ask(peer, &Said::Question(Question::Present(claims.own)), PATIENCE).await {
        Some(Reply::Present(heard)) => {
            claims.is_met.set(true);
            claims.take_over(&heard).await;
            Ok(None)
        }
        Some(Reply::Refused(refusal)) => Err(MembershipError::Refused(refusal)),
        Some(Reply::Later(why)) => Ok(Some(why)),
        Some(_) | None => match seed.and_then(|seed| Some((seed.address(), seed.other_cluster()?))) {
            Some((seed, what)) => Err(MembershipError::OtherCluster { seed, what }),
            None => Ok(None),
        },
    }
}

/// Proposes all that is claimed, for ever: who changes places with another one can not do so alone. Nothing, before
/// somebody has met this node where it says to be.
async fn propose(runtime: &Runtime, agreement: &Agreement<MetadataMachine>, claims: &Claims) {
    loop {
        if claims.is_met.get() {
            propose_once(runtime, agreement, claims).await;
        }
        sleep(PAUSE).await;
    }
}

async fn propose_once(runtime: &Runtime, agreement: &Agreement<MetadataMachine>, claims: &Claims) {
    let presences = claims.all().into_iter().map(|(host_id, claim)| (host_id, claim.presence)).collect();
    let command = Command::Present { presences };
    let agreed = agreement.propose(runtime.random.uuid_v4(), command.encode()).await;
    match agreed.map(|agreed| decode_outcome(&agreed)) {
        Ok(Err(refusal)) => tracing::warn!(%refusal, "this node can not be where it is"),
        Ok(Ok(_)) => {}
        Err(error) => tracing::debug!(%error, "it is not agreed on where this node is"),
    }
}
