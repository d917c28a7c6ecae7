//! One end of a connection in memory.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;
use tokio::time::{Instant, Sleep};

use super::wire::{Arrival, Wire};

/// Both directions of a connection, seen from one end.
#[derive(Debug)]
pub struct Stream {
    pub(in crate::network) reader: Reader,
    pub(in crate::network) writer: Writer,
    peer: SocketAddr,
}

/// What comes in. Dropped, the other side can send no more.
#[derive(Debug)]
pub struct Reader {
    wire: Arc<Wire>,
    /// Until the next bytes arrive.
    timer: Option<Pin<Box<Sleep>>>,
}

/// What goes out. Dropped, it comes to its end at the other side.
#[derive(Debug)]
pub struct Writer {
    wire: Arc<Wire>,
}

impl Stream {
    pub(super) fn new(incoming: Arc<Wire>, outgoing: Arc<Wire>, peer: SocketAddr) -> Self {
        let reader = Reader { wire: incoming, timer: None };
        Stream { reader, writer: Writer { wire: outgoing }, peer }
    }

    pub(in crate::network) fn peer_address(&self) -> SocketAddr {
        self.peer
    }
}

impl Reader {
    pub(in crate::network) fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.wire.arrival(context) {
                Arrival::Now => return Poll::Ready(()),
                Arrival::Unknown => return Poll::Pending,
                Arrival::At(time) => ready!(self.poll_time(time, context)),
            }
        }
    }

    fn poll_time(&mut self, time: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(time)));
        if timer.deadline() != time {
            timer.as_mut().reset(time);
        }
        timer.as_mut().poll(context)
    }

    /// Timers are of a thread: another one makes its own.
    pub(in crate::network) fn forget_timer(&mut self) {
        self.timer = None;
    }

    pub(in crate::network) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_readable(context));
        Poll::Ready(self.wire.read(buffer))
    }

    pub(in crate::network) fn unread_bytes(&self) -> u64 {
        self.wire.arrived_bytes()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.wire.abandon();
    }
}

impl Writer {
    pub(in crate::network) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.wire.poll_room(context)
    }

    pub(in crate::network) fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wire.write(pieces)
    }

    pub(in crate::network) fn poll_write(
        &self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_writable(context));
        Poll::Ready(self.try_write(pieces))
    }

    pub(in crate::network) fn end(&self) {
        self.wire.end();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}
