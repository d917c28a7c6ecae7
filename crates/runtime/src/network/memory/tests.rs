//! What two ends of a connection see, and what faults do to it.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;
use crate::{ByteStream, Network};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: SocketAddr = SocketAddr::new(SERVER, 9042);

fn network() -> MemoryNetwork {
    MemoryNetwork::new(7, MemoryNetworkOptions::default())
}

/// A connection: the client's end and the server's.
async fn connected(network: &MemoryNetwork) -> (ByteStream, ByteStream) {
    let listener = bind(network).open().expect("listens");
    let client = network.host(CLIENT).connect(PORT).await.expect("connects");
    let (server, peer) = listener.accept().await.expect("accepts");
    assert_eq!(peer.ip(), CLIENT);
    (client, server)
}

fn bind(network: &MemoryNetwork) -> crate::BoundListener {
    network.host(SERVER).bind(PORT, 1).expect("free").remove(0)
}

async fn read_some(stream: &mut ByteStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 1024];
    let count = stream.read(&mut bytes).await?;
    bytes.truncate(count);
    Ok(bytes)
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_order_after_a_while_and_then_the_end() {
    let network = network();
    let (mut client, mut server) = connected(&network).await;
    let start = Instant::now();
    client.write_all(b"one").await.expect("room");
    client.write_all(b"two").await.expect("room");
    drop(client);
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).await.expect("read");
    assert_eq!(bytes, b"onetwo");
    assert!(start.elapsed() >= network.0.options.latency_min);
    assert_eq!(server.write(b"back").await.expect_err("gone").kind(), io::ErrorKind::BrokenPipe);
    drop(server);
    assert_eq!(network.wire_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_for_a_reader_who_does_not_read() {
    let network = network();
    let (client, mut server) = connected(&network).await;
    let window_bytes = network.0.options.window_bytes;
    let more = vec![1; window_bytes + 10];
    assert_eq!(client.try_write(&more).expect("room"), window_bytes);
    assert_eq!(client.try_write(&more).expect_err("full").kind(), io::ErrorKind::WouldBlock);
    let mut taken = vec![0; 100];
    server.read_exact(&mut taken).await.expect("read");
    assert_eq!(client.try_write(&more).expect("room again"), 100);
}

#[tokio::test(start_paused = true)]
async fn a_cut_is_silence_until_it_is_healed_and_one_way_only() {
    let network = network();
    let (mut client, mut server) = connected(&network).await;
    network.cut(CLIENT, SERVER);
    client.write_all(b"lost?").await.expect("room");
    server.write_all(b"heard").await.expect("room");
    assert_eq!(read_some(&mut client).await.expect("read"), b"heard");
    let silence = tokio::time::timeout(Duration::from_secs(3600), read_some(&mut server)).await;
    assert!(silence.is_err());
    network.heal(CLIENT, SERVER);
    assert_eq!(read_some(&mut server).await.expect("read"), b"lost?");
}

#[tokio::test(start_paused = true)]
async fn who_connects_through_a_cut_is_let_in_when_it_ends_or_gives_up() {
    let network = network();
    let _listener = bind(&network);
    network.cut(SERVER, CLIENT);
    let gave_up = network.host(CLIENT).connect(PORT).await.expect_err("silence");
    assert_eq!(gave_up.kind(), io::ErrorKind::TimedOut);
    let healed = async {
        tokio::time::sleep(RETRY).await;
        network.heal(SERVER, CLIENT);
    };
    let host = network.host(CLIENT);
    let (connected, ()) = tokio::join!(host.connect(PORT), healed);
    assert!(connected.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_an_error_at_both_ends() {
    let network = network();
    let (mut client, mut server) = connected(&network).await;
    client.write_all(b"never read").await.expect("room");
    network.reset(SERVER, CLIENT);
    for stream in [&mut client, &mut server] {
        assert_eq!(read_some(stream).await.expect_err("broken").kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(stream.try_write(b"x").expect_err("broken").kind(), io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_taken_once_and_free_when_nobody_listens() {
    let network = network();
    let taken = bind(&network);
    let again = network.host(SERVER).bind(PORT, 2).expect_err("taken");
    assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    let foreign = network.host(CLIENT).bind(PORT, 1).expect_err("another host's");
    assert_eq!(foreign.kind(), io::ErrorKind::AddrNotAvailable);
    let waiting = network.host(CLIENT).connect(PORT).await;
    drop(taken);
    assert_eq!(read_some(&mut waiting.expect("connected")).await.expect("let go"), b"");
    let refused = network.host(CLIENT).connect(PORT).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert!(network.host(SERVER).bind(PORT, 2).is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_who_listen_on_an_address_are_found() {
    let network = network();
    let listeners = network.host(SERVER).bind(PORT, 3).expect("free");
    let listeners: Vec<_> = listeners.into_iter().map(|listener| listener.open().expect("opens")).collect();
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(network.host(CLIENT).connect(PORT).await.expect("connects"));
    }
    for listener in &listeners {
        let accepted = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
        assert!(accepted.is_ok(), "each has some of them");
    }
}

#[tokio::test]
async fn without_a_network_nobody_listens_or_connects() {
    let bound = Network::None.bind(PORT, 1).expect_err("none").kind();
    let connected = Network::None.connect(PORT).await.expect_err("none").kind();
    assert_eq!((bound, connected), (io::ErrorKind::Unsupported, io::ErrorKind::Unsupported));
}
