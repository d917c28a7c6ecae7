//! Connections that wait to be accepted.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use super::{MemoryNetwork, Stream};
use crate::pool::lock;

/// A listener's queue. Dropped, nobody listens there any more, and who waits is let go.
#[derive(Debug)]
pub struct Queue {
    network: MemoryNetwork,
    address: SocketAddr,
    waiting: Arc<Waiting>,
}

/// Those who wait, and who is to be told.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<(VecDeque<Stream>, Option<Waker>)>);

impl Waiting {
    pub(super) fn put(&self, stream: Stream) {
        let (streams, waker) = &mut *lock(&self.0);
        streams.push_back(stream);
        waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Queue {
    pub(super) fn new(network: MemoryNetwork, address: SocketAddr, waiting: Arc<Waiting>) -> Self {
        Queue { network, address, waiting }
    }

    pub(in crate::network) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(in crate::network) async fn accept(&self) -> Stream {
        poll_fn(|context| {
            let (streams, waker) = &mut *lock(&self.waiting.0);
            match streams.pop_front() {
                Some(stream) => Poll::Ready(stream),
                None => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let let_go = std::mem::take(&mut lock(&self.waiting.0).0);
        let mut state = lock(&self.network.0.state);
        if let Some(queues) = state.queues.get_mut(&self.address) {
            queues.retain(|waiting| !Arc::ptr_eq(waiting, &self.waiting));
            if queues.is_empty() {
                state.queues.remove(&self.address);
            }
        }
        drop(state);
        drop(let_go);
    }
}
