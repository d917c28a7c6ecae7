//! Urgent connections of other nodes: what is for agreement, and what is about membership.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use messaging::{Established, Purpose, Request, Seldom, Service};
use runtime::Random;
use tokio::time::Instant;
use uuid::Uuid;

use super::Known;
use super::contact::Contacts;
use super::letting_in::Newcomer;
use super::message::{Question, Reply, Said};
use super::presence::Claims;
use crate::metadata::{Candidate, MemberState, MetadataMachine};
use crate::raft::{Agreement, Answers, FOR_AGREEMENT};

/// When the others were heard last.
pub(super) type Heard = Rc<RefCell<BTreeMap<Uuid, Heartbeat>>>;

/// The last sign of life of another node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heartbeat {
    pub(super) at: Instant,
    pub(super) is_serving: bool,
    /// It was a farewell: it is to be taken for a node that does not live, and has its part in the agreement.
    pub(super) is_withdrawn: bool,
}

/// Answers on urgent connections.
pub(super) struct Door {
    pub(super) known: Known,
    pub(super) agreement: Agreement<MetadataMachine>,
    pub(super) answers: Answers<MetadataMachine>,
    pub(super) random: Arc<dyn Random>,
    /// May this node found a ring?
    pub(super) may_found: bool,
    pub(super) heard: Heard,
    pub(super) claims: Claims,
    pub(super) contacts: Contacts,
    /// Since when it listens to others.
    pub(super) begun: Instant,
    /// Requests that could not be read.
    pub(super) unreadable: Seldom,
}

impl Service for Door {
    fn request(&self, from: &Established, request: Request) {
        if request.body.first() == Some(&FOR_AGREEMENT) {
            // Most of those that were given up may have started again, and lead each other: declined, they can not put
            // their log in the place of this one.
            let members = self.known.members();
            if !members.is_some_and(|members| members.has_given_up(from.host_id)) {
                self.answers.request(from, request);
            }
            return;
        }
        let question = match Said::read(&request.body) {
            Some(Said::Question(question)) if from.purpose == Purpose::Urgent => question,
            _ => {
                if let Some(count) = self.unreadable.note() {
                    tracing::warn!(from = %from.host_id, count, "urgent requests can not be read");
                }
                return;
            }
        };
        match question {
            Question::Join(candidate) => self.let_in(from.host_id, candidate, None, request),
            Question::Replace(candidate, replaced) => {
                self.let_in(from.host_id, candidate, Some(replaced), request);
            }
            Question::Present(claim) => {
                let (claims, host_id) = (self.claims.clone(), from.host_id);
                answer_later(request, async move { claims.hear(host_id, claim).await });
            }
            Question::Ring => answer(request, &self.ring()),
            Question::Hears(host_id) => answer(request, &Reply::Hears(self.hears(host_id))),
            Question::Standing => answer(request, &self.standing(from.host_id)),
        }
    }

    fn notice(&self, from: &Established, body: Bytes) {
        if !self.is_member(from.host_id) {
            return;
        }
        let (is_serving, is_withdrawn) = match Said::read(&body) {
            Some(Said::Heartbeat { is_serving }) => (is_serving, false),
            Some(Said::Farewell) => (false, true),
            Some(Said::Load(bytes)) => return self.known.other(from.host_id).set_load_bytes(bytes),
            Some(Said::Question(_)) | None => return,
        };
        let now = Heartbeat { at: Instant::now(), is_serving, is_withdrawn };
        let before = self.heard.borrow_mut().insert(from.host_id, now);
        if is_withdrawn && before.is_some_and(|before| !before.is_withdrawn) {
            self.known.look_again();
        }
    }
}

impl Door {
    /// Is there a ring, and else might this node found one?
    fn ring(&self) -> Reply {
        let cluster_id = self.known.members().map(|members| members.cluster_id());
        let rival = self.may_found.then(|| self.known.host_id());
        Reply::Ring { cluster_id, rival: rival.filter(|_| cluster_id.is_none()) }
    }

    fn hears(&self, host_id: Uuid) -> bool {
        let is_heard = || self.known.other_member(host_id).is_some_and(|other| other.is_alive());
        host_id == self.known.host_id() || is_heard()
    }

    fn standing(&self, from: Uuid) -> Reply {
        let ring_epoch = self.known.members().map_or(0, |members| members.epoch());
        Reply::Standing { ring_epoch, is_member: self.is_member(from) }
    }

    /// A node asks to be let in, for itself.
    fn let_in(&self, from: Uuid, candidate: Candidate, replaces: Option<SocketAddr>, request: Request) {
        if candidate.host_id != from {
            return answer(request, &Reply::Later("a node asks for itself".to_owned()));
        }
        let newcomer = Newcomer {
            known: self.known.clone(),
            agreement: self.agreement.clone(),
            claims: self.claims.clone(),
            contacts: self.contacts.clone(),
            id: self.random.uuid_v4(),
            candidate,
            replaces,
            listened_for: self.begun.elapsed(),
        };
        let patience = request.deadline.saturating_duration_since(Instant::now());
        answer_later(request, newcomer.let_in(patience));
    }

    /// Is it one to whom anybody listens?
    fn is_member(&self, host_id: Uuid) -> bool {
        let members = self.known.members();
        let member = members.as_ref().and_then(|members| members.get(host_id));
        member.is_some_and(|member| member.state != MemberState::Lost)
    }
}

fn answer(request: Request, reply: &Reply) {
    // It is short.
    _ = request.answer(|out| reply.put(out));
}

/// Answers when it is known what.
fn answer_later(request: Request, reply: impl Future<Output = Reply> + 'static) {
    let answering = async move { answer(request, &reply.await) };
    runtime::spawn_local("membership answer", Box::pin(answering));
}
