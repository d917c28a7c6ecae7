//! Answers what other nodes ask about agreement.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use messaging::{Established, Purpose, Request, Seldom, Service};
use uuid::Uuid;

use super::agreement::Agreement;
use super::async_runtime::of_node;
use super::bytes_of::BadBytes;
use super::error::AgreementError;
use super::message::{Answer, Ask, Piece};
use super::state::Machine;
use super::types::Snapshot;

/// No snapshot is longer.
const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;

/// Answers for an agreement. What is not for it is declined.
pub struct Answers<M: Machine> {
    agreement: Agreement<M>,
    coming: Rc<RefCell<Option<Coming>>>,
    /// Requests that could not be read.
    unreadable: Seldom,
}

/// A snapshot of which not all pieces have come. There is one leader, and so one snapshot.
struct Coming {
    from: Uuid,
    sending: u64,
    bytes: BytesMut,
}

impl<M: Machine> Answers<M> {
    /// Answers for this agreement.
    pub fn new(agreement: Agreement<M>) -> Answers<M> {
        Answers { agreement, coming: Rc::default(), unreadable: Seldom::default() }
    }
}

impl<M: Machine> Service for Answers<M> {
    fn request(&self, from: &Established, request: Request) {
        let ask = match Ask::read(&request.body) {
            Ok(ask) if from.purpose == Purpose::Urgent => ask,
            Ok(_) => return,
            Err(BadBytes(what)) => {
                if let Some(count) = self.unreadable.note() {
                    let from = from.host_id;
                    tracing::warn!(%from, what, count, "requests about agreement can not be read");
                }
                return;
            }
        };
        let (agreement, coming, from) = (self.agreement.clone(), Rc::clone(&self.coming), from.host_id);
        let random = agreement.random();
        let carry_out = async move {
            let deadline = request.deadline;
            let answer = carry_out(&agreement, &coming, from, ask);
            // After that nobody waits; declined, the place of the request is free again.
            if let Ok(Some(answer)) = tokio::time::timeout_at(deadline, answer).await {
                // Answers are far shorter than messages may be.
                _ = request.answer(|out| answer.put(out));
            }
        };
        runtime::spawn_local("raft answer", Box::pin(of_node(&random, carry_out)));
    }

    fn notice(&self, _from: &Established, _body: Bytes) {}
}

/// What is answered; nothing when agreement has ended here.
async fn carry_out<M: Machine>(
    agreement: &Agreement<M>,
    coming: &RefCell<Option<Coming>>,
    from: Uuid,
    ask: Ask,
) -> Option<Answer> {
    let raft = agreement.raft();
    let or_refused = |result: Result<Answer, AgreementError>| result.unwrap_or_else(Answer::Refused);
    match ask {
        Ask::Append(request) => raft.append_entries(request).await.ok().map(Answer::Appended),
        Ask::Vote(request) => raft.vote(request).await.ok().map(Answer::Voted),
        Ask::PreVote(request) => raft.pre_vote(request).await.ok().map(Answer::Voted),
        Ask::Piece(piece) => take(agreement, coming, from, piece).await,
        Ask::TakeOver(request) => {
            let taken = raft.handle_transfer_leader(request).await.ok()?;
            Some(Answer::TakesOver(taken.is_ok()))
        }
        // Of one that became a member just now this node may not know it yet: it tries again.
        Ask::Propose(_) | Ask::Change(_) if !agreement.listens_to(from) => {
            Some(Answer::Refused(AgreementError::NoLeader))
        }
        Ask::Propose(command) => {
            Some(or_refused(agreement.propose_here(command).await.map(Answer::Proposed)))
        }
        Ask::ReadIndex => Some(or_refused(agreement.read_index_here().await.map(Answer::ReadIndex))),
        Ask::Change(change) => {
            Some(or_refused(agreement.change_here(change).await.map(|()| Answer::Changed)))
        }
    }
}

/// Takes a piece of a snapshot, and puts the snapshot in its place with the last one.
async fn take<M: Machine>(
    agreement: &Agreement<M>,
    coming: &RefCell<Option<Coming>>,
    from: Uuid,
    piece: Piece,
) -> Option<Answer> {
    let Piece { vote, meta, sending, total_bytes, offset, bytes } = piece;
    let whole = {
        let coming = &mut *coming.borrow_mut();
        if offset == 0 {
            *coming = Some(Coming { from, sending, bytes: BytesMut::new() });
        }
        let follows = |coming: &&mut Coming| {
            (coming.from, coming.sending, coming.bytes.len() as u64) == (from, sending, offset)
        };
        let Some(snapshot) = coming.as_mut().filter(follows) else { return Some(Answer::Again) };
        let end = offset.saturating_add(bytes.len() as u64);
        if total_bytes > SNAPSHOT_BYTES_MAX || end > total_bytes {
            *coming = None;
            return Some(Answer::Again);
        }
        snapshot.bytes.extend_from_slice(&bytes);
        if end < total_bytes {
            return Some(Answer::Taken);
        }
        coming.take()?.bytes.freeze()
    };
    let snapshot = Snapshot { meta, snapshot: whole };
    let installed = agreement.raft().install_full_snapshot(vote, snapshot).await.ok()?;
    Some(Answer::Installed(installed.vote))
}
