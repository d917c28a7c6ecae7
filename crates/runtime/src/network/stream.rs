//! A stream of bytes in both directions.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, tcp};

use super::memory;

/// A connection, whoever carries its bytes.
#[derive(Debug)]
pub enum ByteStream {
    /// A socket of the operating system's.
    Tcp(TcpStream),
    /// One in memory.
    Memory(memory::Stream),
}

/// A connection that belongs to no thread for a while: on its way from the one that accepted it to the one that is to
/// use it.
#[derive(Debug)]
pub enum DetachedStream {
    /// A socket of the operating system's.
    Tcp(std::net::TcpStream),
    /// One in memory.
    Memory(memory::Stream),
}

impl DetachedStream {
    /// The connection on this thread.
    ///
    /// # Errors
    /// The thread's runtime can not take the socket.
    pub fn attach(self) -> io::Result<ByteStream> {
        match self {
            DetachedStream::Tcp(stream) => super::system::attach(stream).map(ByteStream::Tcp),
            DetachedStream::Memory(stream) => Ok(ByteStream::Memory(stream)),
        }
    }
}

/// What comes in, while the other half is used beside it.
#[derive(Debug)]
pub enum ReadHalf<'a> {
    /// Of a socket.
    Tcp(tcp::ReadHalf<'a>),
    /// Of one in memory.
    Memory(&'a mut memory::Reader),
}

/// What goes out, while the other half is used beside it.
#[derive(Debug)]
pub enum WriteHalf<'a> {
    /// Of a socket.
    Tcp(tcp::WriteHalf<'a>),
    /// Of one in memory.
    Memory(&'a memory::Writer),
}

impl ByteStream {
    /// Where the other side is.
    ///
    /// # Errors
    /// The connection has ended before it began.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        match self {
            ByteStream::Tcp(stream) => stream.peer_addr(),
            ByteStream::Memory(stream) => Ok(stream.peer_address()),
        }
    }

    /// Takes it away from this thread, for another one.
    ///
    /// # Errors
    /// The thread's runtime does not give the socket back.
    pub fn detach(self) -> io::Result<DetachedStream> {
        match self {
            ByteStream::Tcp(stream) => stream.into_std().map(DetachedStream::Tcp),
            ByteStream::Memory(mut stream) => {
                stream.reader.forget_timer();
                Ok(DetachedStream::Memory(stream))
            }
        }
    }

    /// Has what is written go out at once, and not wait for more of it.
    ///
    /// # Errors
    /// The connection has ended before it began.
    pub fn set_nodelay(&self) -> io::Result<()> {
        match self {
            ByteStream::Tcp(stream) => stream.set_nodelay(true),
            ByteStream::Memory(_) => Ok(()),
        }
    }

    /// Has it end when the other side is gone without a word, as with a machine that lost its power: when it confirms
    /// nothing of what it was sent for so long, or of the probes that it is sent while there is nothing else. One that
    /// is slow confirms all the same; one whose program takes nothing for so long, though there is something, does not.
    /// In memory there is no such end.
    ///
    /// # Errors
    /// The connection has ended before it began.
    pub fn set_unconfirmed_max(&self, time: Duration) -> io::Result<()> {
        match self {
            ByteStream::Tcp(stream) => super::system::set_unconfirmed_max(stream, time),
            ByteStream::Memory(_) => Ok(()),
        }
    }

    /// Writes what is taken now; tells how many bytes that were.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is, and what ends the connection.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ByteStream::Tcp(stream) => stream.try_write(bytes),
            ByteStream::Memory(stream) => stream.writer.try_write(&[IoSlice::new(bytes)]),
        }
    }

    /// As [`ByteStream::try_write`], of several pieces in one go.
    ///
    /// # Errors
    /// As [`ByteStream::try_write`].
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ByteStream::Tcp(stream) => stream.try_write_vectored(pieces),
            ByteStream::Memory(stream) => stream.writer.try_write(pieces),
        }
    }

    /// Both halves, to be waited for at the same time.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        match self {
            ByteStream::Tcp(stream) => {
                let (reader, writer) = stream.split();
                (ReadHalf::Tcp(reader), WriteHalf::Tcp(writer))
            }
            ByteStream::Memory(stream) => {
                (ReadHalf::Memory(&mut stream.reader), WriteHalf::Memory(&stream.writer))
            }
        }
    }
}

impl ReadHalf<'_> {
    /// Waits until there is something to read: bytes, the end, or an error.
    ///
    /// # Errors
    /// The runtime is ending.
    pub fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ReadHalf::Tcp(half) => half.as_ref().poll_read_ready(context),
            ReadHalf::Memory(reader) => reader.poll_readable(context).map(Ok),
        }
    }

    /// Waits until there are bytes and takes up to `most` of them; 0 at the stream's end.
    ///
    /// # Errors
    /// What ends the connection.
    pub fn poll_read_some(
        &mut self,
        buffer: &mut impl BufMut,
        most: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // The future keeps nothing from one poll to the next: the stream remembers whom to wake.
        pin!(self.read_buf(&mut buffer.limit(most))).poll(context)
    }

    /// How many bytes there are to read at this moment.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn unread_bytes(&self) -> io::Result<u64> {
        match self {
            ReadHalf::Tcp(half) => Ok(rustix::io::ioctl_fionread(half.as_ref())?),
            ReadHalf::Memory(reader) => Ok(reader.unread_bytes()),
        }
    }
}

impl WriteHalf<'_> {
    /// Waits until something can be written, or the connection has ended.
    ///
    /// # Errors
    /// The runtime is ending.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            WriteHalf::Tcp(half) => half.writable().await,
            WriteHalf::Memory(writer) => {
                std::future::poll_fn(|context| writer.poll_writable(context)).await;
                Ok(())
            }
        }
    }
}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(context, buffer),
            ReadHalf::Memory(reader) => reader.poll_read(context, buffer),
        }
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().split().0).poll_read(context, buffer)
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ByteStream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            ByteStream::Memory(stream) => stream.writer.poll_write(context, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ByteStream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            ByteStream::Memory(stream) => stream.writer.poll_write(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ByteStream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            ByteStream::Memory(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ByteStream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            ByteStream::Memory(stream) => {
                stream.writer.end();
                Poll::Ready(Ok(()))
            }
        }
    }
}
