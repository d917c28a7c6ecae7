//! What frames go over: a stream of bytes as it is, or under TLS.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use bytes::BytesMut;
use runtime::{ByteStream, DetachedStream};
use tls::{DetachedTlsStream, TlsStream};
use tokio::io::AsyncWrite;

/// A stream of bytes between two nodes.
#[derive(Debug)]
pub(super) enum Channel {
    /// Whoever listens on the way can read it.
    Plain(ByteStream),
    Tls(Box<TlsStream>),
}

/// One that belongs to no thread for a while.
#[derive(Debug)]
pub(super) enum DetachedChannel {
    Plain(DetachedStream),
    Tls(Box<DetachedTlsStream>),
}

impl DetachedChannel {
    pub(super) fn attach(self) -> io::Result<Channel> {
        match self {
            DetachedChannel::Plain(stream) => stream.attach().map(Channel::Plain),
            DetachedChannel::Tls(stream) => stream.attach().map(|stream| Channel::Tls(Box::new(stream))),
        }
    }
}

impl Channel {
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Channel::Tls(_))
    }

    pub(super) fn detach(self) -> io::Result<DetachedChannel> {
        match self {
            Channel::Plain(stream) => stream.detach().map(DetachedChannel::Plain),
            Channel::Tls(stream) => stream.detach().map(|stream| DetachedChannel::Tls(Box::new(stream))),
        }
    }

    /// Waits until there are bytes and takes up to `most` of them; 0 at the stream's end.
    pub(super) fn poll_read_some(
        &mut self,
        buffer: &mut BytesMut,
        most: usize,
        task: &mut TaskContext<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Channel::Plain(stream) => stream.split().0.poll_read_some(buffer, most, task),
            Channel::Tls(stream) => stream.poll_read_some(buffer, most, task),
        }
    }

    /// Takes bytes to be sent; tells how many.
    pub(super) fn poll_write(&mut self, bytes: &[u8], task: &mut TaskContext<'_>) -> Poll<io::Result<usize>> {
        match self {
            Channel::Plain(stream) => Pin::new(stream).poll_write(task, bytes),
            Channel::Tls(stream) => stream.poll_write(bytes, task),
        }
    }

    /// Waits until what was taken is on its way.
    pub(super) fn poll_flush(&mut self, task: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        match self {
            // What a socket has taken is the system's.
            Channel::Plain(_) => Poll::Ready(Ok(())),
            Channel::Tls(stream) => stream.poll_flush(task),
        }
    }

    /// As [`Channel::poll_read_some`].
    pub(super) async fn read_some(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        buffer.reserve(most);
        poll_fn(|task| self.poll_read_some(buffer, most, task)).await
    }

    /// Sends all of it.
    pub(super) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match poll_fn(|task| self.poll_write(bytes, task)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        poll_fn(|task| self.poll_flush(task)).await
    }

    /// Nothing more is sent.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Channel::Plain(stream) => poll_fn(|task| Pin::new(&mut *stream).poll_shutdown(task)).await,
            Channel::Tls(stream) => stream.shutdown().await,
        }
    }
}
