//! What was appended is read again while the log goes on: other nodes have missed it, and are sent it from here.
//!
//! ```text
//!   segments   │ 4 │ 5 │ 6 │ 7 │ 8 …
//!                    ▲       ▲
//!            held from       needed from: what is below is in files of tables
//! ```
//!
//! Segments between the two are *held*: they are kept for whoever reads them again, and are in nobody's way.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Disk, OpenMode};

use crate::CommitLog;
use crate::error::CommitLogError;
use crate::format::SegmentName;
use crate::log::Shared;
use crate::position::LogPosition;
use crate::replay::Replayed;
use crate::segment_reader::{Item, SegmentReader, Standing};

impl CommitLog {
    /// Keeps what is appended from there on until another place is given, whatever is
    /// [given up](CommitLog::discard_below) meanwhile. What is gone already stays so.
    pub fn hold_from(&self, position: LogPosition) {
        self.shared.state.borrow_mut().held_from = position;
    }

    /// The same of what the next run has to read again: its owner says so also when it lets go of all that is held.
    pub fn keep_from(&self, position: LogPosition) {
        self.shared.state.borrow_mut().kept_from = position;
    }

    /// What was appended before can not be read again: its segments are gone.
    pub fn begins(&self) -> LogPosition {
        LogPosition { segment: self.shared.state.borrow().gone_below, offset: 0 }
    }

    /// Lets go of segments that nobody needs and that are not held any more; gives how many.
    ///
    /// # Errors
    /// As [`CommitLog::discard_below`].
    pub async fn discard_unheld(&self) -> Result<usize, CommitLogError> {
        let needed_from = self.shared.state.borrow().needed_from;
        self.discard_below(needed_from).await
    }

    /// Begins to read all that was appended from there on until now; `None` when some of it is not there any more, be
    /// it given up or lost. Returns when all of it is on the disk.
    ///
    /// # Errors
    /// It can not be brought to the disk.
    pub async fn reread(&self, from: LogPosition) -> Result<Option<Reread>, CommitLogError> {
        let end = self.end();
        self.sync().await?;
        let state = self.shared.state.borrow();
        if from < state.intact_from || from.segment < state.gone_below {
            return Ok(None);
        }
        // Without a gap, but for numbers of segments that had nothing in them when a run ended.
        let segments = state.segments.range(from.segment..=end.segment).map(|(id, _)| *id).collect();
        Ok(Some(Reread { shared: Rc::clone(&self.shared), from, end, segments, reading: None }))
    }
}

/// Records that are read again, in their order.
#[derive(Debug)]
pub struct Reread {
    shared: Rc<Shared>,
    from: LogPosition,
    /// All below is on the disk.
    end: LogPosition,
    /// Still to be read.
    segments: VecDeque<u64>,
    reading: Option<(u64, SegmentReader)>,
}

impl Reread {
    /// The next record; `None` behind the last one.
    ///
    /// # Errors
    /// The disk fails, or what it gives is damaged: nothing is told of what follows.
    pub async fn next(&mut self) -> Result<Option<Replayed>, CommitLogError> {
        loop {
            let Some((id, reader)) = &mut self.reading else {
                let Some(id) = self.segments.pop_front() else { return Ok(None) };
                self.reading = Some((id, self.read_segment(id).await?));
                continue;
            };
            match reader.next() {
                None => self.reading = None,
                Some(Item::Record { offset, version, payload }) => {
                    let position = LogPosition { segment: *id, offset };
                    if (self.from..self.end).contains(&position) {
                        return Ok(Some(Replayed { stream: self.shared.stream, position, version, payload }));
                    }
                }
                Some(Item::Damage(error)) => return Err(error),
                Some(Item::Torn { offset, .. }) => {
                    let (id, offset) = (*id, u64::from(offset));
                    let path = self.name(id).path(&self.shared.directory);
                    return Err(CommitLogError::Truncated { path, offset });
                }
            }
        }
    }

    fn name(&self, id: u64) -> SegmentName {
        SegmentName { stream: self.shared.stream, id }
    }

    async fn read_segment(&self, id: u64) -> Result<SegmentReader, CommitLogError> {
        let (name, path) = (self.name(id), self.name(id).path(&self.shared.directory));
        // Behind that the last one is being written.
        let is_last = id == self.end.segment;
        let bytes_max = if is_last { self.end.offset } else { u32::MAX };
        let (disk, file) = (Arc::clone(&self.shared.disk), path.clone());
        let read = self.shared.io.run(move || read_start(&*disk, &file, bytes_max)).await;
        let segment = read.map_err(CommitLogError::disk("read a segment again"))?;
        Ok(SegmentReader::new(segment, name, path, Standing { is_last, is_entered: false }))
    }
}

/// The first bytes of a file, so many if it has them.
fn read_start(disk: &dyn Disk, path: &std::path::Path, bytes_max: u32) -> std::io::Result<Bytes> {
    let file = disk.open(path, OpenMode::Read)?;
    let byte_count = file.len()?.min(u64::from(bytes_max));
    let mut bytes = vec![0; usize::try_from(byte_count).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.into())
}
