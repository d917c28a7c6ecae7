//! A stream of bytes under TLS.
//!
//! ```text
//!   written ──► session ── records ──► ByteStream ──► unread ── records ──► session ──► read
//! ```
//!
//! The session (`rustls`) turns bytes into records and back and touches no socket. A crate that joins the two for tokio
//! ties them to the thread where they met; here a stream is handed on ([`DetachedTlsStream`]), since one thread lets
//! nodes in and another one talks with them.

use std::future::poll_fn;
use std::io::{self, BufRead, IoSlice, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use runtime::{ByteStream, DetachedStream};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use tokio::io::AsyncWrite;

use crate::{Credentials, TlsError};

/// What begins with this byte is a TLS handshake.
pub const HANDSHAKE_BYTE: u8 = 0x16;

/// What who can not talk TLS sends to who began to: the fatal alert `handshake_failure`.
pub const REFUSAL: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];

/// So many bytes are read at once: a record of the greatest length, and its head.
const READ_BYTES: usize = (16 << 10) + 256;
/// While a refusal is on its way so many bytes of the other side are passed over: a reset would overtake it.
const LINGER_BYTES_MAX: usize = 64 << 10;
/// And for so long.
const LINGER: Duration = Duration::from_millis(500);

/// An end of a talk under TLS; both ends have shown a certificate that the other one believes.
#[derive(Debug)]
pub struct TlsStream {
    stream: ByteStream,
    session: Connection,
    /// Records that came and were not looked at.
    unread: BytesMut,
}

/// A [`TlsStream`] that belongs to no thread for a while.
#[derive(Debug)]
pub struct DetachedTlsStream {
    stream: DetachedStream,
    session: Connection,
    unread: BytesMut,
}

impl DetachedTlsStream {
    /// The stream on this thread.
    ///
    /// # Errors
    /// The thread's runtime can not take the socket.
    pub fn attach(self) -> io::Result<TlsStream> {
        let DetachedTlsStream { stream, session, unread } = self;
        Ok(TlsStream { stream: stream.attach()?, session, unread })
    }
}

impl TlsStream {
    /// Begins a talk with who was connected to, at that address. The caller sees to it that it does not take for ever.
    ///
    /// # Errors
    /// One of the two does not believe the other. That the other side does not, may be known only with the first bytes
    /// that it sends.
    ///
    /// # Cancel safety
    /// Dropped, the stream is closed.
    pub async fn connect(
        stream: ByteStream,
        credentials: &Credentials,
        address: IpAddr,
    ) -> Result<TlsStream, TlsError> {
        let name = ServerName::IpAddress(address.to_canonical().into());
        let session = ClientConnection::new(Arc::clone(&credentials.client), name)?;
        TlsStream { stream, session: session.into(), unread: BytesMut::new() }.shake_hands().await
    }

    /// Begins a talk with who has connected, and has sent these bytes already.
    ///
    /// # Errors
    /// As for [`TlsStream::connect`].
    ///
    /// # Cancel safety
    /// Dropped, the stream is closed.
    pub async fn accept(
        stream: ByteStream,
        unread: BytesMut,
        credentials: &Credentials,
    ) -> Result<TlsStream, TlsError> {
        let session = ServerConnection::new(Arc::clone(&credentials.server))?;
        TlsStream { stream, session: session.into(), unread }.shake_hands().await
    }

    async fn shake_hands(mut self) -> Result<TlsStream, TlsError> {
        loop {
            poll_fn(|task| self.poll_flush(task)).await?;
            if !self.session.is_handshaking() {
                return Ok(self);
            }
            if poll_fn(|task| self.poll_records(task)).await? == 0 {
                return Err(TlsError::Closed);
            }
            if let Err(error) = self.session.process_new_packets() {
                self.say_why().await;
                return Err(error.into());
            }
        }
    }

    /// Sends the alert that the session has made of an error, if it has, and waits until the other side has taken it:
    /// who closes with bytes unread resets the connection.
    async fn say_why(&mut self) {
        if self.session.wants_write() {
            // The error is what matters, however long the other side stays.
            _ = tokio::time::timeout(LINGER, self.send_and_linger()).await;
        }
    }

    async fn send_and_linger(&mut self) {
        let said = poll_fn(|task| self.poll_flush(task)).await;
        if said.is_err() || self.shutdown().await.is_err() {
            return;
        }
        let mut passed_over = 0;
        while passed_over < LINGER_BYTES_MAX {
            self.unread.clear();
            match poll_fn(|task| self.poll_records(task)).await {
                Ok(0) | Err(_) => return,
                Ok(count) => passed_over += count,
            }
        }
    }

    /// Waits until there are bytes and takes up to `most` of them; 0 at the stream's end.
    ///
    /// # Errors
    /// What ends the connection: of kind `InvalidData`, with a [`TlsError`], when the other side has sent what is no
    /// TLS, or says why it ends.
    pub fn poll_read_some(
        &mut self,
        buffer: &mut BytesMut,
        most: usize,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.take_plain(buffer, most) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                taken => return Poll::Ready(taken),
            }
            // An end without a goodbye is one, too: frames tell whether something is missing.
            if self.unread.is_empty() && ready!(self.poll_records(task))? == 0 {
                return Poll::Ready(Ok(0));
            }
            let processed = match self.session.read_tls(&mut (&mut self.unread).reader()) {
                Ok(_) => self.session.process_new_packets(),
                Err(error) => return Poll::Ready(Err(error)),
            };
            // An answer of the session's own, or the alert that an error has made. It goes now or with the next write.
            let sent = self.poll_flush(task);
            if let Err(error) = processed {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, TlsError::from(error))));
            }
            if let Poll::Ready(Err(error)) = sent {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Takes what was decrypted already; `WouldBlock` when there is nothing.
    fn take_plain(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        let mut reader = self.session.reader();
        let plain = reader.fill_buf()?;
        let count = plain.len().min(most);
        buffer.extend_from_slice(&plain[..count]);
        reader.consume(count);
        Ok(count)
    }

    /// Waits for records, and keeps them as they came; 0 at the stream's end. In the handshake the session takes them
    /// at once.
    fn poll_records(&mut self, task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.unread.is_empty() {
            self.unread.reserve(READ_BYTES);
            let (mut reader, _) = self.stream.split();
            let count = ready!(reader.poll_read_some(&mut self.unread, READ_BYTES, task))?;
            if count == 0 {
                return Poll::Ready(Ok(0));
            }
        }
        match self.session.is_handshaking() {
            true => Poll::Ready(self.session.read_tls(&mut (&mut self.unread).reader())),
            false => Poll::Ready(Ok(self.unread.len())),
        }
    }

    /// Takes bytes to be sent; tells how many, of which some may wait for [`TlsStream::poll_flush`].
    ///
    /// # Errors
    /// What ends the connection.
    pub fn poll_write(&mut self, bytes: &[u8], task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            // The session takes no more than some records before they are gone.
            let taken = self.session.writer().write(bytes)?;
            let sent = self.poll_flush(task)?;
            if taken > 0 || bytes.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            ready!(sent);
        }
    }

    /// Waits until all that was taken is with the stream below.
    ///
    /// # Errors
    /// What ends the connection.
    pub fn poll_flush(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Below { stream: &mut self.stream, task }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says goodbye: nothing more is sent.
    ///
    /// # Errors
    /// What has ended the connection before.
    ///
    /// # Cancel safety
    /// Dropped, the goodbye may be missing.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        poll_fn(|task| self.poll_flush(task)).await?;
        poll_fn(|task| Pin::new(&mut self.stream).poll_shutdown(task)).await
    }

    /// Takes it away from this thread, for another one.
    ///
    /// # Errors
    /// The thread's runtime does not give the socket back.
    pub fn detach(self) -> io::Result<DetachedTlsStream> {
        let TlsStream { stream, session, unread } = self;
        Ok(DetachedTlsStream { stream: stream.detach()?, session, unread })
    }
}

/// The stream below as the session writes to it; what would wait wakes the task.
struct Below<'a, 'task> {
    stream: &'a mut ByteStream,
    task: &'a mut Context<'task>,
}

impl Below<'_, '_> {
    fn now(written: Poll<io::Result<usize>>) -> io::Result<usize> {
        match written {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Below<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Below::now(Pin::new(&mut *self.stream).poll_write(self.task, bytes))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Below::now(Pin::new(&mut *self.stream).poll_write_vectored(self.task, pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
