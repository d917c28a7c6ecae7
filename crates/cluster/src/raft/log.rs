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
}

impl Log {
    pub(super) fn new(contents: Contents, record_count: usize, writer: Writer) -> Log {
        Log(Rc::new(Shared {
            contents: RefCell::new(contents),
            record_count: Cell::new(record_count),
            writer,
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

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
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
