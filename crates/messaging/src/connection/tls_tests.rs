//! Two nodes that have certificates, or do not: who talks with whom, and under TLS or not.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{Disk, ManualClock, MemoryDisk, MemoryNetwork, SeededRandom};
use tls::testing::{Authority, Says};
use tls::{Certificates, NameCheck, TlsFiles};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::*;
use crate::Secret;

const ASKS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const ANSWERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: SocketAddr = SocketAddr::new(ANSWERS, 7000);
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a node has to encrypt what it says.
type Policy = fn(Option<Uuid>) -> bool;
const NEVER: Policy = |_| false;
const ALWAYS: Policy = |_| true;
/// With all that it does not know.
const STRANGERS: Policy = |host_id| host_id.is_none();

struct TestNode {
    host: u128,
    certificates: Option<Certificates>,
    must_encrypt: Cell<Policy>,
    secret: Option<Secret>,
}

impl TestNode {
    fn new(host: u128, certificates: Option<Certificates>, must_encrypt: Policy) -> TestNode {
        TestNode { host, certificates, must_encrypt: Cell::new(must_encrypt), secret: None }
    }
}

impl Node for TestNode {
    fn identity(&self) -> Identity {
        Identity {
            cluster_name: "Test Cluster".to_owned(),
            cluster_id: None,
            host_id: Uuid::from_u128(self.host),
            incarnation: 1,
            shard_count: 1,
            wants_compression: true,
            secret: self.secret.clone(),
        }
    }

    fn context(&self) -> Context {
        Context { clock_micros: 0, schema_epoch: 0, ring_epoch: 0 }
    }

    fn heard(&self, _from: &Established, _context: Context) {}

    fn credentials(&self) -> Option<Arc<Credentials>> {
        self.certificates.as_ref().map(Certificates::current)
    }

    fn must_encrypt(&self, host_id: Option<Uuid>) -> bool {
        (self.must_encrypt.get())(host_id)
    }
}

struct Echo;

impl Service for Echo {
    fn request(&self, _from: &Established, request: Request) {
        let body = request.body.clone();
        request.answer(|out| out.extend_from_slice(&body)).expect("short enough");
    }

    fn notice(&self, _from: &Established, _body: Bytes) {}
}

fn certificates(authority: &Authority, address: IpAddr) -> Certificates {
    let files = TlsFiles {
        certificate: "/t/node.crt".into(),
        key: "/t/node.key".into(),
        authorities: "/t/ca.crt".into(),
    };
    let disk = MemoryDisk::new();
    disk.create_dir_all("/t".as_ref()).expect("a folder");
    let shown = authority.shown(&Says::of(address));
    for (path, text) in [
        (&files.certificate, shown.certificate),
        (&files.key, shown.key),
        (&files.authorities, authority.pem()),
    ] {
        disk.write_atomically(path, text.as_bytes()).expect("written");
    }
    let clock = ManualClock::new(1_893_456_000_000_000);
    Certificates::open(files, NameCheck::Address, Arc::new(disk), Arc::new(clock)).expect("they are good")
}

/// What a pair of nodes came to.
struct Outcome {
    /// A long request came back.
    is_answered: bool,
    /// What the side that asks was told.
    asking: Vec<String>,
    /// What the side that answers was told of who it did not let in.
    answering: Vec<String>,
    /// Whether talks that began were under TLS.
    encrypted: Vec<bool>,
}

/// One node asks another one, over a gate.
async fn talk(asking: TestNode, answering: TestNode) -> Outcome {
    let (refused, ended) = (Rc::<RefCell<Vec<String>>>::default(), Rc::<RefCell<Vec<String>>>::default());
    let encrypted = Rc::<RefCell<Vec<bool>>>::default();
    let local = LocalSet::new();
    let is_answered = local
        .run_until(async {
            let network = MemoryNetwork::new(3, MemoryNetworkOptions::default());
            let answering: Rc<dyn Node> = Rc::new(answering);
            let listener =
                network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
            let (told, noted, node) = (Rc::clone(&refused), Rc::clone(&encrypted), Rc::clone(&answering));
            let hand_over = move |handed: Handed| {
                let met = handed.take().expect("taken");
                noted.borrow_mut().push(met.is_encrypted());
                spawn_local(answer(met, Rc::clone(&node), Rc::new(Echo)));
            };
            let gate =
                keep_gate(listener, answering, Arc::new(SeededRandom::new(2)), hand_over, move |_, error| {
                    told.borrow_mut().push(error.to_string());
                });
            spawn_local(gate);
            let host_id = None;
            let options = PeerOptions {
                address: PORT,
                host_id,
                purpose: Purpose::Shard { from: 0, to: 0 },
                unsent_bytes_max: 8 << 20,
                asked_count_max: 10,
            };
            let asking: Rc<dyn Node> = Rc::new(asking);
            let peer = Peer::new(options, Rc::clone(&asking));
            let told = Rc::clone(&ended);
            spawn_local(peer.clone().run(
                network.host(ASKS),
                Arc::new(SeededRandom::new(1)),
                asking,
                move |error| {
                    told.borrow_mut().push(error.to_string());
                },
            ));
            let long = Bytes::from(vec![7; 1 << 20]);
            let asked = peer.ask(PATIENCE, |out| out.extend_from_slice(&long)).expect("short enough");
            let answered = timeout(PATIENCE, asked).await;
            // The other side has seen the end, too.
            sleep(Duration::from_millis(10)).await;
            matches!(answered, Ok(Ok(body)) if body == long)
        })
        .await;
    let (asking, answering, encrypted) = (ended.take(), refused.take(), encrypted.take());
    Outcome { is_answered, asking, answering, encrypted }
}

/// They talk, under TLS or not, and nobody is refused on the way.
fn check_talk(outcome: &Outcome, is_encrypted: bool) {
    let Outcome { is_answered, asking, answering, encrypted } = outcome;
    assert!(*is_answered && asking.is_empty() && answering.is_empty(), "{asking:?} {answering:?}");
    assert_eq!(encrypted, &[is_encrypted]);
}

#[track_caller]
fn check_refused(outcome: &Outcome, asking: &str, answering: &str) {
    assert!(!outcome.is_answered && outcome.encrypted.is_empty());
    let told = |told: &[String]| told.first().cloned().unwrap_or_default();
    assert!(told(&outcome.asking).contains(asking), "who asks: {:?}", outcome.asking);
    assert!(told(&outcome.answering).contains(answering), "who answers: {:?}", outcome.answering);
}

#[tokio::test(start_paused = true)]
async fn nodes_with_certificates_encrypt_what_they_have_to() {
    let authority = Authority::new("ours");
    let asking = |policy| TestNode::new(1, Some(certificates(&authority, ASKS)), policy);
    let answering = |policy| TestNode::new(2, Some(certificates(&authority, ANSWERS)), policy);
    check_talk(&talk(asking(ALWAYS), answering(ALWAYS)).await, true);
    check_talk(&talk(asking(NEVER), answering(NEVER)).await, false);
    // One of them was told to, and the other one is not told yet.
    check_talk(&talk(asking(ALWAYS), answering(NEVER)).await, true);
    // A seed is nobody that is known.
    check_talk(&talk(asking(STRANGERS), answering(STRANGERS)).await, true);
}

/// Who answers knows more: the other one comes again, under TLS, and nothing is lost meanwhile.
#[tokio::test(start_paused = true)]
async fn who_is_refused_in_the_clear_comes_again_under_tls() {
    let authority = Authority::new("ours");
    let asking = TestNode::new(1, Some(certificates(&authority, ASKS)), NEVER);
    let outcome = talk(asking, TestNode::new(2, Some(certificates(&authority, ANSWERS)), ALWAYS)).await;
    assert!(outcome.is_answered && outcome.asking.is_empty(), "{:?}", outcome.asking);
    assert_eq!(outcome.encrypted, [true]);
    assert_eq!(outcome.answering, ["what the two nodes say must be encrypted (internode_encryption)"]);
}

#[tokio::test(start_paused = true)]
async fn who_can_not_be_believed_is_refused_and_both_say_why() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let asking = |of: &Authority, policy| TestNode::new(1, Some(certificates(of, ASKS)), policy);
    let answering = |policy| TestNode::new(2, Some(certificates(&ours, ANSWERS)), policy);
    check_refused(
        &talk(asking(&theirs, ALWAYS), answering(ALWAYS)).await,
        "TLS: its certificate is of no CA that is believed here",
        "TLS: it does not believe the CA of the certificate shown to it",
    );
    // It has no certificates at all.
    check_refused(
        &talk(TestNode::new(1, None, NEVER), answering(ALWAYS)).await,
        "the other node refuses: what the two nodes say must be encrypted",
        "what the two nodes say must be encrypted",
    );
    check_refused(
        &talk(asking(&ours, ALWAYS), TestNode::new(2, None, NEVER)).await,
        "TLS: it talks no TLS; it may have been given no certificates",
        "the other side talks TLS, and this node was given no certificates",
    );
    // A certificate is not instead of a secret, where there is one.
    let with_secret = TestNode { secret: Some(Secret::new(b"s")), ..answering(ALWAYS) };
    let no_secret = "one of the two nodes has a secret and the other has none";
    check_refused(&talk(asking(&ours, ALWAYS), with_secret).await, no_secret, no_secret);
}

/// Whatever comes to the port of a node with certificates ends with a word in its log, in time, and others come in.
#[tokio::test(start_paused = true)]
async fn garbage_that_comes_where_tls_is_expected_hurts_nobody() {
    let authority = Authority::new("ours");
    let node = TestNode::new(2, Some(certificates(&authority, ANSWERS)), ALWAYS);
    let garbage: [&[u8]; 8] = [
        b"",
        b"\x16",
        b"\x16\x03\x01\x00",
        b"\x16\x03\x01\xff\xff all that a record may have, and more",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"PERIpeer",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x16; 100_000],
    ];
    for bytes in garbage {
        for closes in [true, false] {
            let network = MemoryNetwork::new(3, MemoryNetworkOptions::default());
            let listener =
                network.host(ANSWERS).bind(PORT, 1).expect("free").remove(0).open().expect("listens");
            let (connected, accepted) =
                tokio::join!(async { network.host(ASKS).connect(PORT).await }, listener.accept());
            let (mut stranger, stream) = (connected.expect("a stream"), accepted.expect("a stream").0);
            let random = SeededRandom::new(1);
            let meeting = accept(stream, &node, &random);
            let sending = async {
                _ = stranger.write_all(bytes).await;
                if closes {
                    _ = stranger.shutdown().await;
                }
                // It takes what it is told, or nothing more is.
                _ = timeout(PATIENCE, stranger.read_to_end(&mut Vec::new())).await;
            };
            let (met, ()) = tokio::join!(timeout(PATIENCE, meeting), sending);
            let error = met.expect("in time").expect_err("no node");
            assert!(!error.to_string().is_empty(), "{bytes:.20?}");
        }
    }
}
