//! Urgent connections of other nodes: what is for agreement, and what is about membership.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::{Established, Purpose, Request, Service};
use runtime::Random;
use tokio::time::Instant;
use uuid::Uuid;

use super::Known;
use super::message::{Question, Reply, Said};
use super::presence::Claims;
use crate::metadata::{Candidate, Command, MetadataMachine, Refusal, decode_outcome};
use crate::raft::{Agreement, Answers, FOR_AGREEMENT};

/// When the others were heard last.
pub(super) type Heard = Rc<RefCell<BTreeMap<Uuid, Heartbeat>>>;

/// The last sign of life of another node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heartbeat {
    pub(super) at: Instant,
    pub(super) is_serving: bool,
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
}

impl Service for Door {
    fn request(&self, from: &Established, request: Request) {
        if request.body.first() == Some(&FOR_AGREEMENT) {
            return self.answers.request(from, request);
        }
        let question = match Said::read(&request.body) {
            Some(Said::Question(question)) if from.purpose == Purpose::Urgent => question,
            _ => return tracing::warn!(from = %from.host_id, "an urgent request can not be read"),
        };
        let Door { known, agreement, random, .. } = self;
        let (known, agreement, id) = (known.clone(), agreement.clone(), random.uuid_v4());
        let claims = self.claims.clone();
        let (host_id, rival) = (from.host_id, self.may_found.then(|| self.known.host_id()));
        let patience = request.deadline.saturating_duration_since(Instant::now());
        runtime::spawn_local("membership answer", async move {
            let reply = match question {
                Question::Ring => {
                    let cluster_id = known.members().map(|members| members.cluster_id());
                    Reply::Ring { cluster_id, rival: rival.filter(|_| cluster_id.is_none()) }
                }
                Question::Join(candidate) if candidate.host_id == host_id => {
                    let_in(&known, &agreement, id, candidate, patience).await
                }
                Question::Present(claim) => match claims.hear(host_id, claim) {
                    true => Reply::Present(claims.all()),
                    false => Reply::Later("it knows of no such member".to_owned()),
                },
                Question::Join(_) => Reply::Later("a node asks for itself".to_owned()),
            };
            // It is short.
            _ = request.answer(|out| reply.put(out));
        });
    }

    fn notice(&self, from: &Established, body: Bytes) {
        let is_member = self.known.members().is_some_and(|members| members.get(from.host_id).is_some());
        if let (true, Some(Said::Heartbeat { is_serving })) = (is_member, Said::read(&body)) {
            let now = Heartbeat { at: Instant::now(), is_serving };
            self.heard.borrow_mut().insert(from.host_id, now);
        }
    }
}

/// Makes a node a member, and sees that it gets the log.
async fn let_in(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    id: Uuid,
    candidate: Candidate,
    patience: Duration,
) -> Reply {
    if known.members().is_none() {
        return Reply::Refused(Refusal::NotFounded);
    }
    let (host_id, address) = (candidate.host_id, candidate.address);
    let letting_in = async {
        let agreed = agreement.propose(id, Command::Join { candidate }.encode()).await;
        let agreed = agreed.map_err(|error| Reply::Later(error.to_string()))?;
        decode_outcome(&agreed).map_err(Reply::Refused)?;
        agreement.add_learner(host_id, address).await.map_err(|error| Reply::Later(error.to_string()))
    };
    match tokio::time::timeout(patience, letting_in).await {
        Ok(Ok(())) => Reply::Admitted,
        Ok(Err(reply)) => reply,
        Err(_) => Reply::Later("it takes longer than was waited for".to_owned()),
    }
}
