//! What the log makes: a machine of somebody else's, and who the members are.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use openraft::RaftSnapshotBuilder;
use openraft::storage::{EntryResponder, RaftStateMachine};
use uuid::Uuid;

use super::bytes_of::{BadBytes, Reader, put_bytes};
use super::remembered::Remembered;
use super::snapshot_file;
use super::types::{
    Command, Entry, LogId, Outcome, Payload, Snapshot, SnapshotMeta, StoredMembership, Types,
};
use super::writer::Writer;

/// What commands are for. The same commands in the same order make the same of it on every node, so nothing but a
/// command may change it, and no clock, no dice and no disk may have a say.
pub trait Machine: 'static {
    /// Carries out the command of this index of the log, and answers in a few bytes, which are remembered. It is never
    /// asked to do one twice.
    ///
    /// # Errors
    /// It can not be read, in words; then the node stops, before it becomes something else than the others.
    fn apply(&mut self, index: u64, command: &[u8]) -> Result<Bytes, String>;
    /// Does this node carry out, as leader, what another one wants to be put into the log? Those that are no members
    /// have nothing to say; one that is says it again, as the leader may not have heard yet that it is.
    fn listens_to(&self, node: Uuid) -> bool;
    /// May a command be put into the log by this node, which leads?
    ///
    /// # Errors
    /// It can not be read here, or on some other node, in words: nothing is done then.
    fn may_be_proposed(&self, command: &[u8]) -> Result<(), String>;
    /// All that it is, as bytes. In one turn of the shard: it is meant to be small.
    fn snapshot(&self) -> Bytes;
    /// Becomes what those bytes say.
    ///
    /// # Errors
    /// They make no sense, in words; then the node stops.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String>;
}

/// The machine and what is kept beside it.
pub(super) struct State<M> {
    pub(super) machine: M,
    pub(super) applied: Option<LogId>,
    pub(super) membership: StoredMembership,
    remembered: Remembered,
}

impl<M: Machine> State<M> {
    /// Before the first entry.
    pub(super) fn new(machine: M) -> State<M> {
        let (membership, remembered) = (StoredMembership::default(), Remembered::default());
        State { machine, applied: None, membership, remembered }
    }

    pub(super) fn apply(&mut self, entry: Entry) -> io::Result<Outcome> {
        let Entry { log_id, payload } = entry;
        let next = self.applied.map_or(0, |applied| applied.index + 1);
        assert_eq!(log_id.index, next, "entries are applied one after the other");
        self.applied = Some(log_id);
        let answer = match payload {
            Payload::Blank => Bytes::new(),
            Payload::Normal(command) => self.carry_out(log_id.index, command)?,
            Payload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(log_id), membership);
                Bytes::new()
            }
        };
        Ok(Outcome { answer })
    }

    fn carry_out(&mut self, index: u64, Command { id, body }: Command) -> io::Result<Bytes> {
        if let Some(answer) = self.remembered.answer(id) {
            return Ok(answer.clone());
        }
        let applied = self.machine.apply(index, &body);
        let answer = applied.map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))?;
        self.remembered.add(id, answer.clone());
        Ok(answer)
    }

    fn snapshot(&self) -> Snapshot {
        let mut bytes = BytesMut::new();
        self.remembered.put(&mut bytes);
        put_bytes(&mut bytes, &self.machine.snapshot());
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        Snapshot { meta, snapshot: bytes.freeze() }
    }

    pub(super) fn restore(&mut self, meta: &SnapshotMeta, bytes: &[u8]) -> io::Result<()> {
        let bad = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let read = |reader: &mut Reader<'_>| -> Result<(Remembered, Bytes), BadBytes> {
            let read = (Remembered::read(reader)?, reader.bytes()?);
            reader.end()?;
            Ok(read)
        };
        let (remembered, machine) = read(&mut Reader(bytes)).map_err(|error| bad(error.to_string()))?;
        self.machine.restore(&machine).map_err(bad)?;
        self.remembered = remembered;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        Ok(())
    }
}

/// The state machine as openraft wants it. A clone is the same one.
pub(super) struct StateMachine<M> {
    state: Rc<RefCell<State<M>>>,
    /// The one on the disk, or on its way there.
    snapshot: Rc<RefCell<Option<Snapshot>>>,
    writer: Writer,
}

impl<M: Machine> StateMachine<M> {
    pub(super) fn new(machine: M, snapshot: Option<Snapshot>, writer: Writer) -> StateMachine<M> {
        StateMachine {
            state: Rc::new(RefCell::new(State::new(machine))),
            snapshot: Rc::new(RefCell::new(snapshot)),
            writer,
        }
    }

    /// The state, to be looked at.
    pub(super) fn state(&self) -> Rc<RefCell<State<M>>> {
        Rc::clone(&self.state)
    }
}

/// Keeps a snapshot, unless there is one of a later entry: one is built beside one that is installed.
async fn keep(kept: &RefCell<Option<Snapshot>>, writer: &Writer, snapshot: Snapshot) -> io::Result<()> {
    let is_later = |kept: &Snapshot| kept.meta.last_log_id >= snapshot.meta.last_log_id;
    if kept.borrow().as_ref().is_some_and(is_later) {
        return Ok(());
    }
    let bytes = snapshot_file::encode(&snapshot);
    *kept.borrow_mut() = Some(snapshot);
    writer.write_snapshot(bytes).await
}

impl<M: Machine> RaftStateMachine<Types> for StateMachine<M> {
    type SnapshotData = Bytes;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        let state = self.state.borrow();
        Ok((state.applied, state.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let outcome = self.state.borrow_mut().apply(entry)?;
            if let Some(responder) = responder {
                responder.send(outcome);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let snapshot = self.state.borrow().snapshot();
        Builder { snapshot, kept: Rc::clone(&self.snapshot), writer: self.writer.clone() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: Bytes) -> io::Result<()> {
        self.state.borrow_mut().restore(meta, &snapshot)?;
        keep(&self.snapshot, &self.writer, Snapshot { meta: meta.clone(), snapshot }).await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        Ok(self.snapshot.borrow().clone())
    }
}

/// A snapshot of one moment, on its way to the disk.
pub(super) struct Builder {
    snapshot: Snapshot,
    kept: Rc<RefCell<Option<Snapshot>>>,
    writer: Writer,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        keep(&self.kept, &self.writer, self.snapshot.clone()).await?;
        Ok(self.snapshot.clone())
    }
}
