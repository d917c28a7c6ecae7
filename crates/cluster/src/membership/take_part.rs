//! All that a node does for its part in a ring, on one thread.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use messaging::{Handed, MeetError, Node, Seldom, answer, keep_gate};
use runtime::{Clock, Listener, Random, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::contact::Contacts;
use super::door::{Door, Heard};
use super::presence::{self, Claims};
use super::proposer::Proposal;
use super::{Doors, Hybrid, Known, MembershipError, MembershipOptions, ProposeError, Speaker};
use super::{heartbeat, joining, standing, voters};
use crate::metadata::{Agreed, Command, MetadataMachine, Refusal, check_same, decode_outcome};
use crate::raft::{Agreement, AgreementError, AgreementOptions, Answers, has_log};

/// After so many entries agreement keeps what they made instead of them.
const SNAPSHOT_ENTRY_COUNT: u64 = 1_000;
/// How long a node that is behind waits for what the others have: without that it serves as well as it can.
const OTHERS_PATIENCE: Duration = Duration::from_secs(2);

/// How often it is told at most that there are too many connections.
const CROWDED_EVERY: Duration = Duration::from_secs(60);

/// The wall clock: this thread gives no timestamps.
struct WallClock(Arc<dyn Clock>);

impl Hybrid for WallClock {
    fn latest(&self) -> i64 {
        self.0.now_micros()
    }

    fn hear(&self, _micros: i64) {}
}

/// Takes part in the ring until that fails: comes in first, unless the node is a member.
///
/// # Errors
/// The node must not serve, or no more.
///
/// # Cancel safety
/// Dropped, the node is gone from the network, as if its process had died.
pub async fn take_part(
    options: MembershipOptions,
    runtime: Runtime,
    doors: Doors,
) -> Result<Infallible, MembershipError> {
    let Doors { known, listener, entries, mut proposals, hand_over } = doors;
    let listener = listener.open().map_err(MembershipError::Listen)?;
    let clock = WallClock(Arc::clone(&runtime.clock));
    let node: Rc<dyn Node> = Rc::new(Speaker::new(known.clone(), Box::new(clock)));
    let machine = MetadataMachine::new(Arc::clone(&options.base), entries);
    let agreement = open(&options, &runtime, &known, &node, machine).await?;
    let contacts = Contacts::new(&runtime, &node);
    let heard = Heard::default();
    let claims = Claims::new(known.clone(), contacts.clone(), options.candidate.presence());
    let door = Rc::new(Door {
        known: known.clone(),
        agreement: agreement.clone(),
        answers: Answers::new(agreement.clone()),
        random: Arc::clone(&runtime.random),
        may_found: options.may_found(),
        heard: Rc::clone(&heard),
        claims: claims.clone(),
        contacts: contacts.clone(),
        begun: Instant::now(),
        unreadable: Seldom::default(),
    });
    let gate = gate(listener, Rc::clone(&node), Arc::clone(&runtime.random), door, hand_over);
    let _gate = Aborting(runtime::spawn_local("gate for other nodes", gate));
    let ticking = tick(known.clone(), agreement.clone(), heard, claims.clone());
    let seeing_to = voters::see_to(known.clone(), agreement.clone());
    let _seeing_to = Aborting(runtime::spawn_local("voters", Box::pin(seeing_to)));
    let _ticking = Aborting(runtime::spawn_local("heartbeats", ticking));
    let coming_in = async {
        match known.is_member_now() {
            true => {
                if let Some(replaced) = options.replaces {
                    tracing::info!(%replaced, "this node is a member already, and takes nobody's place");
                }
                _ = timeout(OTHERS_PATIENCE, knows_others(&known, &claims)).await;
                // Before that clients would be told that it is up where it was.
                known.wait_until(|_| claims.is_found()).await;
            }
            false => {
                joining::come_in(&options, &runtime, &known, &contacts, &agreement).await?;
                // From then on the ring does without one of them.
                _ = timeout(OTHERS_PATIENCE, voters::are_enough(&known, &agreement)).await;
            }
        }
        // What it shows before would be less than was acknowledged.
        known.wait_until(Known::has_rows).await;
        known.let_serve();
        // It has begun.
        std::future::pending().await
    };
    let proposing = async {
        while let Some(proposal) = proposals.next().await {
            let (agreement, id) = (agreement.clone(), runtime.random.uuid_v4());
            let known = known.clone();
            let settling = async move { settle(&known, &agreement, id, proposal).await };
            runtime::spawn_local("proposal", settling);
        }
        // The node has ended, and this with it.
        std::future::pending().await
    };
    let presenting = Box::pin(presence::see_to(&options, &runtime, &known, &agreement, &claims));
    let over = Box::pin(standing::is_over(&known, &agreement, &claims));
    tokio::select! {
        biased;
        ended = agreement.run() => {
            ended?;
            std::future::pending().await
        }
        failed = coming_in => failed,
        failed = proposing => failed,
        failed = presenting => Err(failed),
        removed = over => Err(removed),
    }
}

/// Waits until this node has come as far as most others. Who hears nobody has asked all of whom it knows: they may be
/// of another cluster.
async fn knows_others(known: &Known, claims: &Claims) {
    known.is_up_to_date().await;
    if !known.hears_others() {
        claims.are_told().await;
    }
}

/// Opens the agreement, as the member that this node is or is not yet.
async fn open(
    options: &MembershipOptions,
    runtime: &Runtime,
    known: &Known,
    node: &Rc<dyn Node>,
    machine: MetadataMachine,
) -> Result<Agreement<MetadataMachine>, MembershipError> {
    let agreement_options = AgreementOptions {
        node: options.candidate.host_id,
        address: options.candidate.address,
        directory: options.directory.clone(),
        timing: options.timing,
        snapshot_entry_count: SNAPSHOT_ENTRY_COUNT,
    };
    let members = known.members();
    if let Some(member) = members.as_ref().and_then(|members| members.get(known.host_id())) {
        check_same(&member.candidate, &options.candidate).map_err(MembershipError::Changed)?;
        // One that is there and empty has promised nothing: its node was cut off before it was written to.
        if !has_log(&options.directory, runtime).await? {
            return Err(MembershipError::LogGone { directory: options.directory.display().to_string() });
        }
    }
    Ok(Agreement::start(agreement_options, runtime, Rc::clone(node), machine).await?)
}

/// Lets other nodes in, for ever.
async fn gate(
    listener: Listener,
    node: Rc<dyn Node>,
    random: Arc<dyn Random>,
    door: Rc<Door>,
    mut hand_over: Box<dyn FnMut(u16, Handed)>,
) {
    let answers_as = Rc::clone(&node);
    let sort = move |handed: Handed| match handed.shard() {
        Some(shard) => hand_over(shard, handed),
        None => match handed.take() {
            Ok(met) => {
                let answering = answer(met, Rc::clone(&answers_as), Rc::<Door>::clone(&door));
                runtime::spawn_local("urgent connection", async move {
                    let ended = answering.await;
                    tracing::debug!(%ended, "an urgent connection has ended");
                });
            }
            Err(error) => tracing::warn!(%error, "an urgent connection can not be taken"),
        },
    };
    let (seldom, seldom_crowded) = (Seldom::default(), Seldom::every(CROWDED_EVERY));
    let refused = move |source: Option<SocketAddr>, error: MeetError| {
        let source = source.map_or_else(|| "nobody".to_owned(), |source| source.to_string());
        if error.is_departure() {
            // Nodes do so that have found out meanwhile that they have nothing to say.
            tracing::debug!(source, %error, "somebody has come and gone");
        } else if error.is_for_want_of_room() {
            if let Some(count) = seldom_crowded.note() {
                tracing::warn!(source, %error, count, "there are too many connections of other nodes");
            }
        } else if let Some(count) = seldom.note() {
            tracing::warn!(source, %error, count, "somebody who says to be a node is not let in");
        }
    };
    keep_gate(listener, node, random, sort, refused).await;
}

/// Heartbeats, and what is looked at as often: at once when there is news, so that others learn of it.
async fn tick(known: Known, agreement: Agreement<MetadataMachine>, heard: Heard, claims: Claims) {
    let mut ticks = interval(heartbeat::INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Instant::now();
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {}
            () = known.news() => {}
        }
        heartbeat::send(&known, &agreement, &claims);
        heartbeat::look(&known, &heard, looked);
        looked = Instant::now();
    }
}

/// Proposes, and tells what came of it.
async fn settle(known: &Known, agreement: &Agreement<MetadataMachine>, id: Uuid, proposal: Proposal) {
    let Proposal { command, outcome } = proposal;
    let told = propose(known, agreement, id, &command).await;
    // Who plans anew against a schema that is behind is refused again, much sooner than that comes.
    if let Err(ProposeError::Refused(Refusal::Moved { current, .. })) = &told {
        _ = timeout(OTHERS_PATIENCE, known.schema_is_here(*current)).await;
    }
    // Who asked may have gone.
    _ = outcome.send(told);
}

/// Waits while a leader is elected, and for as long as most voters are heard.
async fn propose(
    known: &Known,
    agreement: &Agreement<MetadataMachine>,
    id: Uuid,
    command: &Command,
) -> Result<Agreed, ProposeError> {
    voters::are_heard(known, agreement).await?;
    tokio::select! {
        biased;
        agreed = agreement.propose(id, command.encode()) => Ok(decode_outcome(&agreed?)?),
        // They were there when it was proposed: some may have it.
        () = voters::are_silent(known, agreement) => Err(AgreementError::InDoubt.into()),
    }
}

/// A task that ends with who began it.
struct Aborting(JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
