//! The operating system's sockets.
//!
//! The option that lets threads share an address lets any other process of the same user share it, too:
//! two nodes would serve one port, and clients would find now this database, now that one. So the address is
//! first taken without that option, which fails when anybody listens there.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is the door the bans point to")]

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};

/// Connections the kernel keeps before we accept them.
const BACKLOG: i32 = 4096;
/// Between two probes of a connection that is not heard.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Sockets that listen on one address; the kernel spreads connections over them.
pub(super) fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<StdListener>> {
    if count > 1 && address.port() != 0 {
        drop(bind_one(address, false)?);
    }
    let mut address = address;
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let listener = bind_one(address, count > 1)?;
        // Port 0 asks for any; the others must join the one that was given.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn bind_one(address: SocketAddr, shares_port: bool) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // What is left of connections of an earlier run is no hindrance; who listens is.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shares_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

pub(super) fn open(listener: StdListener) -> io::Result<TcpListener> {
    TcpListener::from_std(listener)
}

pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// Each of the two options alone leaves a hole: probes are sent only while nothing else is on the way, and the time
/// alone counts only while something is.
pub(super) fn set_unconfirmed_max(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(PROBE_INTERVAL))?;
    socket.set_tcp_user_timeout(Some(time))
}

pub(super) fn attach(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    TcpStream::from_std(stream)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// Two nodes once served one port: the sockets of shards may share it, and so might those of strangers.
    #[test]
    fn a_port_that_is_served_already_is_refused_however_many_listeners_there_are() {
        let first = bind(ANY_PORT, 2).expect("a free port");
        let taken = first[0].local_addr().expect("an address");
        assert!(first.iter().all(|listener| listener.local_addr().is_ok_and(|address| address == taken)));
        for count in [1, 2, 3] {
            let refused = bind(taken, count).map(|_| ()).map_err(|error| error.kind());
            assert_eq!(refused, Err(io::ErrorKind::AddrInUse), "{count} listeners");
        }
        drop(first);
        assert_eq!(bind(taken, 2).map(|listeners| listeners.len()).ok(), Some(2), "free again");
    }

    #[test]
    fn a_port_whose_last_connection_is_not_forgotten_yet_is_free() {
        let first = bind(ANY_PORT, 1).expect("a free port");
        first[0].set_nonblocking(false).expect("waits");
        let address = first[0].local_addr().expect("an address");
        let client = std::net::TcpStream::connect(address).expect("connect");
        // The side that closes first keeps the address in TIME_WAIT.
        drop(first[0].accept().expect("a connection"));
        drop(client);
        drop(first);
        assert!(bind(address, 2).is_ok());
    }

    #[test]
    fn the_kernel_is_told_when_a_silent_connection_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            let listener = bind(ANY_PORT, 1).expect("a free port").remove(0);
            let stream = connect(listener.local_addr().expect("an address")).await.expect("connect");
            let told = || {
                let socket = SockRef::from(&stream);
                let (is_probed, time) = (socket.keepalive()?, socket.tcp_keepalive_time()?);
                let interval = socket.tcp_keepalive_interval()?;
                Ok::<_, io::Error>((is_probed, time, interval, socket.tcp_user_timeout()?))
            };
            let (is_probed, .., unconfirmed_max) = told().expect("told");
            assert_eq!((is_probed, unconfirmed_max), (false, None), "by default it stays for ever");
            let time = Duration::from_secs(10);
            set_unconfirmed_max(&stream, time).expect("taken");
            assert_eq!(told().expect("told"), (true, time, PROBE_INTERVAL, Some(time)));
        });
    }

    #[test]
    fn a_connection_goes_on_on_another_thread() {
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let bound = crate::Network::System.bind(ANY_PORT, 1).expect("a free port").remove(0);
        let address = bound.local_address().expect("an address");
        let (detached, mut client) = runtime().block_on(async {
            let listener = bound.open().expect("listens");
            let client = std::net::TcpStream::connect(address).expect("connect");
            let (stream, _) = listener.accept().await.expect("a connection");
            (stream.detach().expect("given back"), client)
        });
        let echo = move || {
            runtime().block_on(async {
                let mut stream = detached.attach().expect("taken");
                let mut bytes = [0; 5];
                stream.read_exact(&mut bytes).await.expect("read");
                stream.write_all(&bytes).await.expect("write");
            });
        };
        let other = std::thread::spawn(echo);
        client.write_all(b"hello").expect("write");
        let mut bytes = [0; 5];
        client.read_exact(&mut bytes).expect("read");
        assert_eq!(&bytes, b"hello");
        other.join().expect("it ends well");
    }
}
