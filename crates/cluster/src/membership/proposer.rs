//! How any thread of a node proposes something to its ring.

use tokio::sync::{mpsc, oneshot};

use super::ProposeError;
use crate::metadata::{Agreed, Command};
use crate::raft::AgreementError;

/// Proposes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Proposer(mpsc::UnboundedSender<Proposal>);

/// What was proposed on this node.
#[derive(Debug)]
pub struct Proposals(mpsc::UnboundedReceiver<Proposal>);

/// A command, and who waits for what comes of it.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) command: Command,
    pub(super) outcome: oneshot::Sender<Result<Agreed, ProposeError>>,
}

/// Both ends.
pub fn proposals() -> (Proposer, Proposals) {
    let (proposer, proposals) = mpsc::unbounded_channel();
    (Proposer(proposer), Proposals(proposals))
}

impl Proposer {
    /// Proposes, and waits until it is agreed on.
    ///
    /// # Errors
    /// It changes nothing, or it is not known whether it will.
    ///
    /// # Cancel safety
    /// Dropped, it may be agreed on all the same.
    pub async fn propose(&self, command: Command) -> Result<Agreed, ProposeError> {
        let (outcome, waits) = oneshot::channel();
        let ended = ProposeError::Agreement(AgreementError::Ended);
        self.0.send(Proposal { command, outcome }).map_err(|_| ended.clone())?;
        waits.await.unwrap_or(Err(ended))
    }
}

impl Proposals {
    pub(super) async fn next(&mut self) -> Option<Proposal> {
        self.0.recv().await
    }
}
