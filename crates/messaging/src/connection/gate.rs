//! The one port where other nodes come in. Who has said what for is handed to the shard that it is for.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use runtime::{Listener, Random};
use tokio::task::JoinSet;

use super::Node;
use super::channel::DetachedChannel;
use super::meeting::{MeetError, Met, accept};
use crate::handshake::{Established, Purpose};

/// So many may be at their handshake at the same time; the others wait to be accepted. Who says nothing goes after the
/// time that a handshake may take.
const MEETING_COUNT_MAX: usize = 256;
/// How long nothing is accepted after that has failed: most likely there is no descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection on its way to its shard's thread.
#[derive(Debug)]
pub struct Handed {
    established: Established,
    channel: DetachedChannel,
    input: BytesMut,
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
        let Handed { established, channel, input } = self;
        Ok(Met { established, channel: channel.attach()?, input })
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
    let mut meetings: JoinSet<(SocketAddr, Result<Handed, MeetError>)> = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(met) = meetings.join_next() => match met {
                Ok((address, Ok(handed))) => match node.is_cut_off(handed.established.host_id) {
                    true => refused(Some(address), MeetError::CutOff),
                    false => hand_over(handed),
                },
                Ok((address, Err(error))) => refused(Some(address), error),
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            },
            accepted = listener.accept(), if meetings.len() < MEETING_COUNT_MAX => match accepted {
                Ok((stream, address)) => {
                    let (node, random) = (Rc::clone(&node), Arc::clone(&random));
                    meetings.spawn_local(async move {
                        let met = accept(stream, &*node, &*random).await;
                        (address, met.and_then(handed))
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

fn handed(met: Met) -> Result<Handed, MeetError> {
    let Met { established, channel, input } = met;
    Ok(Handed { established, channel: channel.detach()?, input })
}
