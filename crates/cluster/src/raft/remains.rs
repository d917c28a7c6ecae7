//! What a node that is stopped has of its agreement: it is looked at, and changed by force when most voters are lost.
//!
//! By force means: without anybody's vote the log says that others vote from now on. It is done on one node, whose log
//! becomes that of all; what the lost ones had agreed on and it had not heard is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use runtime::Disk;
use uuid::Uuid;

use super::agreement::{LOG_NAME, open_directory};
use super::contents::{Contents, Record};
use super::error::OpenError;
use super::log_file::LogFile;
use super::state::{Machine, State};
use super::types::{Address, Command, Entry, LogId, Membership, Payload, Vote};

/// What a node has of its agreement.
pub(crate) struct Remains<M> {
    file: LogFile,
    contents: Contents,
    state: State<M>,
}

impl<M: Machine> Remains<M> {
    /// Reads the log and the snapshot of a node, and makes of the machine what all of its entries make of it; also
    /// those of which it is not known whether they were agreed on. Blocks.
    ///
    /// # Errors
    /// There is no log, the disk fails, or what is there is damaged.
    pub(crate) fn read(disk: &Arc<dyn Disk>, directory: &Path, machine: M) -> Result<Remains<M>, OpenError> {
        let path = directory.join(LOG_NAME);
        let look = |source| OpenError::Disk { act: "look for the log of agreement", source };
        if !disk.exists(&path).map_err(look)? {
            return Err(OpenError::Damaged { path, offset: 0, what: "it is not there".to_owned() });
        }
        let (opened, snapshot) = open_directory(disk, directory)?;
        let mut state = State::new(machine);
        let begin = |error: io::Error| OpenError::Begin { what: error.to_string() };
        if let Some(snapshot) = snapshot {
            state.restore(&snapshot.meta, &snapshot.snapshot).map_err(begin)?;
        }
        let next = state.applied.map_or(0, |applied| applied.index + 1);
        for entry in opened.contents.entries.range(next..).map(|(_, entry)| entry.clone()) {
            state.apply(entry).map_err(begin)?;
        }
        Ok(Remains { file: opened.file, contents: opened.contents, state })
    }

    pub(crate) fn machine(&self) -> &M {
        &self.state.machine
    }

    /// Term and index of the last entry.
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.last_log_id().map(|last| (last.leader_id.term, last.index))
    }

    /// Who votes. While voters change these are two sets, of which each must agree: those that were, and those that
    /// will be.
    pub(crate) fn voters(&self) -> &[BTreeSet<Uuid>] {
        self.state.membership.membership().get_joint_config()
    }

    fn last_log_id(&self) -> Option<LogId> {
        self.state.applied.max(self.contents.last_log_id())
    }

    /// Makes these the only voters, and puts a command behind that. Blocks; durable when it returns.
    ///
    /// # Errors
    /// The disk fails: it may be done or not, and is done again.
    pub(crate) fn force(
        mut self,
        me: Uuid,
        voters: &BTreeMap<Uuid, SocketAddr>,
        (id, body): (Uuid, Bytes),
    ) -> Result<(), OpenError> {
        let last = self.last_log_id();
        let voted = self.contents.vote.map_or(0, |vote| vote.leader_id.term);
        // Later than all that this node has heard of, so that its log is taken by the others.
        let term = voted.max(last.map_or(0, |last| last.leader_id.term)) + 1;
        let index = last.map_or(0, |last| last.index + 1);
        let nodes: BTreeMap<Uuid, Address> =
            voters.iter().map(|(voter, address)| (*voter, Address(*address))).collect();
        let membership = Membership::new(vec![voters.keys().copied().collect::<BTreeSet<Uuid>>()], nodes);
        let membership = membership.map_err(|error| OpenError::Begin { what: error.to_string() })?;
        let entry = |index, payload| Entry { log_id: LogId::new_term_index(term, index), payload };
        // A snapshot that came may reach beyond the log, when the node was stopped before it gave up what is below.
        let purged = last.filter(|_| self.contents.last_log_id() < self.state.applied).map(Record::Purged);
        let mut records: Vec<Record> = purged.into_iter().collect();
        records.extend([
            Record::Vote(Vote::new(term, me)),
            Record::Entry(entry(index, Payload::Membership(membership))),
            Record::Entry(entry(index + 1, Payload::Normal(Command { id, body }))),
        ]);
        let write = |source| OpenError::Disk { act: "write the log of agreement", source };
        self.file.append(&records).map_err(write)?;
        // Twice: the mark of the first sync is durable with the second.
        self.file.sync().map_err(write)?;
        self.file.sync().map_err(write)
    }
}
