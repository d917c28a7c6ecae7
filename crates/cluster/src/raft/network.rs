//! The network as openraft wants it: its messages, over urgent connections.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::Peer;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderError,
    TransferLeaderRequest, VoteRequest, VoteResponse,
};
use openraft::{RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use runtime::Random;
use uuid::Uuid;

use super::links::{Links, Miss, ask};
use super::message::{Answer, Ask, Piece};
use super::types::{Address, Payload, Snapshot, Types, Vote};

/// Entries of one message; the first goes however long it is.
const APPEND_BYTES_MAX: usize = 1 << 20;
/// A snapshot goes in pieces, so that heartbeats come between them.
const PIECE_BYTES: usize = 256 << 10;

/// Makes ways to members.
pub(super) struct Ways {
    pub(super) me: Uuid,
    pub(super) links: Links,
    pub(super) random: Arc<dyn Random>,
    /// How long an answer is waited for. Not what openraft gives: that is less than a follower's sync may take.
    pub(super) patience: Duration,
}

impl RaftNetworkFactory<Types> for Ways {
    type Network = Way;

    async fn new_client(&mut self, target: Uuid, address: &Address) -> Way {
        Way {
            me: self.me,
            target,
            address: *address,
            links: self.links.clone(),
            random: Arc::clone(&self.random),
            patience: self.patience,
        }
    }
}

/// The way to one member.
pub(super) struct Way {
    me: Uuid,
    target: Uuid,
    address: Address,
    links: Links,
    random: Arc<dyn Random>,
    patience: Duration,
}

impl Way {
    fn peer(&self) -> Peer {
        self.links.to(self.target, self.address)
    }

    async fn ask(&self, action: RPCTypes, request: &Ask) -> Result<Answer, RPCError<Types>> {
        ask(&self.peer(), self.patience, request).await.map_err(|miss| match miss {
            Miss::NotSent => RPCError::Unreachable(Unreachable::new(&miss)),
            Miss::Lost => RPCError::Network(NetworkError::new(&miss)),
            Miss::Late => {
                let (id, target, timeout) = (self.me, self.target, self.patience);
                RPCError::Timeout(Timeout { action, id, target, timeout })
            }
        })
    }

    async fn vote_on(&self, request: Ask) -> Result<VoteResponse<Types>, RPCError<Types>> {
        match self.ask(RPCTypes::Vote, &request).await? {
            Answer::Voted(response) => Ok(response),
            other => Err(out_of_place(&other)),
        }
    }

    async fn send(&self, vote: Vote, snapshot: Snapshot) -> Result<Vote, RPCError<Types>> {
        let Snapshot { meta, snapshot: bytes } = snapshot;
        let sending = self.random.next_u64();
        let mut offset = 0;
        loop {
            let end = bytes.len().min(offset + PIECE_BYTES);
            let piece = Piece {
                vote,
                meta: meta.clone(),
                sending,
                total_bytes: bytes.len() as u64,
                offset: offset as u64,
                bytes: bytes.slice(offset..end),
            };
            match self.ask(RPCTypes::InstallSnapshot, &Ask::Piece(piece)).await? {
                Answer::Installed(vote) => return Ok(vote),
                Answer::Taken if end < bytes.len() => offset = end,
                other => return Err(out_of_place(&other)),
            }
        }
    }
}

/// An answer that leads nowhere: it is asked again, later.
fn out_of_place(answer: &Answer) -> RPCError<Types> {
    let what = match answer {
        Answer::Refused(error) => error.to_string(),
        Answer::Again => "a piece of the snapshot was lost".to_owned(),
        _ => "an answer to another request".to_owned(),
    };
    RPCError::Network(NetworkError::from_string(what))
}

/// Leaves the first entries, as many as a message may have. Were there more?
fn cut(request: &mut AppendEntriesRequest<Types>) -> bool {
    let mut bytes = 0;
    let beyond = request.entries.iter().position(|entry| {
        if let Payload::Normal(command) = &entry.payload {
            bytes += command.body.len();
        }
        bytes > APPEND_BYTES_MAX
    });
    let (all, kept) = (request.entries.len(), beyond.map_or(usize::MAX, |beyond| beyond.max(1)));
    request.entries.truncate(kept);
    request.entries.len() < all
}

impl RaftNetworkV2<Types> for Way {
    type SnapshotData = Bytes;

    async fn append_entries(
        &mut self,
        mut request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        let sent_upto = cut(&mut request).then(|| request.entries.last().map(|entry| entry.log_id));
        match self.ask(RPCTypes::AppendEntries, &Ask::Append(request)).await? {
            Answer::Appended(AppendEntriesResponse::Success) => Ok(match sent_upto {
                Some(upto) => AppendEntriesResponse::PartialSuccess(upto),
                None => AppendEntriesResponse::Success,
            }),
            Answer::Appended(response) => Ok(response),
            other => Err(out_of_place(&other)),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.vote_on(Ask::Vote(request)).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.vote_on(Ask::PreVote(request)).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let mut cancel = pin!(cancel);
        tokio::select! {
            biased;
            closed = &mut cancel => Err(StreamingError::Closed(closed)),
            sent = self.send(vote, snapshot) => Ok(SnapshotResponse::new(sent?)),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _option: RPCOption,
    ) -> Result<Result<(), TransferLeaderError<Types>>, RPCError<Types>> {
        match self.ask(RPCTypes::TransferLeader, &Ask::TakeOver(request)).await? {
            Answer::TakesOver(true) => Ok(Ok(())),
            // The reason makes no difference to the leader.
            other => Err(out_of_place(&other)),
        }
    }
}
