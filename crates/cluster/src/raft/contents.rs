//! What a node's log says: entries, its vote, how far it was committed and purged. Pure: nothing here knows a disk.

use std::collections::BTreeMap;

use bytes::BytesMut;

use super::bytes_of::{BadBytes, Reader, put_entry, put_log_id, put_optional, put_vote};
use super::types::{Entry, LogId, Vote};

/// A change of the log: what one record of its file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// An entry comes behind the last one.
    Entry(Entry),
    /// The vote is this from now on.
    Vote(Vote),
    /// Entries behind this one are gone: another leader's take their place.
    Truncated(Option<LogId>),
    /// Entries up to this one are gone: a snapshot has what they made.
    Purged(LogId),
    /// So far the log is known to be agreed on.
    Committed(Option<LogId>),
}

impl Record {
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Record::Entry(_) => 1,
            Record::Vote(_) => 2,
            Record::Truncated(_) => 3,
            Record::Purged(_) => 4,
            Record::Committed(_) => 5,
        }
    }

    pub(crate) fn put(&self, out: &mut BytesMut) {
        match self {
            Record::Entry(entry) => put_entry(out, entry),
            Record::Vote(vote) => put_vote(out, vote),
            Record::Purged(upto) => put_log_id(out, *upto),
            Record::Truncated(log_id) | Record::Committed(log_id) => put_optional(out, *log_id, put_log_id),
        }
    }

    pub(crate) fn read(kind: u32, payload: &[u8]) -> Result<Record, BadBytes> {
        let reader = &mut Reader(payload);
        let record = match kind {
            1 => Record::Entry(reader.entry()?),
            2 => Record::Vote(reader.vote()?),
            3 => Record::Truncated(reader.optional(Reader::log_id)?),
            4 => Record::Purged(reader.log_id()?),
            5 => Record::Committed(reader.optional(Reader::log_id)?),
            _ => return Err(BadBytes("a kind of record")),
        };
        reader.end()?;
        Ok(record)
    }
}

/// What all records together say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Contents {
    /// Without a hole; the first comes behind `purged`.
    pub(crate) entries: BTreeMap<u64, Entry>,
    pub(crate) vote: Option<Vote>,
    pub(crate) purged: Option<LogId>,
    pub(crate) committed: Option<LogId>,
}

impl Contents {
    /// The id of the last entry, also when it is purged.
    pub(crate) fn last_log_id(&self) -> Option<LogId> {
        self.entries.values().next_back().map(|entry| entry.log_id).or(self.purged)
    }

    /// Takes a change.
    ///
    /// # Errors
    /// It does not fit what was before it: damage in what is read, a mistake in what is written.
    pub(crate) fn take(&mut self, record: &Record) -> Result<(), BadBytes> {
        match record {
            Record::Entry(entry) => {
                let is_next = match self.last_log_id() {
                    Some(last) => entry.log_id.index == last.index + 1 && entry.log_id > last,
                    None => entry.log_id.index == 0,
                };
                if !is_next {
                    return Err(BadBytes("the place of an entry"));
                }
                self.entries.insert(entry.log_id.index, entry.clone());
            }
            Record::Vote(vote) => self.vote = Some(*vote),
            Record::Truncated(after) => {
                _ = self.entries.split_off(&after.map_or(0, |log_id| log_id.index.saturating_add(1)));
            }
            Record::Purged(upto) => {
                self.entries = self.entries.split_off(&upto.index.saturating_add(1));
                self.purged = Some(*upto);
            }
            Record::Committed(log_id) => self.committed = *log_id,
        }
        Ok(())
    }

    /// The fewest records that say the same.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let purged = self.purged.map(Record::Purged).into_iter();
        let entries = self.entries.values().cloned().map(Record::Entry);
        let vote = self.vote.map(Record::Vote).into_iter();
        let committed = self.committed.map(|log_id| Record::Committed(Some(log_id))).into_iter();
        purged.chain(entries).chain(vote).chain(committed)
    }
}
