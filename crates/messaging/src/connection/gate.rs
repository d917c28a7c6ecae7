//! The one port where other nodes come in. Who has said what for is handed to the shard that it is for.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use runtime::{Listener, Random};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Node;
use super::channel::DetachedChannel;
use super::guests::{Guest, Guests};
use super::meeting::{MeetError, Met, accept};
use crate::handshake::{Established, Purpose};

/// So many may be at their handshake at the same time. A node is done with it after a few turns of the network; so when
/// one more comes, who has been at it longest has to go, of the address that has most.
const MEETING_COUNT_MAX: usize = 256;
/// How long nothing is accepted after that has failed: most likely there is no descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection on its way to its shard's thread.
#[derive(Debug)]
pub struct Handed {
    established: Established,
    since: Instant,
    channel: DetachedChannel,
    input: BytesMut,
    guest: Guest,
}

impl Handed {
    /// The shard that it is for; `None` when it is urgent, and for whoever sees to that.
    pub fn shard(&self) -> Option<u16> {
        match self.established.purpose {
            Purpose::Shard { to, .. } => Some(to),
            Purpose::Urgent => None,
        }
    }

    /// The connection on this thread, to be answered on.
    ///
    /// # Errors
    /// The thread's runtime can not take the socket.
    pub fn take(self) -> io::Result<Met> {
        let Handed { established, since, channel, input, guest } = self;
        Ok(Met { established, since, channel: channel.attach()?, input, guest: Some(guest) })
    }
}

/// Lets nodes in, for ever, and hands each connection over. Who is not let in is told to `refused`, and so is what can
/// not be accepted at all, without an address.
///
/// # Cancel safety
/// Dropped, nobody comes in any more; connections that were handed over stay.
pub async fn keep_gate(
    listener: Listener,
    node: Rc<dyn Node>,
    random: Arc<dyn Random>,
    mut hand_over: impl FnMut(Handed),
    mut refused: impl FnMut(Option<SocketAddr>, MeetError),
) -> Infallible {
    let guests = node.bounds().guests;
    let mut meetings: JoinSet<(SocketAddr, Result<Met, MeetError>)> = JoinSet::new();
    let mut queues = Queues::default();
    loop {
        tokio::select! {
            biased;
            Some(met) = meetings.join_next() => {
                let (address, met) = met.unwrap_or_else(|panicked| resume_unwind(panicked.into_panic()));
                match met.and_then(|met| let_in(met, &*node, &guests, address)) {
                    Ok(handed) => hand_over(handed),
                    Err(error) => refused(Some(address), error),
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    if meetings.len() >= MEETING_COUNT_MAX {
                        queues.send_one_away();
                    }
                    let (node, random) = (Rc::clone(&node), Arc::clone(&random));
                    let (guests, sent_away) = (guests.clone(), queues.join(address.ip()));
                    meetings.spawn_local(async move {
                        let met = tokio::select! {
                            biased;
                            met = accept(stream, &*node, &*random) => met,
                            Ok(()) = sent_away => {
                                guests.note_refused();
                                Err(MeetError::SentAway)
                            }
                        };
                        (address, met)
                    });
                }
                Err(error) => {
                    refused(None, error.into());
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
}

fn let_in(met: Met, node: &dyn Node, guests: &Guests, address: SocketAddr) -> Result<Handed, MeetError> {
    let Met { established, since, channel, input, .. } = met;
    if node.is_cut_off(established.host_id) {
        return Err(MeetError::CutOff);
    }
    let guest = guests.let_in(address.ip())?;
    Ok(Handed { established, since, channel: channel.detach()?, input, guest })
}

/// Who is at the handshake, the longest first.
#[derive(Default)]
struct Queues(BTreeMap<IpAddr, VecDeque<oneshot::Sender<()>>>);

impl Queues {
    /// One more; what comes from it is the word to go.
    fn join(&mut self, address: IpAddr) -> oneshot::Receiver<()> {
        let (sender, sent_away) = oneshot::channel();
        let queue = self.0.entry(address).or_default();
        while queue.front().is_some_and(oneshot::Sender::is_closed) {
            queue.pop_front();
        }
        queue.push_back(sender);
        sent_away
    }

    /// The first of the longest queue has to go.
    fn send_one_away(&mut self) {
        for queue in self.0.values_mut() {
            queue.retain(|sender| !sender.is_closed());
        }
        self.0.retain(|_, queue| !queue.is_empty());
        let longest = self.0.values_mut().max_by_key(|queue| queue.len());
        if let Some(first) = longest.and_then(VecDeque::pop_front) {
            // It may have come to its end by itself.
            _ = first.send(());
        }
    }
}
