//! What the node does when its disks fail: the policies, what has happened, and what that asks of the node.
//!
//! Whoever meets a failure says so here ([`Health::note`]); each shard does its own part (`shared/faults.rs`),
//! and the floors above watch the [`Demand`]. A full disk is no failure: writes are refused until there
//! is room, whatever the policy. `docs/internals/failures.md` has the table.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use commitlog::CommitLogError;
use runtime::{Clock, Latest, LatestReader, PathError};
use schema::Table;
use sstable::SstableError;

use crate::{TableDirectories, TableError};

/// Failures that are remembered, the latest.
const FAULTS_KEPT: usize = 100;
const _: () = assert!(FAULTS_KEPT > 0, "the last fault is known");

/// What to do when table files, manifests or their directories fail; as Cassandra's of the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFailurePolicy {
    /// Serve clients no more; the node can still be looked at and managed.
    #[default]
    Stop,
    /// The same, and for a damaged file too.
    StopParanoid,
    /// Use what failed no more, and answer from the rest.
    BestEffort,
    /// Let the requests fail that need what failed.
    Ignore,
    /// End the process.
    Die,
}

/// What to do when the commit log fails; as Cassandra's of the same names. All but `Ignore` end a start that finds
/// the log damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitFailurePolicy {
    /// Serve clients no more; the node can still be looked at and managed.
    #[default]
    Stop,
    /// Refuse writes and serve reads.
    StopCommit,
    /// Let the writes fail that were under way, and go on as soon as the disk lets the log; start without what
    /// is damaged of it.
    Ignore,
    /// End the process.
    Die,
}

/// What failures ask of the whole node. It only gets more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// Go on.
    Serve,
    /// No more clients.
    StopClients,
    /// No more process.
    Die,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A write, a sync, a new or removed name.
    Write,
    /// A read.
    Read,
    /// Bytes that are not what was written.
    Damage,
    /// The commit log.
    Log,
    /// There is no space.
    Full,
    /// A table's options ask for files that can not be written: the disk has nothing to do with it.
    Options,
}

impl FaultKind {
    /// Is it the disk that failed, and how?
    pub fn of(error: &TableError) -> Option<FaultKind> {
        match error {
            TableError::TableFile(SstableError::Damaged { .. } | SstableError::Checksum { .. })
            | TableError::DamagedState { .. }
            | TableError::DamagedRecord { .. } => Some(FaultKind::Damage),
            TableError::Disk { source, .. } | TableError::TableFile(SstableError::Disk(source)) => {
                kind_of_io(source)
            }
            _ => None,
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Write => "write",
            FaultKind::Read => "read",
            FaultKind::Damage => "damage",
            FaultKind::Log => "commit log",
            FaultKind::Full => "no space",
            FaultKind::Options => "options",
        }
    }
}

/// A failure that was met.
#[derive(Clone, Debug)]
pub struct FaultRecord {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// What failed.
    pub kind: FaultKind,
    /// At what: `flush`, `read`.
    pub act: &'static str,
    /// In words, with the path.
    pub what: String,
}

/// A directory of table files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDirectory {
    /// Where.
    pub path: PathBuf,
    /// May files be written there? Not after a failed write under `best_effort`.
    pub is_writable: bool,
}

/// How a node's disks are, shared by its shards.
#[derive(Debug)]
pub struct Health {
    disk_policy: DiskFailurePolicy,
    commit_policy: CommitFailurePolicy,
    directories: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    demand: Latest<Demand>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<FaultRecord>,
    fault_count: u64,
    unwritable: BTreeSet<PathBuf>,
}

impl Health {
    /// Of a node whose table files lie in those directories.
    pub fn new(
        disk_policy: DiskFailurePolicy,
        commit_policy: CommitFailurePolicy,
        directories: Vec<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Health {
        let demand = Latest::new(Demand::Serve);
        Health { disk_policy, commit_policy, directories, clock, demand, state: Mutex::default() }
    }

    /// The policy for table files and manifests.
    pub fn disk_policy(&self) -> DiskFailurePolicy {
        self.disk_policy
    }

    /// The policy for the commit log.
    pub fn commit_policy(&self) -> CommitFailurePolicy {
        self.commit_policy
    }

    /// What failures so far ask of the node.
    pub fn demand(&self) -> LatestReader<Demand> {
        self.demand.reader()
    }

    /// The latest failures, the last one last, and how many there were in all.
    pub fn faults(&self) -> (Vec<FaultRecord>, u64) {
        let state = self.state();
        (state.faults.iter().cloned().collect(), state.fault_count)
    }

    /// All directories of table files.
    pub fn directories(&self) -> Vec<DataDirectory> {
        let state = self.state();
        let of = |path: &PathBuf| DataDirectory {
            path: path.clone(),
            is_writable: !state.unwritable.contains(path),
        };
        self.directories.iter().map(of).collect()
    }

    /// Are damaged files left out of answers, instead of refusing those that may need them?
    pub fn answers_from_the_rest(&self) -> bool {
        self.disk_policy == DiskFailurePolicy::BestEffort
    }

    /// Does a damaged file end a start?
    pub fn refuses_damage_at_start(&self) -> bool {
        matches!(self.disk_policy, DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die)
    }

    /// Where a shard's files go: each shard to one directory, so that a partition lies in one as a whole.
    /// When that may not be written, the next.
    ///
    /// # Errors
    /// None may be written.
    pub(crate) fn write_directory(&self, shard: usize) -> Result<&Path, TableError> {
        let count = self.directories.len();
        let state = self.state();
        let in_turn = (0..count).map(|step| &self.directories[(shard + step) % count]);
        in_turn
            .into_iter()
            .find(|path| !state.unwritable.contains(*path))
            .map(PathBuf::as_path)
            .ok_or(TableError::NoDirectory)
    }

    /// Where a shard writes files of a table.
    ///
    /// # Errors
    /// Nowhere, any more.
    pub fn table_directory(&self, shard: usize, table: &Table) -> Result<PathBuf, TableError> {
        Ok(TableDirectories::table_in(self.write_directory(shard)?, table))
    }

    /// Takes in that something failed at an act of the node; tells what, if it is the disk that did.
    pub fn note(&self, act: &'static str, error: &TableError) -> Option<FaultKind> {
        let kind = FaultKind::of(error)?;
        self.record(kind, act, error);
        self.answer(kind, path_of(error));
        Some(kind)
    }

    /// Takes in that files of a table can not be written as its options ask, whatever the disk does.
    pub(crate) fn note_options(&self, act: &'static str, error: &TableError) {
        self.record(FaultKind::Options, act, error);
    }

    /// Takes in that the log of schema changes could not be written: the policy is that of manifests.
    pub fn note_schema(&self, error: &io::Error) {
        if let Some(kind) = kind_of_io(error) {
            self.record_words(kind, "change the schema", with_causes(error));
            self.answer(kind, None);
        }
    }

    /// What the policy for files makes of a failure at a path.
    fn answer(&self, kind: FaultKind, path: Option<&Path>) {
        match (kind, self.disk_policy) {
            (FaultKind::Full | FaultKind::Options, _) | (_, DiskFailurePolicy::Ignore) => {}
            (_, DiskFailurePolicy::Die) => self.ask_for(Demand::Die, "disk_failure_policy is die"),
            (FaultKind::Damage, DiskFailurePolicy::Stop | DiskFailurePolicy::BestEffort) => {}
            (FaultKind::Read, DiskFailurePolicy::BestEffort) => {}
            (_, DiskFailurePolicy::Stop) => self.ask_for(Demand::StopClients, "disk_failure_policy is stop"),
            (_, DiskFailurePolicy::StopParanoid) => {
                self.ask_for(Demand::StopClients, "disk_failure_policy is stop_paranoid");
            }
            (_, DiskFailurePolicy::BestEffort) => self.give_up_directory(path),
        }
    }

    /// Takes in that a directory could not even be opened, where the rest is to be used.
    pub fn note_lost(&self, directory: &Path, error: &TableError) {
        self.record(FaultKind::of(error).unwrap_or(FaultKind::Write), "start", error);
        tracing::error!(directory = %directory.display(), %error, "a data directory is not used: disk_failure_policy is best_effort");
        let mut state = self.state();
        state.unwritable.insert(directory.into());
        let is_last = self.directories.iter().all(|directory| state.unwritable.contains(directory));
        drop(state);
        if is_last {
            self.ask_for(Demand::StopClients, "no directory is left to write table files to");
        }
    }

    /// Takes in that the commit log failed.
    pub(crate) fn note_log(&self, error: &CommitLogError) {
        let in_words = with_causes(error);
        match error {
            CommitLogError::DiskFull { .. } => {
                return self.record_words(FaultKind::Full, "append to the log", in_words);
            }
            CommitLogError::Failed { .. } | CommitLogError::Disk { .. } => {}
            _ => return,
        }
        self.record_words(FaultKind::Log, "append to the log", in_words);
        match self.commit_policy {
            CommitFailurePolicy::Stop => self.ask_for(Demand::StopClients, "commit_failure_policy is stop"),
            CommitFailurePolicy::Die => self.ask_for(Demand::Die, "commit_failure_policy is die"),
            CommitFailurePolicy::StopCommit => {
                tracing::error!("writes are refused until a restart: commit_failure_policy is stop_commit");
            }
            CommitFailurePolicy::Ignore => {}
        }
    }

    /// Takes in what a start finds damaged of the commit log. Is it to go on without?
    pub fn note_lost_log(&self, error: &CommitLogError) -> bool {
        self.record_words(FaultKind::Log, "start", with_causes(error));
        let goes_on = self.commit_policy == CommitFailurePolicy::Ignore;
        if goes_on {
            tracing::error!(%error, "acknowledged writes may be lost: commit_failure_policy is ignore");
        }
        goes_on
    }

    /// Under `best_effort`: writes no more to where writing failed.
    fn give_up_directory(&self, path: Option<&Path>) {
        let directory =
            path.and_then(|path| self.directories.iter().find(|directory| path.starts_with(directory)));
        let Some(directory) = directory else {
            return self.ask_for(
                Demand::StopClients,
                "what failed is no directory of table files that others could replace",
            );
        };
        let mut state = self.state();
        if state.unwritable.insert(directory.clone()) {
            tracing::error!(directory = %directory.display(), "no table files are written here any more: disk_failure_policy is best_effort");
        }
        let is_last = self.directories.iter().all(|directory| state.unwritable.contains(directory));
        drop(state);
        if is_last {
            self.ask_for(Demand::StopClients, "no directory is left to write table files to");
        }
    }

    fn ask_for(&self, demand: Demand, why: &str) {
        let is_more = self.demand.change(|current| (current < demand).then_some(demand));
        match demand {
            Demand::StopClients if is_more => tracing::error!(why, "clients are not served any more"),
            Demand::Die if is_more => tracing::error!(why, "the process ends"),
            _ => {}
        }
    }

    fn record(&self, kind: FaultKind, act: &'static str, error: &TableError) {
        self.record_words(kind, act, with_causes(error));
    }

    fn record_words(&self, kind: FaultKind, act: &'static str, what: String) {
        let at_ms = self.clock.now_micros() / 1_000;
        let mut state = self.state();
        state.fault_count += 1;
        if state.faults.len() == FAULTS_KEPT {
            state.faults.pop_front();
        }
        state.faults.push_back(FaultRecord { at_ms, kind, act, what });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TableError {
    /// Is there no space, for a file or in the log?
    pub fn is_full(&self) -> bool {
        matches!(self, TableError::CommitLog(CommitLogError::DiskFull { .. }))
            || FaultKind::of(self) == Some(FaultKind::Full)
    }
}

fn kind_of_io(error: &io::Error) -> Option<FaultKind> {
    let told = told_of(error);
    let errno = told.map_or(error, |told| &told.source).raw_os_error();
    let of_process = [rustix_errno::MFILE, rustix_errno::NFILE, rustix_errno::NOMEM];
    if errno.is_some_and(|errno| of_process.contains(&errno)) {
        return None;
    }
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(FaultKind::Full),
        ErrorKind::UnexpectedEof | ErrorKind::NotFound => Some(FaultKind::Damage),
        ErrorKind::WouldBlock
        | ErrorKind::Interrupted
        | ErrorKind::InvalidInput
        | ErrorKind::AlreadyExists => None,
        _ if told.is_some_and(|told| matches!(told.act, "read" | "open" | "look at" | "list")) => {
            Some(FaultKind::Read)
        }
        _ => Some(FaultKind::Write),
    }
}

/// Numbers of errors that say something of the process, not of the disk (Linux).
mod rustix_errno {
    pub(super) const NOMEM: i32 = 12;
    pub(super) const NFILE: i32 = 23;
    pub(super) const MFILE: i32 = 24;
}

fn told_of(error: &io::Error) -> Option<&PathError> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<PathError>())
}

/// The file that an error is about.
pub(crate) fn path_of(error: &TableError) -> Option<&Path> {
    match error {
        TableError::TableFile(SstableError::Damaged { path, .. } | SstableError::Checksum { path, .. })
        | TableError::DamagedState { path, .. }
        | TableError::DamagedRecord { path, .. } => Some(path),
        TableError::Disk { source, .. } | TableError::TableFile(SstableError::Disk(source)) => {
            told_of(source).map(|told| told.path.as_path())
        }
        _ => None,
    }
}

/// An error and its causes, unless the one says the other.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use runtime::{ManualClock, path_error};

    use super::*;

    fn health(disk: DiskFailurePolicy, commit: CommitFailurePolicy) -> Health {
        let directories = vec!["/a/data".into(), "/b".into()];
        Health::new(disk, commit, directories, Arc::new(ManualClock::new(1_000)))
    }

    fn failed(act: &'static str, path: &str, errno: i32) -> TableError {
        let source = path_error(act, Path::new(path), io::Error::from_raw_os_error(errno));
        TableError::TableFile(SstableError::Disk(source))
    }

    fn damaged() -> TableError {
        TableError::TableFile(SstableError::Damaged { path: "/a/data/f".into(), offset: 1, what: "x" })
    }

    #[test]
    fn each_policy_asks_of_the_node_what_cassandra_s_does() {
        use Demand::{Die, Serve, StopClients};
        for (policy, write, read, damage) in [
            (DiskFailurePolicy::Stop, StopClients, StopClients, Serve),
            (DiskFailurePolicy::StopParanoid, StopClients, StopClients, StopClients),
            (DiskFailurePolicy::BestEffort, Serve, Serve, Serve),
            (DiskFailurePolicy::Ignore, Serve, Serve, Serve),
            (DiskFailurePolicy::Die, Die, Die, Die),
        ] {
            let asked = |error: TableError| {
                let health = health(policy, CommitFailurePolicy::Stop);
                health.note("test", &error);
                health.demand().get()
            };
            assert_eq!(asked(failed("write", "/a/data/f", 5)), write, "{policy:?}");
            assert_eq!(asked(failed("read", "/a/data/f", 5)), read, "{policy:?}");
            assert_eq!(asked(damaged()), damage, "{policy:?}");
            let health = health(policy, CommitFailurePolicy::Stop);
            health.note_schema(&path_error(
                "sync",
                Path::new("/a/schema.log"),
                io::Error::from_raw_os_error(5),
            ));
            // No other directory could replace it.
            let schema = if policy == DiskFailurePolicy::BestEffort { StopClients } else { write };
            assert_eq!(health.demand().get(), schema, "{policy:?}");
            assert_eq!(asked(failed("write", "/a/data/f", 28)), Serve, "a full disk is no failure");
            assert_eq!(asked(failed("open", "/a/data/f", 24)), Serve, "nor are too many open files");
        }
        let source = Arc::new(io::Error::from_raw_os_error(5));
        let log = CommitLogError::Failed { source };
        for (policy, demand) in [
            (CommitFailurePolicy::Stop, StopClients),
            (CommitFailurePolicy::StopCommit, Serve),
            (CommitFailurePolicy::Ignore, Serve),
            (CommitFailurePolicy::Die, Die),
        ] {
            let health = health(DiskFailurePolicy::Ignore, policy);
            health.note_log(&log);
            assert_eq!(health.demand().get(), demand, "{policy:?}");
        }
    }

    #[test]
    fn best_effort_writes_elsewhere_until_nothing_is_left() {
        let health = health(DiskFailurePolicy::BestEffort, CommitFailurePolicy::Stop);
        assert_eq!(health.write_directory(0).expect("a directory"), Path::new("/a/data"));
        assert_eq!(health.write_directory(3).expect("a directory"), Path::new("/b"));
        health.note("flush", &failed("write", "/a/data/ks/t/f", 5));
        assert_eq!(health.write_directory(0).expect("a directory"), Path::new("/b"));
        assert_eq!(health.demand().get(), Demand::Serve);
        health.note("flush", &failed("sync", "/b/ks/t/f", 30));
        assert!(matches!(health.write_directory(0), Err(TableError::NoDirectory)));
        assert_eq!(health.demand().get(), Demand::StopClients);
        assert_eq!(health.faults().1, 2);
    }

    #[test]
    fn a_failing_manifest_is_nothing_that_best_effort_can_do_without() {
        let health = health(DiskFailurePolicy::BestEffort, CommitFailurePolicy::Stop);
        health.note("flush", &failed("rename", "/a/manifest/1/shard-0.log.tmp", 5));
        assert_eq!(health.demand().get(), Demand::StopClients);
    }
}
