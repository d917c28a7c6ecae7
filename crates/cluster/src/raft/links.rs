//! Urgent connections to the other members: one to each, kept for as long as it is a member.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use messaging::{AskError, Node, Peer, PeerError, PeerOptions, Purpose};
use runtime::{Network, Random};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::message::{Answer, Ask};
use super::types::Address;

/// Nothing more is sent to a member that takes nothing while so much waits.
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// So many requests to one member wait for their answers.
const ASKED_COUNT_MAX: usize = 10_000;

/// All connections of a node. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Links(Rc<Inner>);

struct Inner {
    network: Network,
    random: Arc<dyn Random>,
    node: Rc<dyn Node>,
    open: RefCell<BTreeMap<Uuid, Link>>,
    /// Where members are reached who are elsewhere by now than the log of agreement says.
    places: RefCell<BTreeMap<Uuid, Address>>,
}

struct Link {
    address: Address,
    peer: Peer,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Miss {
    #[error("it can not be reached")]
    NotSent,
    #[error("it may have got the request")]
    Lost,
    #[error("it did not answer in time")]
    Late,
}

impl Links {
    pub(super) fn new(network: Network, random: Arc<dyn Random>, node: Rc<dyn Node>) -> Links {
        let (open, places) = (RefCell::default(), RefCell::default());
        Links(Rc::new(Inner { network, random, node, open, places }))
    }

    /// From now on a member is reached there, whatever the log of agreement says.
    pub(super) fn place(&self, member: Uuid, address: Address) {
        self.0.places.borrow_mut().insert(member, address);
    }

    /// The connection to a member, made if there is none to where it is: at that address, if nobody knows better.
    pub(super) fn to(&self, member: Uuid, address: Address) -> Peer {
        let address = self.0.places.borrow().get(&member).copied().unwrap_or(address);
        let open = &mut *self.0.open.borrow_mut();
        if let Some(link) = open.get(&member)
            && link.address == address
        {
            return link.peer.clone();
        }
        let link = self.connect(member, address);
        let peer = link.peer.clone();
        open.insert(member, link);
        peer
    }

    fn connect(&self, member: Uuid, address: Address) -> Link {
        let Inner { network, random, node, .. } = &*self.0;
        let options = PeerOptions {
            address: address.0,
            host_id: Some(member),
            purpose: Purpose::Urgent,
            unsent_bytes_max: UNSENT_BYTES_MAX,
            asked_count_max: ASKED_COUNT_MAX,
        };
        let peer = Peer::new(options, Rc::clone(node));
        let mut told = None;
        let ended = move |error: PeerError| tell(member, address, &error, &mut told);
        let run = peer.clone().run(network.clone(), Arc::clone(random), Rc::clone(node), ended);
        Link { address, peer, task: runtime::spawn_local("urgent connection", run) }
    }

    /// Ends the connections to those who are no members any more.
    pub(super) fn keep(&self, is_member: impl Fn(&Uuid) -> bool) {
        self.0.open.borrow_mut().retain(|member, _| is_member(member));
        self.0.places.borrow_mut().retain(|member, _| is_member(member));
    }
}

/// That one of the two refuses the other one is told once, until it is for another reason or they talk again: it is
/// tried again every moment.
fn tell(member: Uuid, address: Address, error: &PeerError, told: &mut Option<String>) {
    if !error.is_refusal() {
        tracing::debug!(%member, %error, "an urgent connection has ended");
        if matches!(error, PeerError::Wire(_)) {
            *told = None;
        }
        return;
    }
    let text = error.to_string();
    if told.as_ref() != Some(&text) {
        tracing::warn!(%member, address = %address.0, error = text, "this node and another one do not talk");
        *told = Some(text);
    }
}

/// Asks a member, and waits for its answer no longer than that.
pub(super) async fn ask(peer: &Peer, patience: Duration, ask: &Ask) -> Result<Answer, Miss> {
    let asked = peer.ask(patience, |out| ask.put(out)).map_err(|_| Miss::NotSent)?;
    match tokio::time::timeout(patience, asked).await {
        Err(_) => Err(Miss::Late),
        Ok(Err(AskError::NotSent)) => Err(Miss::NotSent),
        Ok(Err(AskError::Broken | AskError::Declined)) => Err(Miss::Lost),
        Ok(Ok(body)) => Answer::read(&body).map_err(|error| {
            tracing::warn!(%error, "an answer about agreement can not be read");
            Miss::Lost
        }),
    }
}
