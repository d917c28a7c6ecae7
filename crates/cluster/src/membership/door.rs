//! Urgent connections of other nodes: what is for agreement, and what is about membership.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use messaging::{Established, Purpose, Request, Seldom, Service};
use runtime::Random;
use tokio::time::Instant;
use uuid::Uuid;

use super::Known;
use super::letting_in::Newcomer;
use super::message::{Question, Reply, Said};
use super::presence::Claims;
use crate::metadata::{MemberState, MetadataMachine};
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
        match self.asked_to_let_in(from.host_id, &question) {
            Some(newcomer) => {
                let patience = request.deadline.saturating_duration_since(Instant::now());
                runtime::spawn_local("membership answer", async move {
                    let reply = newcomer.let_in(patience).await;
                    // It is short.
                    _ = request.answer(|out| reply.put(out));
                });
            }
            None => {
                let reply = self.reply(from.host_id, &question);
                _ = request.answer(|out| reply.put(out));
            }
        }
    }

    fn notice(&self, from: &Established, body: Bytes) {
        if !self.is_member(from.host_id) {
            return;
        }
        let (is_serving, is_withdrawn) = match Said::read(&body) {
            Some(Said::Heartbeat { is_serving }) => (is_serving, false),
            Some(Said::Farewell) => (false, true),
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
    /// What of a question can be answered at once.
    fn reply(&self, from: Uuid, question: &Question) -> Reply {
        let known = &self.known;
        match question {
            Question::Ring => {
                let cluster_id = known.members().map(|members| members.cluster_id());
                let rival = self.may_found.then(|| known.host_id());
                Reply::Ring { cluster_id, rival: rival.filter(|_| cluster_id.is_none()) }
            }
            Question::Present(claim) if self.claims.hear(from, *claim) => Reply::Present(self.claims.all()),
            Question::Present(_) => Reply::Later("it knows of no such member".to_owned()),
            Question::Hears(host_id) => {
                let is_heard = || known.other_member(*host_id).is_some_and(|other| other.is_alive());
                Reply::Hears(*host_id == known.host_id() || is_heard())
            }
            Question::Standing => {
                let ring_epoch = known.members().map_or(0, |members| members.epoch());
                Reply::Standing { ring_epoch, is_member: self.is_member(from) }
            }
            Question::Join(_) | Question::Replace(..) => Reply::Later("a node asks for itself".to_owned()),
        }
    }

    /// Who asks to be let in for itself.
    fn asked_to_let_in(&self, from: Uuid, question: &Question) -> Option<Newcomer> {
        let (candidate, replaces) = match question {
            Question::Join(candidate) => (candidate, None),
            Question::Replace(candidate, replaced) => (candidate, Some(*replaced)),
            _ => return None,
        };
        (candidate.host_id == from).then(|| Newcomer {
            known: self.known.clone(),
            agreement: self.agreement.clone(),
            claims: self.claims.clone(),
            id: self.random.uuid_v4(),
            candidate: candidate.clone(),
            replaces,
            listened_for: self.begun.elapsed(),
        })
    }

    /// Is it one to whom anybody listens?
    fn is_member(&self, host_id: Uuid) -> bool {
        let members = self.known.members();
        let member = members.as_ref().and_then(|members| members.get(host_id));
        member.is_some_and(|member| member.state != MemberState::Lost)
    }
}
