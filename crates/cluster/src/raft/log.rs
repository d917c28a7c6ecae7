//! The log as openraft wants it: entries in memory, and every change of them on its way to the disk.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};

use super::contents::{Contents, Record};
use super::types::{Entry, LogId, Types, Vote};
use super::writer::Writer;

/// The file is made anew when it has so many records more than are needed.
const SURPLUS_RECORD_COUNT_MAX: usize = 4096;

/// The log of a node. A clone is the same log.
#[derive(Clone)]
pub(super) struct Log(Rc<Shared>);

struct Shared {
    contents: RefCell<Contents>,
    /// Records in the file, or on their way.
    record_count: Cell<usize>,
    writer: Writer,
    applied: LastApplied,
}

/// Tells the last entry of which something was made.
pub(super) type LastApplied = Box<dyn Fn() -> Option<LogId>>;

impl Log {
    pub(super) fn new(contents: Contents, record_count: usize, writer: Writer, applied: LastApplied) -> Log {
        Log(Rc::new(Shared {
            contents: RefCell::new(contents),
            record_count: Cell::new(record_count),
            writer,
            applied,
        }))
    }

    fn take(&self, record: &Record) {
        let taken = self.0.contents.borrow_mut().take(record);
        taken.expect("openraft leaves no holes");
        self.0.record_count.set(self.0.record_count.get() + 1);
    }

    /// Makes the file anew when most of it is of no use.
    fn tidy(&self) -> io::Result<()> {
        let contents = self.0.contents.borrow();
        if self.0.record_count.get() < 2 * contents.entries.len() + SURPLUS_RECORD_COUNT_MAX {
            return Ok(());
        }
        self.0.record_count.set(contents.records().count());
        self.0.writer.rewrite(contents.clone())
    }
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> io::Result<Vec<Entry>> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        if let (Bound::Included(from), Bound::Excluded(to)) = bounds
            && from >= to
        {
            return Ok(Vec::new());
        }
        Ok(self.0.contents.borrow().entries.range(bounds).map(|(_, entry)| entry.clone()).collect())
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.0.contents.borrow().vote)
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let contents = self.0.contents.borrow();
        Ok(LogState { last_purged_log_id: contents.purged, last_log_id: contents.last_log_id() })
    }

    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let record = Record::Vote(*vote);
        self.take(&record);
        self.tidy()?;
        self.0.writer.write_durably(record).await
    }

    /// Not waited for: it saves a start some work, and is right as soon as the entries below it are.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let record = Record::Committed(committed);
        self.take(&record);
        self.0.writer.write(record)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.0.contents.borrow().committed)
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry>,
    {
        let records: Vec<Record> = entries.into_iter().map(Record::Entry).collect();
        records.iter().for_each(|record| self.take(record));
        self.0.writer.append(records, flushed)
    }

    /// What was made of an entry is not taken back. Another ring's leader may want it, which has another history, so
    /// this is an error and no broken promise: this node's part ends.
    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let index = |log_id: Option<LogId>| log_id.map(|log_id| log_id.index);
        let (last_index, applied_index) = (index(last), index((self.0.applied)()));
        if last_index < applied_index {
            let what = format!(
                "cut the log of agreement behind entry {last_index:?}: entry {applied_index:?} was applied, and \
                 whoever leads has another one in its place"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let record = Record::Truncated(last);
        self.take(&record);
        self.0.writer.write(record)
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        let record = Record::Purged(upto);
        self.take(&record);
        self.0.writer.write(record)?;
        self.tidy()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openraft::storage::RaftLogStorage;
    use runtime::{Disk, MemoryDisk, Random, Runtime, SeededRandom};

    use super::super::async_runtime::of_node;
    use super::super::log_file::LogFile;
    use super::super::types::Payload;
    use super::*;

    /// A log of five entries, of which so many were applied.
    fn log(applied_count: u64) -> Log {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        disk.create_dir_all("/node".as_ref()).expect("a directory");
        let file = LogFile::open(&disk, "/node/raft.log".as_ref()).expect("a new one").file;
        let writer = Writer::start(file, "/node/raft.snapshot".into(), &Runtime::in_memory(disk, 1));
        let id = |index| LogId::new_term_index(1, index);
        let mut contents = Contents::default();
        for index in 0..5 {
            let entry = Entry { log_id: id(index), payload: Payload::Blank };
            contents.take(&Record::Entry(entry)).expect("it is the next one");
        }
        let applied = applied_count.checked_sub(1).map(id);
        Log::new(contents, 5, writer, Box::new(move || applied))
    }

    async fn left_after_cut(applied_count: u64, last: Option<u64>) -> Result<usize, String> {
        let mut log = log(applied_count);
        let last = last.map(|index| LogId::new_term_index(1, index));
        let cut = log.truncate_after(last).await;
        let left = log.0.contents.borrow().entries.len();
        assert!(cut.is_ok() || left == 5, "nothing was cut");
        cut.map(|()| left).map_err(|error| error.to_string())
    }

    #[test]
    fn a_log_is_not_cut_below_what_was_applied() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(1));
        let cuts = async {
            assert_eq!(left_after_cut(3, Some(3)).await, Ok(4));
            assert_eq!(left_after_cut(3, Some(2)).await, Ok(3), "what was applied stays");
            assert_eq!(left_after_cut(0, None).await, Ok(0));
            for last in [None, Some(1)] {
                let refused = left_after_cut(3, last).await.expect_err("the third entry was applied");
                assert!(refused.contains("entry Some(2) was applied"), "{refused}");
            }
        };
        tokio::task::LocalSet::new().block_on(&runtime, of_node(&random, cuts));
    }
}
