//! Real nodes that talk under TLS: they come together, a node of another CA does not come in, and while clients write
//! all certificates are replaced by those of another CA, as `docs/ring/operating.md` says.

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]
#![allow(clippy::disallowed_methods, reason = "processes and their clients live in real time")]

mod processes;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use client::Connection;
use processes::{Node, PATIENCE};
use protocol::{Consistency, QueryParameters};
use tls::testing::{Authority, Says};

/// The address of a node.
fn address(node: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 81, node))
}

/// Where nodes keep their certificates and data.
struct Ring {
    directory: tempfile::TempDir,
    /// The same on all nodes, also when one is started again.
    storage_port: u16,
    cql_port: u16,
}

impl Ring {
    fn new() -> Ring {
        let free = [(); 2].map(|()| TcpListener::bind((address(1), 0)).expect("a free port"));
        let [storage_port, cql_port] = free.map(|free| free.local_addr().expect("an address").port());
        Ring { directory: tempfile::tempdir().expect("a directory"), storage_port, cql_port }
    }

    fn file(&self, node: u8, name: &str) -> PathBuf {
        self.directory.path().join(format!("node{node}.{name}"))
    }

    /// As an administrator does: the new file is written beside the old one, and takes its place at once.
    fn replace(&self, node: u8, name: &str, text: &str) {
        let (file, new) = (self.file(node, name), self.file(node, "new"));
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, &file).expect("renamed");
    }

    /// Gives a node a certificate of that CA.
    fn show(&self, node: u8, authority: &Authority) {
        let shown = authority.shown(&Says::of(address(node)));
        self.replace(node, "key", &shown.key);
        self.replace(node, "crt", &shown.certificate);
    }

    fn believe(&self, node: u8, authorities: &[&Authority]) {
        self.replace(node, "ca", &authorities.iter().map(|authority| authority.pem()).collect::<String>());
    }

    fn start(&self, node: u8) -> Node {
        let path = |name: &str| self.file(node, name).display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_peristyle"));
        command.args(["serve", "--shards", "2", "--memory", "96MiB"]);
        command.args(["--management", "127.0.0.1:0", "--internode-encryption", "all", "--seeds"]);
        command.arg(address(1).to_string()).arg("--data-dir").arg(path("data"));
        command.arg("--listen").arg(format!("{}:{}", address(node), self.cql_port));
        command.arg("--listen-address").arg(address(node).to_string());
        command.arg("--storage-port").arg(self.storage_port.to_string());
        command.arg("--internode-certificate-file").arg(path("crt"));
        command.arg("--internode-key-file").arg(path("key")).arg("--internode-ca-file").arg(path("ca"));
        Node::run(node, command)
    }
}

fn at_quorum(connection: &mut Connection, statement: &str) -> Result<client::Answer, client::ClientError> {
    connection.query_with(statement, QueryParameters::at(Consistency::Quorum))
}

/// Has who writes end, also when the test fails meanwhile.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes rows one after the other until it is told to end; how many. No request may fail.
fn write_rows(connection: &mut Connection, ends: &AtomicBool) -> i32 {
    let mut count = 0;
    while !ends.load(Ordering::Relaxed) {
        at_quorum(connection, &format!("INSERT INTO k.t (id, v) VALUES ({count}, 'v')"))
            .expect("no request fails");
        count += 1;
    }
    count
}

/// What a stranger is told who talks in the clear.
fn told_in_the_clear(address: SocketAddr) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it listens");
    let mut told = Vec::new();
    // That it ends with a reset is as good.
    _ = stream.read_to_end(&mut told);
    told
}

#[test]
fn certificates_let_nodes_in_and_are_replaced_while_clients_write() {
    let (ring, first, second) = (Ring::new(), Authority::new("first"), Authority::new("second"));
    for node in 1..=3 {
        ring.show(node, &first);
        ring.believe(node, &[&first]);
    }
    let mut nodes: Vec<Node> = (1..=3).map(|node| ring.start(node)).collect();
    let mut connection = nodes[0].connect();
    nodes[1..].iter().for_each(|node| drop(node.connect()));
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    connection.query(&format!("CREATE KEYSPACE k WITH replication = {replication}")).expect("a keyspace");
    connection.query("CREATE TABLE k.t (id int PRIMARY KEY, v text)").expect("a table");

    // Another CA: it is kept out, and both say why.
    ring.show(4, &second);
    ring.believe(4, &[&second]);
    let stranger = ring.start(4);
    stranger.says("TLS: its certificate is of no CA that is believed here");
    nodes[0].says("TLS: it does not believe the CA of the certificate shown to it");
    drop(stranger);
    assert!(told_in_the_clear(SocketAddr::new(address(1), ring.storage_port)).is_empty());

    let ends = AtomicBool::new(false);
    let written_count = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_rows(&mut connection, &ends));
        let ending = Ends(&ends);
        let new = |nodes: &[Node]| {
            nodes.iter().for_each(|node| drop(node.says("new talks take the new certificates")))
        };
        (1..=3).for_each(|node| ring.believe(node, &[&first, &second]));
        new(&nodes);
        (1..=3).for_each(|node| ring.show(node, &second));
        new(&nodes);
        (1..=3).for_each(|node| ring.believe(node, &[&second]));
        new(&nodes);
        // A node that comes back meets the others with nothing but the new ones; two of three are enough meanwhile.
        nodes.truncate(2);
        nodes.push(ring.start(3));
        drop(nodes[2].connect());
        drop(ending);
        writing.join().expect("no request has failed")
    });
    let counted = at_quorum(&mut connection, "SELECT COUNT(*) FROM k.t").expect("an answer");
    let counted = counted.rows().expect("rows").rows[0][0].clone().expect("a count");
    assert_eq!(counted[..], i64::from(written_count).to_be_bytes());
    assert!(written_count > 100, "{written_count} were written");
}
