//! Connections to addresses, each for as long as something is asked there: of seeds, and of a node that says to be
//! there.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use messaging::{Node, Peer, PeerError, PeerOptions, Purpose};
use runtime::{Network, Random, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::MembershipOptions;
use super::message::{Question, Reply, Said};

/// Nothing more is said while so much waits; it is little that is asked.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// So many questions wait for their answers.
const ASKED_COUNT_MAX: usize = 16;
/// Between two tries to meet a node.
const PAUSE: Duration = Duration::from_millis(100);

/// What connections are made with. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Contacts {
    network: Network,
    random: Arc<dyn Random>,
    node: Rc<dyn Node>,
}

/// A connection to whoever is at an address.
pub(super) struct Contact {
    address: SocketAddr,
    peer: Peer,
    task: JoinHandle<()>,
    trouble: Rc<RefCell<Option<Trouble>>>,
}

/// Why nobody was reached there.
#[derive(Clone)]
struct Trouble {
    what: String,
    is_of_other_cluster: bool,
}

impl Drop for Contact {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Contacts {
    pub(super) fn new(runtime: &Runtime, node: &Rc<dyn Node>) -> Contacts {
        let (network, random) = (runtime.network.clone(), Arc::clone(&runtime.random));
        Contacts { network, random, node: Rc::clone(node) }
    }

    /// All seeds but this node.
    pub(super) fn to_seeds(&self, options: &MembershipOptions) -> Vec<Contact> {
        let others = options.seeds.iter().filter(|seed| **seed != options.candidate.address);
        others.map(|seed| self.to(*seed, None)).collect()
    }

    /// When the life of a node began that is at an address, which is tried for so long.
    ///
    /// # Errors
    /// It is not there, or not reached; why, in words.
    pub(super) async fn meet(
        &self,
        host_id: Uuid,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<u64, String> {
        let (contact, deadline) = (self.to(address, Some(host_id)), Instant::now() + patience);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match contact.ask(Question::Ring, left).await {
                Ok(_) => return Ok(contact.peer.met().expect("it has answered").incarnation),
                Err(trouble) if Instant::now() + PAUSE >= deadline => return Err(trouble),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// A connection to that node, or to whoever is there.
    fn to(&self, address: SocketAddr, host_id: Option<Uuid>) -> Contact {
        let options = PeerOptions {
            address,
            host_id,
            purpose: Purpose::Urgent,
            unsent_bytes_max: UNSENT_BYTES_MAX,
            asked_count_max: ASKED_COUNT_MAX,
        };
        let peer = Peer::new(options, Rc::clone(&self.node));
        let trouble: Rc<RefCell<Option<Trouble>>> = Rc::default();
        let noted = Rc::clone(&trouble);
        let ended = move |error: PeerError| {
            let (what, is_of_other_cluster) = (error.to_string(), error.is_of_other_cluster());
            *noted.borrow_mut() = Some(Trouble { what, is_of_other_cluster });
        };
        let (network, random) = (self.network.clone(), Arc::clone(&self.random));
        let run = peer.clone().run(network, random, Rc::clone(&self.node), ended);
        Contact { address, peer, task: runtime::spawn_local("connection to an address", run), trouble }
    }
}

impl Contact {
    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connection.
    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// In words, if who is there has said to be of another cluster of the same name.
    pub(super) fn other_cluster(&self) -> Option<String> {
        let trouble = self.trouble.borrow().clone();
        trouble.filter(|trouble| trouble.is_of_other_cluster).map(|trouble| trouble.what)
    }

    /// Asks, and waits so long.
    ///
    /// # Errors
    /// There is no answer; why, in words.
    pub(super) async fn ask(&self, question: Question, patience: Duration) -> Result<Reply, String> {
        let asked = self.peer.ask(patience, |out| Said::Question(question).put(out));
        let asked = asked.map_err(|error| error.to_string())?;
        let answered = timeout(patience, asked).await.map_err(|_| "it does not answer".to_owned())?;
        let why = || self.trouble.borrow().as_ref().map(|trouble| trouble.what.clone());
        let body = answered.map_err(|error| why().unwrap_or(error.to_string()))?;
        Reply::read(&body).ok_or_else(|| "its answer can not be read".to_owned())
    }
}
