//! One io_uring of one shard.
//!
//! ```text
//!   read() ─► waiting ─► submission queue ─┐ one system call at the end of the turn
//!                                          ▼
//!              kernel reads into buffers that the ring owns
//!                                          │
//!   reader wakes ◄── settle ◄── completion queue ◄─ the ring's descriptor is readable
//! ```
//!
//! A buffer belongs to the ring from the first to the last moment that the kernel may write to it: a
//! reader that goes away leaves its slot behind, and the ring waits for what is in flight before it
//! goes itself.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

use super::buffer::{AlignedBuffer, ColdBytes};
use super::direct::DirectFile;

/// Reads that the kernel has at once; more wait here.
const IN_FLIGHT_COUNT_MAX: usize = 256;
/// Bytes of buffers that the kernel has at once, so that large chunks do not take the memory.
const IN_FLIGHT_BYTES_MAX: usize = 8 << 20;
/// How often a read is tried again that the kernel puts off.
const ATTEMPT_COUNT_MAX: u32 = 64;
/// How long to wait before trying a submission again that the kernel refused.
const SUBMIT_AGAIN: Duration = Duration::from_millis(1);

/// The ring of one shard. Stays on its thread.
pub(super) struct Ring {
    inner: Rc<RefCell<Inner>>,
    reaper: AbortHandle,
}

struct Inner {
    uring: IoUring,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Slots whose read is not handed to the kernel yet, in order.
    waiting: VecDeque<usize>,
    in_flight_count: usize,
    in_flight_bytes: usize,
    /// A task that submits at the end of this turn is on its way.
    is_submit_due: bool,
}

struct Slot {
    file: Arc<DirectFile>,
    /// Without room until the kernel is to have it: those that only wait take no memory.
    buffer: AlignedBuffer,
    /// The room that it needs.
    capacity_bytes: usize,
    /// Where in the file the buffer's first byte is.
    start: u64,
    /// Bytes of the buffer that must be filled.
    needed: usize,
    attempt_count: u32,
    /// Bytes handed to the kernel, 0 when it has none.
    in_flight_bytes: usize,
    outcome: Outcome,
}

enum Outcome {
    /// Not known; whom to wake.
    Pending(Option<Waker>),
    Done(io::Result<()>),
    /// Nobody wants it any more.
    Abandoned,
}

/// What a completion means for a read.
#[derive(Debug)]
enum Settled {
    Done(io::Result<()>),
    Again,
}

impl Ring {
    /// Sets up a ring; must be called on the thread that will use it, in a `LocalSet`.
    ///
    /// # Errors
    /// The kernel has no io_uring, or this process may not use it.
    pub(super) fn start() -> io::Result<Ring> {
        let entries = IN_FLIGHT_COUNT_MAX as u32;
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_coop_taskrun();
        let uring = match builder.build(entries) {
            // Kernels before 6.0 know fewer flags.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => IoUring::new(entries)?,
            other => other?,
        };
        let readable = register(duplicate(&uring)?)?;
        let inner = Rc::new(RefCell::new(Inner {
            uring,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            in_flight_count: 0,
            in_flight_bytes: 0,
            is_submit_due: false,
        }));
        let reaper = crate::spawn_local("disk", reap_when_readable(readable, Rc::downgrade(&inner)));
        Ok(Ring { inner, reaper: reaper.abort_handle() })
    }

    /// Reads so many bytes from an offset on.
    ///
    /// # Cancel safety
    /// Dropped, the read goes on and its bytes are thrown away.
    pub(super) async fn read(
        &self,
        file: &Arc<DirectFile>,
        offset: u64,
        length: usize,
    ) -> io::Result<ColdBytes> {
        let span = file.span(offset, length);
        let slot = Slot {
            file: Arc::clone(file),
            buffer: AlignedBuffer::empty(),
            capacity_bytes: span.capacity,
            start: span.start,
            needed: span.wanted.end,
            attempt_count: 0,
            in_flight_bytes: 0,
            outcome: Outcome::Pending(None),
        };
        let index = self.inner.borrow_mut().add(slot);
        let reading = Reading { inner: Rc::clone(&self.inner), index: Some(index) };
        submit_soon(&self.inner);
        let buffer = reading.await?;
        Ok(ColdBytes::aligned(buffer, span.wanted))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.reaper.abort();
    }
}

/// A descriptor of the ring of its own, for the reactor.
#[expect(unsafe_code, reason = "the ring's descriptor comes as a bare number")]
fn duplicate(uring: &IoUring) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is open as long as the ring that is borrowed here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(uring.as_raw_fd()) };
    borrowed.try_clone_to_owned()
}

/// Puts the descriptor under the eyes of the thread's reactor.
#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
fn register(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and gives the same descriptor as long as it lives.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(registered?)
}

async fn reap_when_readable(readable: AsyncFd<OwnedFd>, inner: Weak<RefCell<Inner>>) {
    // An error here is the end of the thread's reactor.
    while let Ok(mut guard) = readable.readable().await {
        // Before the look, so that what comes behind it is told again.
        guard.clear_ready();
        let Some(inner) = inner.upgrade() else { return };
        let is_more_to_submit = {
            let mut inner = inner.borrow_mut();
            inner.reap();
            !inner.waiting.is_empty()
        };
        if is_more_to_submit {
            submit_soon(&inner);
        }
    }
}

/// Hands over what waits when the tasks that are ready now have run.
fn submit_soon(inner: &Rc<RefCell<Inner>>) {
    if std::mem::replace(&mut inner.borrow_mut().is_submit_due, true) {
        return;
    }
    let inner = Rc::downgrade(inner);
    crate::spawn_local("disk", async move {
        while let Some(strong) = inner.upgrade() {
            let submitted = strong.borrow_mut().submit();
            let is_refused = match submitted {
                Ok(()) => {
                    let mut ring = strong.borrow_mut();
                    // What was in the page cache or failed at once is there already. The reactor may never
                    // tell of it, so what is to be tried again, or found no room, goes on from here.
                    ring.reap();
                    ring.is_submit_due = !ring.waiting.is_empty() && ring.has_room();
                    if !ring.is_submit_due {
                        return;
                    }
                    false
                }
                Err(error) => {
                    tracing::debug!(%error, "the kernel took no reads just now");
                    strong.borrow_mut().reap();
                    true
                }
            };
            drop(strong);
            match is_refused {
                true => tokio::time::sleep(SUBMIT_AGAIN).await,
                false => tokio::task::yield_now().await,
            }
        }
    });
}

impl Inner {
    fn add(&mut self, slot: Slot) -> usize {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[index] = Some(slot);
        self.waiting.push_back(index);
        index
    }

    fn has_room(&self) -> bool {
        self.in_flight_count == 0
            || (self.in_flight_count < IN_FLIGHT_COUNT_MAX && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX)
    }

    /// Hands waiting reads to the kernel, as many as it may have.
    fn submit(&mut self) -> io::Result<()> {
        while self.has_room() {
            let Some(index) = self.waiting.pop_front() else { break };
            let Some(slot) = &mut self.slots[index] else { continue };
            if matches!(slot.outcome, Outcome::Abandoned) {
                self.slots[index] = None;
                self.free.push(index);
                continue;
            }
            slot.buffer.make_room(slot.capacity_bytes);
            let at = slot.start + slot.buffer.filled() as u64;
            let (start, length) = slot.buffer.rest();
            let descriptor = types::Fd(slot.file.descriptor());
            // The door sees to it that a read is far shorter.
            let asked = u32::try_from(length).unwrap_or(u32::MAX);
            let entry = opcode::Read::new(descriptor, start, asked).offset(at).build();
            let entry = entry.user_data(index as u64);
            // SAFETY: the slot keeps buffer and file, and is not let go before the completion of this
            // entry has been seen.
            #[expect(unsafe_code, reason = "the kernel is given an address")]
            let pushed = unsafe { self.uring.submission().push(&entry) };
            if pushed.is_err() {
                self.waiting.push_front(index);
                break;
            }
            slot.in_flight_bytes = length;
            self.in_flight_count += 1;
            self.in_flight_bytes += length;
        }
        if !self.uring.submission().is_empty() {
            self.uring.submit()?;
        }
        Ok(())
    }

    /// Takes what the kernel has done.
    fn reap(&mut self) {
        while let Some(completion) = self.next_completion() {
            let index = completion.user_data() as usize;
            let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else { continue };
            self.in_flight_count -= 1;
            self.in_flight_bytes -= std::mem::take(&mut slot.in_flight_bytes);
            match slot.settle(completion.result()) {
                _ if matches!(slot.outcome, Outcome::Abandoned) => _ = self.release(index),
                Settled::Again => self.waiting.push_back(index),
                Settled::Done(result) => {
                    let before = std::mem::replace(&mut slot.outcome, Outcome::Done(result));
                    if let Outcome::Pending(Some(waker)) = before {
                        waker.wake();
                    }
                }
            }
        }
    }

    fn next_completion(&mut self) -> Option<cqueue::Entry> {
        self.uring.completion().next()
    }

    fn release(&mut self, index: usize) -> Option<Slot> {
        let slot = self.slots[index].take();
        self.free.push(index);
        slot
    }

    /// Waits until the kernel has no buffer any more.
    fn drain(&mut self) -> io::Result<()> {
        self.waiting.clear();
        while self.in_flight_count > 0 {
            match self.uring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => _ = other?,
            }
            self.reap();
            self.waiting.clear();
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.drain() {
            // Memory that the kernel may still write to must never be used again.
            tracing::error!(%error, "reads in flight could not be waited for");
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

impl Slot {
    /// What a completion with that result means: so many bytes, or the negative of an error's number.
    fn settle(&mut self, result: i32) -> Settled {
        let Ok(read) = usize::try_from(result) else {
            let error = io::Error::from_raw_os_error(result.saturating_neg());
            let is_put_off = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            self.attempt_count += 1;
            return match is_put_off && self.attempt_count < ATTEMPT_COUNT_MAX {
                true => Settled::Again,
                false => Settled::Done(Err(error)),
            };
        };
        // SAFETY: the kernel wrote so many bytes from the address on that it was given.
        #[expect(unsafe_code, reason = "tells the buffer what was read")]
        unsafe {
            self.buffer.add_filled(read);
        }
        if self.buffer.filled() >= self.needed {
            return Settled::Done(Ok(()));
        }
        let reached = self.start + self.buffer.filled() as u64;
        // A read of whole blocks that ends inside one has met the end of the file.
        if read == 0 || !self.file.is_aligned(reached) {
            return Settled::Done(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Settled::Again
    }
}

/// A reader that waits for its slot.
struct Reading {
    inner: Rc<RefCell<Inner>>,
    /// `None` once the slot was given back.
    index: Option<usize>,
}

impl Future for Reading {
    type Output = io::Result<AlignedBuffer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(index) = self.index else { unreachable!("a read that ended is not polled again") };
        let mut inner = self.inner.borrow_mut();
        let Some(slot) = &mut inner.slots[index] else { unreachable!("a slot stays as long as its reader") };
        if let Outcome::Pending(waker) = &mut slot.outcome {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let Some(slot) = inner.release(index) else { unreachable!("it was there just now") };
        drop(inner);
        self.index = None;
        match slot.outcome {
            Outcome::Done(Ok(())) => Poll::Ready(Ok(slot.buffer)),
            Outcome::Done(Err(error)) => Poll::Ready(Err(error)),
            Outcome::Pending(_) | Outcome::Abandoned => unreachable!("its own reader is here"),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        let mut inner = self.inner.borrow_mut();
        let Some(slot) = &mut inner.slots[index] else { return };
        match slot.outcome {
            Outcome::Done(_) => _ = inner.release(index),
            // The kernel has the buffer, or the read still waits: whoever meets the slot next lets go.
            _ => slot.outcome = Outcome::Abandoned,
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
