//! Walks over a file whose partitions hold at most one row each.
//!
//! A [`FileCursor`] reads whatever it passes, part by part. Who merges several files wants to know first which
//! partition comes next, and whether anybody else has it. Here a partition is found as a whole, in a row with
//! the one before it; its key and deletion are told, and its row is read where that is wanted.

use std::sync::Arc;

use rows::{DeletionTime, PartitionKey, RingRange, Row};
use types::Token;

use super::chunks::{Attempt, Interrupt};
use super::items::damaged;
use super::{FileCursor, State};
use crate::single_row::SingleRowParts;
use crate::{ChunkSource, Component, SingleRowPartition, SstableError, TableFile};

/// Of the next partition, as much is fetched ahead at most.
const FETCHED_AHEAD_MAX: u64 = 2048;

/// A scan of a file of a table without clustering and static columns.
#[derive(Debug)]
pub struct SingleRowScan<S> {
    /// Finds the first partition; its chunks and its decoder serve all the others too.
    cursor: FileCursor<S>,
    file: Arc<TableFile>,
    data_bytes: u64,
    /// Bytes behind a partition that the processor is to fetch while others are looked at.
    fetched_ahead: usize,
    range: RingRange,
    /// Where the next partition begins in Data, once the first is found.
    next: Option<u64>,
    at: Option<At>,
    last_key: Vec<u8>,
    last_token: Token,
}

/// What a scan comes to.
#[derive(Debug)]
pub enum SingleRowScanStep {
    /// A partition, about which the scan can be asked.
    Partition,
    /// Nothing more.
    End,
    /// More than a row, or a chunk is lacking: for a [`FileCursor`].
    Unusual,
}

/// The partition where a scan stands.
#[derive(Debug)]
struct At {
    start: u64,
    token: Token,
    parts: SingleRowParts,
}

impl<S: ChunkSource> SingleRowScan<S> {
    pub(crate) fn new(file: Arc<TableFile>, source: S, range: RingRange) -> Self {
        let cursor = FileCursor::scan(Arc::clone(&file), source, range.clone(), rows::Slices::all());
        let data_bytes = file.chunks().component_bytes(Component::Data);
        let fetched_ahead = file.mean_partition_bytes().min(FETCHED_AHEAD_MAX) as usize;
        let (last_key, last_token) = (Vec::new(), Token(i64::MIN));
        SingleRowScan {
            cursor,
            file,
            data_bytes,
            fetched_ahead,
            range,
            next: None,
            at: None,
            last_key,
            last_token,
        }
    }

    /// Goes on to the next partition. After anything else the scan is of no use.
    ///
    /// # Errors
    /// The file is damaged, or a chunk can not be had.
    pub fn advance(&mut self) -> Result<SingleRowScanStep, SstableError> {
        match self.attempt() {
            Ok(step) => Ok(step),
            Err(Interrupt::Need(_) | Interrupt::Row(_)) => Ok(SingleRowScanStep::Unusual),
            Err(Interrupt::Failed(error)) => Err(error),
        }
    }

    /// The token of the partition.
    ///
    /// # Panics
    /// As all that is asked of a partition, when the scan stands at none.
    pub fn token(&self) -> Token {
        self.at().token
    }

    /// Bytes of all of it.
    pub fn partition_bytes(&self) -> usize {
        self.at().parts.bytes
    }

    /// Its deletion, or live.
    pub fn deletion(&self) -> DeletionTime {
        self.at().parts.deletion
    }

    /// Its key.
    pub fn key(&self) -> &[u8] {
        let at = self.at();
        &self.cursor.chunks.data_at_hand(at.start, at.parts.bytes)[at.parts.key.clone()]
    }

    /// Its key, for keeping.
    pub fn partition_key(&mut self) -> PartitionKey {
        let at = self.at.as_ref().expect("the scan stands at a partition");
        let FileCursor { chunks, items, .. } = &mut self.cursor;
        let key = &chunks.data_at_hand(at.start, at.parts.bytes)[at.parts.key.clone()];
        PartitionKey { token: at.token, bytes: items.decoder.keep(key) }
    }

    /// It, where it lies.
    #[inline]
    pub fn partition(&self) -> SingleRowPartition<'_> {
        let at = self.at();
        let bytes = self.cursor.chunks.data_at_hand(at.start, at.parts.bytes);
        SingleRowPartition::new(&self.file, &at.parts, bytes)
    }

    /// Its row, in memory shared with those before; `None` when there is none, or nothing of it is left.
    ///
    /// # Errors
    /// It is damaged.
    pub fn row(&mut self) -> Result<Option<Row>, SstableError> {
        let at = self.at.as_ref().expect("the scan stands at a partition");
        let FileCursor { chunks, items, .. } = &mut self.cursor;
        let bytes = chunks.data_at_hand(at.start, at.parts.bytes);
        let row = SingleRowPartition::new(&self.file, &at.parts, bytes).read_row(&mut items.decoder);
        row.map_err(|error| damaged(&self.file, at.start + at.parts.row_start as u64, error))
    }

    fn at(&self) -> &At {
        self.at.as_ref().expect("the scan stands at a partition")
    }

    fn attempt(&mut self) -> Attempt<SingleRowScanStep> {
        let mut start = match self.next {
            Some(next) => next,
            None => match self.find_first()? {
                Some(first) if first >= self.data_bytes => {
                    let what = "the index points behind the end of Data";
                    return Err(self.file.damaged(Component::Data, first, what).into());
                }
                first => first.unwrap_or(u64::MAX),
            },
        };
        self.at = None;
        while start < self.data_bytes {
            let Some(parts) = self.parts_at(start)? else { return Ok(SingleRowScanStep::Unusual) };
            let next = start + parts.bytes as u64;
            self.next = Some(next);
            self.cursor.chunks.fetch_data_ahead(next, self.fetched_ahead);
            let key = &self.cursor.chunks.data_at_hand(start, parts.bytes)[parts.key.clone()];
            let token = Token::of(key);
            if (token, key) <= (self.last_token, &self.last_key[..]) && !self.last_key.is_empty() {
                return Err(self.file.damaged(Component::Data, start, "partition keys do not rise").into());
            }
            self.last_token = token;
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            if self.range.end.is_before_parts(token, key) {
                break;
            }
            // What the index points to may be before the range.
            if self.range.start.is_before_parts(token, key) {
                self.at = Some(At { start, token, parts });
                return Ok(SingleRowScanStep::Partition);
            }
            start += parts.bytes as u64;
        }
        self.next = Some(u64::MAX);
        Ok(SingleRowScanStep::End)
    }

    /// Where in Data the first partition that may be in the range begins, if there is one.
    fn find_first(&mut self) -> Attempt<Option<u64>> {
        loop {
            match &self.cursor.state {
                State::Open(place) => return Ok(Some(place.start)),
                State::End => return Ok(None),
                _ => _ = self.cursor.advance()?,
            }
        }
    }

    /// The parts of the partition that begins there; `None` when there is more than a row in it.
    fn parts_at(&mut self, start: u64) -> Attempt<Option<SingleRowParts>> {
        let FileCursor { chunks, items, .. } = &mut self.cursor;
        let (layout, version) = (self.file.layout(), self.file.descriptor().version);
        if !layout.has_single_rows() {
            return Ok(None);
        }
        let decoder = &mut items.decoder;
        chunks.parse(Component::Data, start, |bytes| SingleRowParts::parse(version, layout, decoder, bytes))
    }
}
