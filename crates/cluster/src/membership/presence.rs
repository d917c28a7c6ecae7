//! A member that starts with other addresses than the history knows is found there.
//!
//! The history says where members are, and is agreed on by nodes that reach each other: who is elsewhere now has to be
//! reached before. So it goes to those whom it knows, and to its seeds, and says where it is (a *claim*). They believe
//! it, for the connection has proved who it is, and tell it in their turn of themselves and of others whose claims they
//! have heard. So a whole ring that comes up in another network finds together as soon as its seeds are there. Then the
//! leader reaches it, and it has its addresses agreed on: [`Command::Present`]. Clients are served after that.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use messaging::{Node, Peer};
use runtime::{Plant, Runtime};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::joining::Seed;
use super::message::{Question, Reply, Said, ask};
use super::{Known, MembershipOptions};
use crate::metadata::{Command, Member, MetadataMachine, Presence, decode_outcome};
use crate::raft::Agreement;

/// How long who is told may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two rounds of telling, and of proposing.
const PAUSE: Duration = Duration::from_millis(200);
/// So often the log says what is waited for.
const TELL_AFTER: Duration = Duration::from_secs(5);

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
    /// From the member itself?
    is_direct: bool,
    /// What the history said then. When it says something else, it knows better.
    instead_of: Presence,
}

/// Claims that were heard, of members. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Claims {
    known: Known,
    own: Claim,
    heard: Rc<RefCell<BTreeMap<Uuid, Heard>>>,
}

impl Claims {
    /// Of a node that is there itself.
    pub(super) fn new(known: Known, presence: Presence) -> Claims {
        let own = Claim { incarnation: known.incarnation(), presence };
        Claims { known, own, heard: Rc::default() }
    }

    /// A member says it of itself. Is it one?
    pub(super) fn hear(&self, host_id: Uuid, claim: Claim) -> bool {
        let Some(instead_of) = self.in_history(host_id) else { return false };
        self.heard.borrow_mut().insert(host_id, Heard { claim, is_direct: true, instead_of });
        true
    }

    /// Another member says it of others, and of itself.
    fn take_over(&self, claims: &BTreeMap<Uuid, Claim>) {
        for (host_id, claim) in claims.iter().filter(|(host_id, _)| **host_id != self.known.host_id()) {
            let Some(instead_of) = self.in_history(*host_id) else { continue };
            let is_known = |heard: &Heard| {
                self.is_valid(*host_id, heard) && heard.claim.incarnation >= claim.incarnation
            };
            let heard = Heard { claim: *claim, is_direct: false, instead_of };
            let there = self.heard.borrow().get(host_id).copied();
            if !there.as_ref().is_some_and(is_known) && self.is_valid(*host_id, &heard) {
                self.heard.borrow_mut().insert(*host_id, heard);
            }
        }
    }

    /// A member that was started again since makes another claim, or is where the history says.
    fn is_valid(&self, host_id: Uuid, heard: &Heard) -> bool {
        let incarnation = self.known.other(host_id).incarnation();
        let is_of_its_life = match heard.is_direct {
            true => incarnation == Some(heard.claim.incarnation),
            false => incarnation <= Some(heard.claim.incarnation),
        };
        is_of_its_life && self.in_history(host_id) == Some(heard.instead_of)
    }

    fn in_history(&self, host_id: Uuid) -> Option<Presence> {
        Some(self.known.members()?.get(host_id)?.candidate.presence())
    }

    /// Where a member is reached by other nodes.
    pub(super) fn address_of(&self, member: &Member) -> SocketAddr {
        let host_id = member.candidate.host_id;
        let heard = self.heard.borrow().get(&host_id).copied();
        let valid = heard.filter(|heard| self.is_valid(host_id, heard));
        valid.map_or(member.candidate.address, |heard| heard.claim.presence.address)
    }

    /// Those that hold, and this node's own.
    pub(super) fn all(&self) -> BTreeMap<Uuid, Claim> {
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
}

/// Sees to it, for ever, that the history says of this member where it is.
pub(super) async fn see_to(
    options: &MembershipOptions,
    runtime: &Runtime,
    known: &Known,
    node: &Rc<dyn Node>,
    agreement: &Agreement<MetadataMachine>,
    claims: &Claims,
) -> Infallible {
    loop {
        let is_elsewhere = known.wait_until(|known| known.is_member_now() && !claims.is_in_history());
        is_elsewhere.await;
        if runtime.plants.has(Plant::ElsewhereUntold) {
            return std::future::pending().await;
        }
        let seeds = Seed::of(options, runtime, node);
        let finding = async {
            tokio::join!(tell_all(known, agreement, claims, &seeds), propose(runtime, agreement, claims));
        };
        tokio::select! {
            biased;
            () = known.wait_until(|_| claims.is_in_history()) => {}
            () = finding => {}
        }
        tracing::info!(address = %options.candidate.address, "the ring knows where this node is now");
    }
}

/// Tells members, where they are as far as is known, and seeds; for ever.
async fn tell_all(known: &Known, agreement: &Agreement<MetadataMachine>, claims: &Claims, seeds: &[Seed]) {
    let mut told = Instant::now();
    loop {
        let members = known.members();
        let members = members.iter().flat_map(|members| members.list());
        let others = members.filter(|member| member.candidate.host_id != known.host_id());
        let peers: Vec<Peer> = others
            .map(|member| agreement.peer(member.candidate.host_id, claims.address_of(member)))
            .chain(seeds.iter().map(|seed| seed.peer().clone()))
            .collect();
        let said = Said::Question(Question::Present(claims.own));
        let answers = join_all(peers.iter().map(|peer| tell(peer, &said))).await;
        let heard_count = answers.iter().flatten().count();
        answers.iter().flatten().for_each(|heard| claims.take_over(heard));
        if told.elapsed() >= TELL_AFTER {
            told = Instant::now();
            let Presence { address, .. } = claims.own.presence;
            tracing::info!(%address, heard_count, "this node is elsewhere now, and the ring has not agreed on it yet");
        }
        sleep(PAUSE).await;
    }
}

async fn tell(peer: &Peer, said: &Said) -> Option<BTreeMap<Uuid, Claim>> {
    match ask(peer, said, PATIENCE).await? {
        Reply::Present(claims) => Some(claims),
        _ => None,
    }
}

/// Proposes all that is claimed, for ever: who changes places with another one can not do so alone.
async fn propose(runtime: &Runtime, agreement: &Agreement<MetadataMachine>, claims: &Claims) {
    loop {
        let presences = claims.all().into_iter().map(|(host_id, claim)| (host_id, claim.presence)).collect();
        let command = Command::Present { presences };
        match agreement
            .propose(runtime.random.uuid_v4(), command.encode())
            .await
            .map(|agreed| decode_outcome(&agreed))
        {
            Ok(Err(refusal)) => tracing::warn!(%refusal, "this node can not be where it is"),
            Ok(Ok(_)) => {}
            Err(error) => tracing::debug!(%error, "it is not agreed on where this node is"),
        }
        sleep(PAUSE).await;
    }
}
