//! Puts new connections in the place of those that broke, while the others go on.
//!
//! ```text
//!   Worker --which broke--> Mender: tries, waits, tries again --new link, and a wake-up--> Worker
//! ```
//!
//! A thread of its own, since a connection to a node that hangs takes seconds to fail. It ends with its worker.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use mio::Waker;

use super::link::Link;
use crate::target::Door;
use crate::topology::Near;

/// From one try to the next: what a driver takes longer for each time is short here, so that a report shows the server.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// A link that broke: its place at the worker.
struct Broken {
    index: usize,
    node: Near,
    stream_count: i16,
}

/// The worker's side.
#[derive(Debug)]
pub(super) struct Mender {
    broken: Sender<Broken>,
    mended: Receiver<(usize, Link)>,
}

impl std::fmt::Debug for Broken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "link {} to {}", self.index, self.node.address)
    }
}

impl Mender {
    /// Wakes its worker when there is a new link.
    pub(super) fn new(door: Arc<Door>, waker: Waker) -> std::io::Result<Mender> {
        let (broken, to_mend) = channel();
        let (ready, mended) = channel();
        let mend = move || mend(&door, &to_mend, &ready, &waker);
        std::thread::Builder::new().name("mender".to_owned()).spawn(mend)?;
        Ok(Mender { broken, mended })
    }

    /// Asks for another one in the place of a link.
    pub(super) fn ask(&self, index: usize, link: &Link) {
        let broken = Broken { index, node: link.node.clone(), stream_count: link.stream_count() };
        // A mender that is gone has panicked: then the link stays where it is.
        let _ = self.broken.send(broken);
    }

    /// The next one that is there, with its place.
    pub(super) fn next(&self) -> Option<(usize, Link)> {
        self.mended.try_recv().ok()
    }
}

/// Until the worker is gone.
fn mend(door: &Door, to_mend: &Receiver<Broken>, ready: &Sender<(usize, Link)>, waker: &Waker) {
    let mut pending: Vec<Broken> = Vec::new();
    loop {
        match pending.is_empty() {
            true => match to_mend.recv() {
                Ok(broken) => pending.push(broken),
                Err(_) => return,
            },
            false => std::thread::sleep(TRY_EVERY),
        }
        loop {
            match to_mend.try_recv() {
                Ok(broken) => pending.push(broken),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let tries = std::mem::take(&mut pending);
        for broken in tries {
            let Ok(link) = door.open_briefly(&broken.node, broken.stream_count) else {
                pending.push(broken);
                continue;
            };
            if ready.send((broken.index, link)).is_err() {
                return;
            }
            // A worker that is not woken looks a few times each second.
            let _ = waker.wake();
        }
    }
}
