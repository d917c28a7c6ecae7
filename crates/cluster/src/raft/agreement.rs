//! A node's part of an agreement: the door to openraft.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::{Node, Peer};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardToLeader, LinearizableReadError, RaftError};
use openraft::{LogIdOptionExt, Raft, RaftMetrics, ReadPolicy};
use runtime::{Disk, Random, Runtime};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::async_runtime::of_node;
use super::error::{AgreementError, Ended, OpenError};
use super::links::{Links, Miss, ask};
use super::log::Log;
use super::log_file::{LogFile, Opened};
use super::message::{Answer, Ask};
use super::network::Ways;
use super::options::{AgreementOptions, Timing};
use super::snapshot_file;
use super::state::{Machine, State, StateMachine};
use super::types::{Address, Command, Snapshot, Types};
use super::writer::Writer;

/// The files of a node's part.
pub(super) const LOG_NAME: &str = "raft.log";
const SNAPSHOT_NAME: &str = "raft.snapshot";
/// No command is longer, so that it fits a message with all around it.
pub const COMMAND_BYTES_MAX: usize = 16 << 20;
/// Between two tries, at first and at most. A node that is alone leads after three syncs.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A node's part of an agreement. Cheap to clone; of one thread.
///
/// One that starts with an empty directory is no member of anything: [`Agreement::found`] makes an agreement of this
/// node alone, and else it waits until a member adds it ([`Agreement::add_learner`]). One that was stopped or killed
/// takes part again as soon as it is started. [`Agreement::run`] must be watched: when it ends, so must the node.
pub struct Agreement<M: Machine>(Rc<Inner<M>>);

struct Inner<M: Machine> {
    me: Uuid,
    address: Address,
    timing: Timing,
    random: Arc<dyn Random>,
    raft: Raft<Types, StateMachine<M>>,
    state: Rc<RefCell<State<M>>>,
    links: Links,
}

impl<M: Machine> Clone for Agreement<M> {
    fn clone(&self) -> Self {
        Agreement(Rc::clone(&self.0))
    }
}

/// What a node knows of its agreement at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Who leads, as far as is known.
    pub leader: Option<Uuid>,
    /// How often leaders were elected, or tried to be.
    pub term: u64,
    /// The last entry that was applied here.
    pub applied: Option<u64>,
    /// The last entry that is here.
    pub last: Option<u64>,
    /// Who votes.
    pub voters: BTreeSet<Uuid>,
    /// Who has the log and does not vote.
    pub learners: BTreeSet<Uuid>,
    /// While voters change, both those that were and those that will be must agree: those that will be.
    pub next_voters: Option<BTreeSet<Uuid>>,
}

impl<M: Machine> Agreement<M> {
    /// Opens what the node agreed to so far, and takes part. The machine must be as it was made: what was agreed to
    /// is applied to it.
    ///
    /// # Errors
    /// The disk fails, or what was durable is damaged: the node must not take part.
    pub async fn start(
        options: AgreementOptions,
        runtime: &Runtime,
        node: Rc<dyn Node>,
        machine: M,
    ) -> Result<Agreement<M>, OpenError> {
        let random = Arc::clone(&runtime.random);
        let opening = Self::open(options, runtime.clone(), node, machine);
        of_node(&random, Box::pin(opening)).await
    }

    async fn open(
        options: AgreementOptions,
        runtime: Runtime,
        node: Rc<dyn Node>,
        machine: M,
    ) -> Result<Agreement<M>, OpenError> {
        let config = options.config().map_err(|what| OpenError::Begin { what })?;
        let AgreementOptions { node: me, address, directory, timing, .. } = options;
        let snapshot_path = directory.join(SNAPSHOT_NAME);
        let disk = Arc::clone(&runtime.disk);
        let (Opened { file, contents, record_count }, snapshot) =
            runtime.io.run(move || open_directory(&disk, &directory)).await?;
        let writer = Writer::start(file, snapshot_path, &runtime);
        let Runtime { random, network, .. } = runtime;
        let state_machine = StateMachine::new(machine, snapshot, writer.clone());
        let state = state_machine.state();
        let links = Links::new(network, Arc::clone(&random), node);
        let ways = Ways {
            me,
            links: links.clone(),
            random: Arc::clone(&random),
            patience: timing.message_patience(),
        };
        let applied = Rc::clone(&state);
        let log = Log::new(contents, record_count, writer, Box::new(move || applied.borrow().applied));
        let raft = Raft::new(me, config, ways, log, state_machine).await;
        let raft = raft.map_err(|error| OpenError::Begin { what: error.to_string() })?;
        let address = Address(address);
        let agreement = Agreement(Rc::new(Inner { me, address, timing, random, raft, state, links }));
        let is_alone =
            move |state: &openraft::RaftState<Types>| state.membership_state.effective().voter_ids().eq([me]);
        if let Ok(true) = agreement.0.raft.with_raft_state(is_alone).await {
            // Nobody else can lead: there is nothing to wait for.
            _ = agreement.0.raft.trigger().elect(false).await;
        }
        Ok(agreement)
    }

    /// Founds an agreement of this node alone.
    ///
    /// # Errors
    /// It is a member already.
    pub async fn found(&self) -> Result<(), AgreementError> {
        let members = std::collections::BTreeMap::from([(self.0.me, self.0.address)]);
        match self.as_node(self.0.raft.initialize(members)).await {
            Ok(()) => Ok(()),
            Err(RaftError::APIError(_)) => Err(AgreementError::Founded),
            Err(RaftError::Fatal(_)) => Err(AgreementError::Ended),
        }
    }

    /// Waits until this node's part has ended: by [`Agreement::stop`], or for a reason for which the node must end.
    ///
    /// # Errors
    /// The disk failed, or a promise was broken.
    pub async fn run(&self) -> Result<(), Ended> {
        let mut metrics = self.0.raft.metrics();
        loop {
            let running = {
                let now = metrics.borrow_and_update();
                let members = now.membership_config.membership();
                // Before it is a member it answers those who may make it one.
                self.0.links.keep(|member| members.get_node(member).is_some());
                now.running_state.clone()
            };
            match running {
                Err(openraft::errors::Fatal::Stopped) => return Ok(()),
                Err(error) => return Err(Ended { what: error.to_string() }),
                Ok(()) if metrics.changed().await.is_err() => {
                    return Err(Ended { what: "its task is gone".to_owned() });
                }
                Ok(()) => {}
            }
        }
    }

    /// Ends this node's part. Its log stays.
    pub async fn stop(&self) {
        // An error says that it has ended already.
        _ = self.as_node(self.0.raft.shutdown()).await;
        self.0.links.keep(|_| false);
    }

    /// Proposes a command, and waits until it is agreed on and applied by the leader; its answer. It may be proposed
    /// again with the same id, on any node: it is applied once.
    ///
    /// # Errors
    /// Whether it was agreed on, as far as is known.
    ///
    /// # Cancel safety
    /// Dropped, the command may be agreed on all the same.
    pub async fn propose(&self, id: Uuid, body: Bytes) -> Result<Bytes, AgreementError> {
        if body.len() > COMMAND_BYTES_MAX {
            return Err(AgreementError::TooLong { bytes: body.len() as u64 });
        }
        let command = Command { id, body };
        let asked = Ask::Propose(command.clone());
        let here = || self.propose_here(command.clone());
        self.as_node(self.anywhere(&asked, here, |answer| match answer {
            Answer::Proposed(answer) => Some(answer),
            _ => None,
        }))
        .await
    }

    /// Waits until this node has applied everything that was agreed on before it was called.
    ///
    /// # Errors
    /// No leader confirmed in time how far that is, or this node did not come so far.
    pub async fn catch_up(&self) -> Result<(), AgreementError> {
        let deadline = Instant::now() + self.0.timing.patience;
        self.as_node(async {
            let index = self.anywhere(
                &Ask::ReadIndex,
                || self.read_index_here(),
                |answer| match answer {
                    Answer::ReadIndex(index) => Some(index),
                    _ => None,
                },
            );
            // Nothing was to be agreed on, so nothing is in doubt.
            let index = index.await.map_err(|error| match error {
                AgreementError::InDoubt => AgreementError::NoLeader,
                other => other,
            })?;
            let wait = self.0.raft.wait(Some(deadline.saturating_duration_since(Instant::now())));
            match wait.applied_index_at_least(index, "read").await {
                Ok(_) => Ok(()),
                Err(_) => Err(AgreementError::Behind { node: self.0.me }),
            }
        })
        .await
    }

    /// Looks at the machine as it is here. After [`Agreement::catch_up`] it shows all that was agreed on before.
    pub fn look<T>(&self, look: impl FnOnce(&M) -> T) -> T {
        look(&self.0.state.borrow().machine)
    }

    /// The urgent connection to a member, which is reached there from now on: also for agreement, whose log says only
    /// where it was when it came.
    pub(crate) fn peer(&self, member: Uuid, address: SocketAddr) -> Peer {
        self.0.links.place(member, Address(address));
        self.0.links.to(member, Address(address))
    }

    /// Can those agree on something? While voters change, most of those that were and of those that will be must.
    pub fn is_majority(&self, is_there: impl Fn(Uuid) -> bool) -> bool {
        let metrics = self.metrics();
        let configs = metrics.membership_config.membership().get_joint_config();
        let there_count = |voters: &BTreeSet<Uuid>| voters.iter().filter(|voter| is_there(**voter)).count();
        configs.iter().all(|voters| 2 * there_count(voters) > voters.len())
    }

    /// What is known at this moment.
    pub fn standing(&self) -> Standing {
        let metrics = self.metrics();
        let members = metrics.membership_config.membership();
        Standing {
            leader: metrics.current_leader,
            term: metrics.current_term,
            applied: metrics.last_applied.index(),
            last: metrics.last_log_index,
            voters: members.voter_ids().collect(),
            learners: members.learner_ids().collect(),
            next_voters: match &members.get_joint_config()[..] {
                [_, .., next] => Some(next.clone()),
                _ => None,
            },
        }
    }

    pub(super) fn me(&self) -> Uuid {
        self.0.me
    }

    pub(super) fn raft(&self) -> &Raft<Types, StateMachine<M>> {
        &self.0.raft
    }

    pub(super) fn random(&self) -> Arc<dyn Random> {
        Arc::clone(&self.0.random)
    }

    pub(super) fn timing(&self) -> &Timing {
        &self.0.timing
    }

    pub(super) fn metrics(&self) -> RaftMetrics<Types> {
        self.0.raft.metrics().borrow_watched().deref().clone()
    }

    /// Runs as a task of this node does.
    pub(super) fn as_node<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        of_node(&self.0.random, future)
    }

    /// Does something on the leader, whoever that is, and tries again for as long as patience lasts.
    pub(super) async fn anywhere<T, F>(
        &self,
        asked: &Ask,
        here: impl Fn() -> F,
        read: impl Fn(Answer) -> Option<T>,
    ) -> Result<T, AgreementError>
    where
        F: Future<Output = Result<T, AgreementError>>,
    {
        let deadline = Instant::now() + self.0.timing.patience;
        // Once it may have been done, it stays in doubt until an answer comes.
        let mut is_in_doubt = false;
        let mut pause = PAUSE_MIN;
        loop {
            let tried = timeout_at(deadline, self.once(asked, &here, &read)).await;
            let error = match tried.unwrap_or(Err(AgreementError::InDoubt)) {
                Err(error) if error.may_pass() => error,
                settled => return settled,
            };
            is_in_doubt |= error == AgreementError::InDoubt;
            if Instant::now() + pause >= deadline {
                return Err(if is_in_doubt { AgreementError::InDoubt } else { error });
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn once<T, F>(
        &self,
        asked: &Ask,
        here: &impl Fn() -> F,
        read: &impl Fn(Answer) -> Option<T>,
    ) -> Result<T, AgreementError>
    where
        F: Future<Output = Result<T, AgreementError>>,
    {
        let (leader, address) = {
            let metrics = self.0.raft.metrics();
            let metrics = metrics.borrow_watched();
            let leader = metrics.current_leader.ok_or(AgreementError::NoLeader)?;
            (leader, metrics.membership_config.membership().get_node(&leader).copied())
        };
        if leader == self.0.me {
            return here().await;
        }
        let peer = self.0.links.to(leader, address.ok_or(AgreementError::NoLeader)?);
        match ask(&peer, self.0.timing.patience, asked).await {
            Ok(Answer::Refused(error)) => Err(error),
            Ok(answer) => read(answer).ok_or(AgreementError::InDoubt),
            Err(Miss::NotSent) => Err(AgreementError::NoLeader),
            Err(Miss::Lost | Miss::Late) => Err(AgreementError::InDoubt),
        }
    }

    /// Is it one whose proposals and changes this node carries out?
    pub(super) fn listens_to(&self, node: Uuid) -> bool {
        self.0.state.borrow().machine.listens_to(node)
    }

    /// As [`Agreement::propose`], of the leader alone.
    pub(super) async fn propose_here(&self, command: Command) -> Result<Bytes, AgreementError> {
        let may_be = self.0.state.borrow().machine.may_be_proposed(&command.body);
        may_be.map_err(|what| AgreementError::Refused { what })?;
        match self.0.raft.client_write(command).await {
            Ok(written) => Ok(written.data.answer),
            Err(error) => Err(of_write(error)),
        }
    }

    /// Up to which entry must be applied what is read from now on? Asked of the leader, which asks a majority.
    pub(super) async fn read_index_here(&self) -> Result<Option<u64>, AgreementError> {
        match self.0.raft.get_read_log_id(ReadPolicy::ReadIndex).await {
            Ok((read, _)) => Ok(Some(read.index())),
            Err(RaftError::APIError(
                LinearizableReadError::ForwardToLeader(_) | LinearizableReadError::QuorumNotEnough(_),
            )) => Err(AgreementError::NoLeader),
            Err(RaftError::Fatal(_)) => Err(AgreementError::Ended),
        }
    }
}

/// Is there a log of agreement in a directory? One is made when a node takes part for the first time, before anything
/// is promised.
///
/// # Errors
/// The disk fails.
pub(crate) async fn has_log(directory: &Path, runtime: &Runtime) -> Result<bool, OpenError> {
    let (disk, path) = (Arc::clone(&runtime.disk), directory.join(LOG_NAME));
    let exists = runtime.io.run(move || disk.exists(&path)).await;
    exists.map_err(|source| OpenError::Disk { act: "look for the log of agreement", source })
}

/// Opens the log and the snapshot in a directory, which may be new. Blocks.
pub(super) fn open_directory(
    disk: &Arc<dyn Disk>,
    directory: &Path,
) -> Result<(Opened, Option<Snapshot>), OpenError> {
    let fail = |source| OpenError::Disk { act: "open the directory of agreement", source };
    let damaged = |path: PathBuf, what: &str| OpenError::Damaged { path, offset: 0, what: what.to_owned() };
    let (log_path, snapshot_path) = (directory.join(LOG_NAME), directory.join(SNAPSHOT_NAME));
    disk.create_dir_all(directory).map_err(fail)?;
    let snapshot = snapshot_file::read(&**disk, &snapshot_path)?;
    // It is made before the first snapshot. With it the node's vote would be gone, and it might vote twice.
    if snapshot.is_some() && !disk.exists(&log_path).map_err(fail)? {
        return Err(damaged(log_path, "there is a snapshot, and no log"));
    }
    let opened = LogFile::open(disk, &log_path)?;
    let snapshot_upto = snapshot.as_ref().and_then(|snapshot| snapshot.meta.last_log_id);
    if opened.contents.purged > snapshot_upto {
        return Err(damaged(snapshot_path, "the snapshot of entries that are purged is not there"));
    }
    Ok((opened, snapshot))
}

/// What is known of a write that failed.
pub(super) fn of_write(error: RaftError<Types, ClientWriteError<Types>>) -> AgreementError {
    use openraft::errors::ChangeMembershipError as Members;
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(ForwardToLeader { .. })) => {
            AgreementError::NoLeader
        }
        // Another leader may have the entry.
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => AgreementError::InDoubt,
        RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => match error {
            Members::InProgress(_) => AgreementError::Changing,
            Members::UncommittedLeaderLog(_) => AgreementError::NoLeader,
            Members::EmptyMembership(_) => AgreementError::LastVoter,
            other => AgreementError::Refused { what: other.to_string() },
        },
        RaftError::APIError(other) => AgreementError::Refused { what: other.to_string() },
        // It may have been sent before.
        RaftError::Fatal(_) => AgreementError::Ended,
    }
}
