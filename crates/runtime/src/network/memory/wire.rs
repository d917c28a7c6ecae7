//! One direction of a connection.
//!
//! ```text
//!   writer ──► | parcel | parcel | parcel | ──► reader
//!                 arrives at a time each, in order; nothing while the wire is held
//! ```

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::time::Instant;

use super::MemoryNetwork;
use crate::pool::lock;

#[derive(Debug)]
pub(super) struct Wire {
    network: MemoryNetwork,
    from: IpAddr,
    to: IpAddr,
    flow: Mutex<Flow>,
}

#[derive(Debug)]
struct Flow {
    /// Invariant: in the order of their arrival, none of them empty.
    parcels: VecDeque<Parcel>,
    /// Invariant: the bytes of all parcels, and no more than the window.
    byte_count: usize,
    /// When the last thing that was sent arrives.
    last_arrival: Instant,
    /// The writer sends no more; the reader learns of it then.
    end: Option<Instant>,
    /// Nothing arrives.
    is_held: bool,
    /// The connection was broken.
    is_reset: bool,
    /// The reader is gone.
    is_abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug)]
struct Parcel {
    arrives: Instant,
    bytes: VecDeque<u8>,
}

/// When there is something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Now,
    At(Instant),
    /// When the writer, or a fault, says so.
    Unknown,
}

impl Wire {
    pub(super) fn new(network: MemoryNetwork, from: IpAddr, to: IpAddr) -> Self {
        let flow = Flow {
            parcels: VecDeque::new(),
            byte_count: 0,
            last_arrival: Instant::now(),
            end: None,
            is_held: false,
            is_reset: false,
            is_abandoned: false,
            reader: None,
            writer: None,
        };
        Wire { network, from, to, flow: Mutex::new(flow) }
    }

    pub(super) fn connects(&self, from: IpAddr, to: IpAddr) -> bool {
        (self.from, self.to) == (from, to)
    }

    /// Takes as many of the bytes as there is room for.
    pub(super) fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut flow = lock(&self.flow);
        if flow.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if flow.is_abandoned || flow.end.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let offered = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let taken = offered.min(self.network.0.options.window_bytes - flow.byte_count);
        if taken == 0 {
            return if offered == 0 { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let mut bytes = Vec::with_capacity(taken);
        for piece in pieces {
            bytes.extend_from_slice(&piece[..piece.len().min(taken - bytes.len())]);
        }
        let arrives = self.next_arrival(&mut flow, taken);
        self.network.0.digest.add(arrives, &bytes);
        flow.parcels.push_back(Parcel { arrives, bytes: bytes.into() });
        flow.byte_count += taken;
        flow.wake_reader();
        Ok(taken)
    }

    /// Waits until the writer can do something, and be it fail.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut flow = lock(&self.flow);
        if flow.is_over() || flow.byte_count < self.network.0.options.window_bytes {
            return Poll::Ready(());
        }
        flow.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// When there is something to read; whoever asked is woken if that changes.
    pub(super) fn arrival(&self, context: &mut Context<'_>) -> Arrival {
        let mut flow = lock(&self.flow);
        let arrival = flow.arrival(Instant::now());
        if arrival != Arrival::Now {
            flow.reader = Some(context.waker().clone());
        }
        arrival
    }

    /// Reads what has arrived, up to the buffer's room; nothing at the end.
    pub(super) fn read(&self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut flow = lock(&self.flow);
        if flow.is_reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let now = Instant::now();
        while buffer.remaining() > 0
            && let Some(parcel) = flow.parcels.front_mut().filter(|parcel| parcel.arrives <= now)
        {
            let count = buffer.remaining().min(parcel.bytes.len());
            let (front, back) = parcel.bytes.as_slices();
            let first = count.min(front.len());
            buffer.put_slice(&front[..first]);
            buffer.put_slice(&back[..count - first]);
            parcel.bytes.drain(..count);
            let is_read = parcel.bytes.is_empty();
            flow.byte_count -= count;
            if is_read {
                flow.parcels.pop_front();
            }
        }
        flow.wake_writer();
        Ok(())
    }

    /// How many bytes can be read now.
    pub(super) fn arrived_bytes(&self) -> u64 {
        let (flow, now) = (lock(&self.flow), Instant::now());
        if flow.is_held {
            return 0;
        }
        let arrived = flow.parcels.iter().take_while(|parcel| parcel.arrives <= now);
        arrived.map(|parcel| parcel.bytes.len() as u64).sum()
    }

    /// The writer has sent all.
    pub(super) fn end(&self) {
        let mut flow = lock(&self.flow);
        if flow.end.is_none() {
            flow.end = Some(self.next_arrival(&mut flow, 0));
            flow.wake_reader();
        }
    }

    /// The reader wants no more.
    pub(super) fn abandon(&self) {
        let mut flow = lock(&self.flow);
        flow.is_abandoned = true;
        flow.wake_writer();
    }

    /// The connection breaks.
    pub(super) fn reset(&self) {
        let mut flow = lock(&self.flow);
        flow.is_reset = true;
        flow.parcels.clear();
        flow.byte_count = 0;
        flow.wake_reader();
        flow.wake_writer();
    }

    /// From now on nothing arrives.
    pub(super) fn hold(&self) {
        lock(&self.flow).is_held = true;
    }

    /// What was held is sent again.
    pub(super) fn release(&self) {
        let mut flow = lock(&self.flow);
        flow.is_held = false;
        let earliest = Instant::now() + self.network.latency();
        flow.parcels.iter_mut().for_each(|parcel| parcel.arrives = parcel.arrives.max(earliest));
        flow.end = flow.end.map(|end| end.max(earliest));
        flow.last_arrival = flow.last_arrival.max(earliest);
        flow.wake_reader();
    }

    /// When so many bytes arrive that are sent now; never before what was sent earlier.
    fn next_arrival(&self, flow: &mut Flow, byte_count: usize) -> Instant {
        let nanos = byte_count as u64 * 1_000_000_000 / self.network.0.options.bytes_per_second.max(1);
        let arrives = Instant::now() + self.network.latency() + Duration::from_nanos(nanos);
        let arrives = self.network.0.tolls.taken_in(self.to, arrives, byte_count);
        flow.last_arrival = flow.last_arrival.max(arrives);
        flow.last_arrival
    }
}

impl Flow {
    fn is_over(&self) -> bool {
        self.is_reset || self.is_abandoned || self.end.is_some()
    }

    fn arrival(&self, now: Instant) -> Arrival {
        if self.is_reset {
            return Arrival::Now;
        }
        if self.is_held {
            return Arrival::Unknown;
        }
        match self.parcels.front().map(|parcel| parcel.arrives).or(self.end) {
            None => Arrival::Unknown,
            Some(time) if time <= now => Arrival::Now,
            Some(time) => Arrival::At(time),
        }
    }

    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }
}
