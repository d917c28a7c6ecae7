//! How a node is let in: as one more, or in the place of a member that is gone.
//!
//! Whoever is asked goes to the node first: one that nobody reaches would be a member that is always away.
//!
//! Who is alive keeps its place: neither the node that is asked nor any other that lives may hear it. What a node that
//! lived all the same has acknowledged since is not lost: `Members::fence`.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use uuid::Uuid;

use super::Known;
use super::contact::Contacts;
use super::heartbeat::SILENCE;
use super::message::{Question, Reply, Said, ask};
use super::presence::Claims;
use crate::metadata::{Candidate, Command, Members, MetadataMachine, Refusal, decode_outcome};
use crate::raft::Agreement;

/// A node that has started a moment ago has not heard everybody yet who lives.
const LISTENING: Duration = SILENCE.saturating_mul(3);
/// How long a node is tried to be reached where it says to be: less than it waits for its answer.
const REACH_PATIENCE: Duration = Duration::from_secs(5);
/// How long others may take to say whom they hear.
const PATIENCE: Duration = Duration::from_secs(1);

/// A node that asks to be let in, and who was asked.
pub(super) struct Newcomer {
    pub(super) known: Known,
    pub(super) agreement: Agreement<MetadataMachine>,
    pub(super) claims: Claims,
    pub(super) contacts: Contacts,
    /// Of the command.
    pub(super) id: Uuid,
    pub(super) candidate: Candidate,
    /// Where the member was whose place it is to take.
    pub(super) replaces: Option<SocketAddr>,
    /// How long this node has listened to others.
    pub(super) listened_for: Duration,
}

impl Newcomer {
    /// Makes it a member, and sees that it gets the log.
    pub(super) async fn let_in(self, patience: Duration) -> Reply {
        let letting_in = async {
            let members = self.known.members().ok_or(Reply::Refused(Refusal::NotFounded))?;
            self.check_reached().await?;
            let command = match self.replaces {
                None => Command::Join { candidate: self.candidate.clone() },
                Some(replaced) => {
                    let found_dead = self.check_gone(&members, replaced).await?;
                    // Members that would not look at it would take the place all the same.
                    let oldest = members.oldest().map_or(0, |oldest| oldest.history_version);
                    let found_dead = found_dead.filter(|_| oldest >= Command::REPLACE_NAMES_THE_DEAD);
                    Command::Replace { candidate: self.candidate.clone(), replaced, found_dead }
                }
            };
            let agreed = self.agreement.propose(self.id, command.encode()).await;
            let agreed = agreed.map_err(|error| Reply::Later(error.to_string()))?;
            decode_outcome(&agreed).map_err(Reply::Refused)?;
            let Candidate { host_id, address, .. } = self.candidate;
            self.agreement
                .add_learner(host_id, address)
                .await
                .map_err(|error| Reply::Later(error.to_string()))
        };
        match timeout(patience, letting_in).await {
            Ok(Ok(())) => Reply::Admitted,
            Ok(Err(reply)) => reply,
            Err(_) => Reply::Later("it takes longer than was waited for".to_owned()),
        }
    }

    /// Is it where it says to be?
    async fn check_reached(&self) -> Result<(), Reply> {
        let Candidate { host_id, address, .. } = self.candidate;
        match self.contacts.meet(host_id, address, REACH_PATIENCE).await {
            Ok(_) => Ok(()),
            Err(trouble) => {
                let here = self.claims.here();
                let what = format!(
                    "the node at {here} can not reach it at {address}, where it says to be: {trouble} (see \
                     `broadcast_address` and `listen_address`)"
                );
                Err(Reply::Refused(Refusal::Candidate { what }))
            }
        }
    }

    /// The member at that address, which nobody hears; `None` when there is none.
    async fn check_gone(&self, members: &Members, replaced: SocketAddr) -> Result<Option<Uuid>, Reply> {
        let there = members.list().iter().find(|member| member.candidate.address == replaced);
        // Nobody, or this very node, which has not heard that it is let in: the machine will say so.
        let Some(there) = there.filter(|there| there.candidate.host_id != self.candidate.host_id) else {
            return Ok(None);
        };
        if self.listened_for < LISTENING {
            return Err(Reply::Later("it does not know yet who lives".to_owned()));
        }
        let host_id = there.candidate.host_id;
        if host_id == self.known.host_id()
            || self.known.other(host_id).is_alive()
            || self.do_others_hear(members, host_id).await
        {
            let what = format!("node {host_id} at {replaced} is alive, and keeps its place");
            return Err(Reply::Refused(Refusal::Candidate { what }));
        }
        Ok(Some(host_id))
    }

    async fn do_others_hear(&self, members: &Members, host_id: Uuid) -> bool {
        let said = Said::Question(Question::Hears(host_id));
        let others = members.list().iter().filter(|member| {
            let other = member.candidate.host_id;
            other != self.known.host_id() && other != host_id && self.known.other(other).is_alive()
        });
        let asked = others.map(|member| {
            let peer = self.agreement.peer(member.candidate.host_id, self.claims.address_of(member));
            let said = &said;
            async move { ask(&peer, said, PATIENCE).await }
        });
        join_all(asked).await.contains(&Some(Reply::Hears(true)))
    }
}
