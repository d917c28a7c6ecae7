//! The loop: reads whatever is there, answers all of it, sends once.
//!
//! No request waits for another, nothing is kept but what a connection is: what is left is what the
//! kernel asks for carrying the bytes.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::TcpListener as BlockingListener;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::Outcome;
use crate::frame::{self, ANSWER_VERSION, ERROR, Frame};
use crate::link::Link;

const LISTENER: Token = Token(usize::MAX);
/// `ProtocolError`, by which drivers learn to speak an older version.
const PROTOCOL_ERROR: u32 = 0x000a;

/// Answers requests; one for each connection.
pub(crate) trait Answerer {
    /// Appends the answer to one frame.
    fn answer(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Outcome<()>;
}

/// Serves on a port with so many threads until killed.
pub(crate) fn serve<A: Answerer>(
    port: u16,
    threads: usize,
    make: impl Fn() -> Outcome<A> + Clone + Send + 'static,
) -> Outcome<()> {
    let listener = BlockingListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let workers: Vec<_> = (0..threads.max(1))
        .map(|_| {
            let (listener, make) = (listener.try_clone(), make.clone());
            std::thread::spawn(move || run(TcpListener::from_std(listener?), &make))
        })
        .collect();
    for worker in workers {
        worker.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

fn run<A: Answerer>(mut listener: TcpListener, make: &impl Fn() -> Outcome<A>) -> Outcome<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut links: HashMap<usize, (Link, A)> = HashMap::new();
    let (mut next, mut events, mut scratch) = (0, Events::with_capacity(1024), Vec::new());
    loop {
        if let Err(error) = poll.poll(&mut events, None)
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error.into());
        }
        for event in &events {
            let token = event.token();
            if token == LISTENER {
                // Whoever wakes first takes what is there.
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut socket, Token(next), interest)?;
                    links.insert(next, (Link::new(socket), make()?));
                    next += 1;
                }
                continue;
            }
            let Some((link, answerer)) = links.get_mut(&token.0) else { continue };
            if event.is_readable() {
                link.receive(&mut scratch, |frame, out| {
                    if frame.version > frame::REQUEST_VERSION {
                        put_version_error(frame.stream, out);
                        return Ok(());
                    }
                    answerer.answer(frame, out)
                })?;
            }
            link.send();
            if link.is_closed {
                links.remove(&token.0);
            }
        }
    }
}

fn put_version_error(stream: u16, out: &mut Vec<u8>) {
    frame::put(out, ANSWER_VERSION, stream, ERROR, |out| {
        out.extend_from_slice(&PROTOCOL_ERROR.to_be_bytes());
        frame::put_string(
            out,
            "Invalid or unsupported protocol version (5); supported versions are (3/v3, 4/v4)",
        );
    });
}
