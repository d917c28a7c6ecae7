//! A node whose process can have no more descriptors is still looked after. By itself, since a limit is the process's.

#![allow(clippy::expect_used, reason = "tests say what they expect")]
#![allow(clippy::disallowed_methods, reason = "a test takes what there is")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use config::Config;
use runtime::{Runtime, RuntimeOptions};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{Server, ServerOptions};

const LIMIT: u64 = 256;

fn start(directory: &str) -> Server {
    let mut config = Config::default();
    let flags = [("data-dir", directory), ("listen", "127.0.0.1:0"), ("management", "127.0.0.1:0")];
    for (flag, value) in flags.into_iter().chain([("memory", "64MiB"), ("shards", "2")]) {
        config.apply_flag(flag, value).expect("an option");
    }
    let runtime = Runtime::real(RuntimeOptions::default()).expect("threads");
    Server::start(&runtime, ServerOptions::from_config(&config, 2)).expect("a node")
}

/// Every descriptor that is left.
fn take_all() -> Vec<OwnedFd> {
    let first = OwnedFd::from(File::open("/dev/null").expect("opens"));
    let mut taken = vec![first];
    while let Ok(next) = taken[0].try_clone() {
        taken.push(next);
    }
    taken
}

/// A connection by the only descriptor there is, as soon as nobody else has it for a moment.
fn connect(address: SocketAddr) -> TcpStream {
    loop {
        match TcpStream::connect(address) {
            Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {}
            connected => return connected.expect("the kernel connects"),
        }
    }
}

fn info(address: SocketAddr) -> io::Result<String> {
    let mut socket = connect(address);
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.write_all(b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

/// `nodetool` once hung on such a node: connections stood in the kernel's queue, and nobody could accept them.
#[test]
fn the_management_port_answers_when_every_descriptor_is_taken() {
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), ..limits }).expect("fewer may always be had");
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path().to_str().expect("text"));
    let management = server.management().expect("a port");
    // Once the port serves it has its own descriptors.
    assert!(info(management).expect("an answer").starts_with("HTTP/1.1 200 OK"));
    let mut taken = take_all();
    // For the client, which is in the same process.
    drop(taken.pop());
    // More often than there are spare descriptors.
    for round in 0..10 {
        let answer = info(management).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "round {round}: {answer}");
        assert!(!answer.contains("\"memory_used_bytes\":null"), "round {round}: {answer}");
    }
    drop(taken);
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    waiting.block_on(server.stop()).expect("a clean stop");
}
