//! The log as a shard holds it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::{Clock, Disk, Io, Runtime};
use tokio::sync::Notify;

use crate::driver;
use crate::error::CommitLogError;
use crate::format::{
    HEADER_BYTES, Kind, MARKER_BYTES, RESERVED_BYTES, SegmentName, encode_frame, frame_bytes,
    record_bytes_max,
};
use crate::group::{Group, Synced};
use crate::options::CommitLogOptions;
use crate::position::LogPosition;
use crate::replay::{list_segments, seal_last_segment};
use crate::roster::{Ids, Roster, entered_ids};
use crate::segment_writer::{Chunk, SegmentWriter};
use crate::spares::Spares;

/// Pending bytes at which they are written out, even if nobody waits for a sync.
pub(crate) const WRITE_OUT_BYTES: usize = 256 * 1024;
/// Room in a buffer for frames: what is written out, and the frame that fills it.
const CHUNK_BYTES: usize = WRITE_OUT_BYTES + 64 * 1024;
/// Buffers that are kept while they are not needed.
const SPARES_MAX: usize = 8;
/// Failures whose losses are remembered: for records whose writers ask late.
const LOST_MAX: usize = 64;

const _: () =
    assert!(CHUNK_BYTES > WRITE_OUT_BYTES, "a buffer holds what is written out, and one frame more");

/// One stream's log. Lives on its shard's thread, inside a `LocalSet`.
///
/// Dropping it without [`CommitLog::close`] is what a crash of the process looks like to the next
/// start: everything that was acknowledged is there.
#[derive(Debug)]
pub struct CommitLog {
    pub(crate) shared: Rc<Shared>,
    pub(crate) spares: Arc<Spares>,
    pub(crate) roster: Arc<Roster>,
}

/// What a log did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records appended.
    pub record_count: u64,
    /// Their payload bytes.
    pub record_bytes: u64,
    /// Syncs that completed; each served all who waited.
    pub sync_count: u64,
    /// Segment files that exist.
    pub segment_count: u64,
    /// The disk space these take.
    pub retained_bytes: u64,
    /// Of these, segments that are only held to be read again ([`CommitLog::hold_from`]).
    pub held_count: u64,
    /// The disk space these take.
    pub held_bytes: u64,
    /// Segment files beside these that are kept to be written again.
    pub spare_count: u64,
    /// Bytes that are framed and not yet written.
    pub pending_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: RefCell<State>,
    /// Wakes the driver.
    pub(crate) wake: Notify,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) io: Io,
    pub(crate) directory: PathBuf,
    pub(crate) stream: u32,
    pub(crate) options: CommitLogOptions,
    pub(crate) abandoned: Cell<bool>,
    pub(crate) listener: Listener,
}

#[derive(Debug)]
pub(crate) struct State {
    /// Framed and not yet given to the disk, in order.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) pending_bytes: usize,
    /// Where the next frame goes. Invariant: the last chunk, if any, ends there.
    pub(crate) next: LogPosition,
    /// Everything below is durable. Invariant: `synced <= next`.
    pub(crate) synced: LogPosition,
    /// Who waits for the records since the last sync began.
    pub(crate) group: Rc<Group>,
    pub(crate) group_record_count: u64,
    /// When the group's first record came.
    pub(crate) group_since: Option<Duration>,
    pub(crate) in_flight: Option<InFlight>,
    /// Whether bytes were written whose sync has not begun.
    pub(crate) written_unsynced: bool,
    pub(crate) sync_wanted: bool,
    pub(crate) closing: Option<Rc<Group>>,
    /// Why nothing is taken any more.
    pub(crate) stopped: Option<CommitLogError>,
    /// Why nothing is taken at the moment.
    pub(crate) stalled: Option<Arc<io::Error>>,
    /// The files that exist, with their sizes.
    pub(crate) segments: BTreeMap<u64, u64>,
    /// Emptied buffers to use again: memory that was never touched is dear, the kernel clears it first.
    spares: Vec<Vec<u8>>,
    /// Nobody but who reads again needs what is below.
    pub(crate) needed_from: LogPosition,
    /// What is kept to be read again.
    pub(crate) held_from: LogPosition,
    /// The same of what the next run needs as well.
    pub(crate) kept_from: LogPosition,
    /// Segments before this one were given up, or are missing.
    pub(crate) gone_below: u64,
    /// From here on nothing was lost by a failure.
    pub(crate) intact_from: LogPosition,
    /// Records between these places were not durable when the log failed, and never will be.
    pub(crate) lost: Vec<(LogPosition, LogPosition, CommitLogError)>,
    pub(crate) statistics: Statistics,
}

/// What the log's owner wants to know at once, whoever is writing.
#[derive(Clone, Debug)]
pub enum LogEvent {
    /// A write or a sync failed. Nothing is taken any more, or not for now.
    Failed(CommitLogError),
    /// After a failure the log takes records again. What was in memory alone when it failed is in no segment.
    GoesOn,
    /// There is no room for a segment. Nothing is taken until there is.
    Full(CommitLogError),
    /// There is room again.
    HasRoom,
}

type Tell = Box<dyn Fn(LogEvent)>;

/// Whom to tell.
#[derive(Default)]
pub(crate) struct Listener(RefCell<Option<Tell>>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Shared {
    pub(crate) fn tell(&self, event: LogEvent) {
        if let Some(tell) = &*self.listener.0.borrow() {
            tell(event);
        }
    }
}

/// The sync that is running.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) group: Rc<Group>,
    pub(crate) end: LogPosition,
    pub(crate) since: Option<Duration>,
}

impl CommitLog {
    /// Opens a stream for appending. Earlier segments are kept until they are discarded; the last of
    /// them gets its end frame if a crash left it without. What is missing is not missed any more, and what
    /// was torn is gone: to know of it, replay first. Blocks on the disk: meant for the start of a node.
    ///
    /// # Panics
    /// Outside a tokio `LocalSet`.
    pub fn open(
        runtime: &Runtime,
        directory: &Path,
        stream: u32,
        options: CommitLogOptions,
    ) -> Result<CommitLog, CommitLogError> {
        options.check()?;
        runtime.disk.create_dir_all(directory).map_err(CommitLogError::disk("open"))?;
        let (last, segments) = seal_stream(&*runtime.disk, directory, stream)?;
        let first = last.max(options.segment_above) + 1;
        let ids: Ids = segments.keys().copied().collect();
        let roster = Arc::new(Roster::open(&runtime.disk, directory, stream, ids)?);
        let shared = Rc::new(Shared {
            state: RefCell::new(State::new(first, segments)),
            wake: Notify::new(),
            clock: Arc::clone(&runtime.clock),
            disk: Arc::clone(&runtime.disk),
            io: runtime.io.clone(),
            directory: directory.to_owned(),
            stream,
            options,
            abandoned: Cell::new(false),
            listener: Listener::default(),
        });
        let disk = Arc::clone(&runtime.disk);
        let count_max = options.spare_segments_max;
        let spares = Spares::find(disk, directory, stream, options.segment_bytes, count_max);
        let spares = Arc::new(spares.map_err(CommitLogError::disk("open"))?);
        let writer = SegmentWriter {
            disk: Arc::clone(&runtime.disk),
            directory: directory.to_owned(),
            stream,
            segment_bytes: options.segment_bytes,
            spares: Arc::clone(&spares),
            roster: Arc::clone(&roster),
            unentered: None,
            file: None,
            written_to: LogPosition::START,
        };
        // Without it writers would wait for ever, and what it has half written is for a start to judge.
        let (failsafe, driving) = (runtime.failsafe.clone(), driver::drive(Rc::clone(&shared), writer));
        runtime::spawn_local("commit log", async move {
            failsafe.guarded("the commit log", driving).await;
        });
        Ok(CommitLog { shared, spares, roster })
    }

    /// Has the owner told of what it should know at once. Called on the owner's thread, between its tasks.
    pub fn listen(&self, tell: impl Fn(LogEvent) + 'static) {
        *self.shared.listener.0.borrow_mut() = Some(Box::new(tell));
    }

    /// Appends a record and tells where. It is durable once [`CommitLog::synced`] says so.
    pub fn append(&self, record: &[u8]) -> Result<LogPosition, CommitLogError> {
        self.append_parts(&[record])
    }

    /// As [`CommitLog::append`], for a record that lies in several pieces.
    pub fn append_parts(&self, parts: &[&[u8]]) -> Result<LogPosition, CommitLogError> {
        let record_bytes = parts.iter().map(|part| part.len()).sum();
        if record_bytes > self.record_bytes_max() {
            let record_bytes_max = self.record_bytes_max();
            return Err(CommitLogError::RecordTooLarge { record_bytes, record_bytes_max });
        }
        let mut state = self.shared.state.borrow_mut();
        state.check_open()?;
        let segment_bytes = self.shared.options.segment_bytes as usize;
        // Before the segment ends: its end is pending, too, and the driver may sleep.
        let was_settled = state.is_settled();
        if !state.fits(record_bytes, segment_bytes) {
            state.roll(self.shared.stream);
        }
        let position = state.next;
        state.push_frame(self.shared.stream, Kind::Record, parts);
        let end = state.next.offset as usize;
        assert!(end + RESERVED_BYTES <= segment_bytes, "a record leaves room for a marker and the end");
        state.group_record_count += 1;
        state.statistics.record_count += 1;
        state.statistics.record_bytes += record_bytes as u64;
        if state.group_since.is_none() {
            state.group_since = Some(self.shared.clock.elapsed());
        }
        if was_settled || state.pending_bytes >= WRITE_OUT_BYTES {
            self.shared.wake.notify_one();
        }
        Ok(position)
    }

    /// Why a record is not durable though later ones are, and may be in no file of a table yet: the log failed and
    /// began anew, and has not been told since that it is not needed ([`CommitLog::discard_below`]).
    pub fn loss(&self) -> Option<CommitLogError> {
        self.shared.state.borrow().lost.last().map(|(_, _, error)| error.clone())
    }

    /// Every record below is on the disk, or lost ([`CommitLog::loss`]).
    pub fn synced_to(&self) -> LogPosition {
        self.shared.state.borrow().synced
    }

    /// Where the next record will be, or just before: every record so far is below.
    pub fn end(&self) -> LogPosition {
        self.shared.state.borrow().next
    }

    /// The longest record that fits.
    pub fn record_bytes_max(&self) -> usize {
        record_bytes_max(self.shared.options.segment_bytes)
    }

    /// Has the stream a roster of its segments? On a full disk it gets one when there is room for a segment. From then
    /// on its owner should [require](crate::Replay::require_rosters) it.
    pub fn has_roster(&self) -> bool {
        self.roster.is_written()
    }

    /// Makes everything durable, writes the segment's end, and takes nothing more.
    pub async fn close(&self) -> Result<(), CommitLogError> {
        let closing = {
            let mut state = self.shared.state.borrow_mut();
            match (&state.stopped, &state.closing) {
                (Some(CommitLogError::Closed), _) => return Ok(()),
                (Some(stopped), _) => return Err(stopped.clone()),
                (None, Some(closing)) => Rc::clone(closing),
                (None, None) => Rc::clone(state.closing.insert(Rc::new(Group::default()))),
            }
        };
        self.shared.wake.notify_one();
        Synced::waiting(closing).await
    }

    /// What the log did since it was opened.
    pub fn statistics(&self) -> Statistics {
        let state = self.shared.state.borrow();
        let held = || state.segments.range(..state.unneeded_below()).map(|(_, bytes)| *bytes);
        Statistics {
            segment_count: state.segments.len() as u64,
            retained_bytes: state.segments.values().sum(),
            held_count: held().count() as u64,
            held_bytes: held().sum(),
            spare_count: self.spares.count() as u64,
            pending_bytes: state.pending_bytes as u64,
            ..state.statistics
        }
    }
}

impl Drop for CommitLog {
    fn drop(&mut self) {
        self.shared.abandoned.set(true);
        self.shared.wake.notify_one();
    }
}

/// Ends a stream's last segment, if a crash or a failure left it without an end. Gives the greatest id there
/// was, also of what is missing, and the segments with their sizes.
pub(crate) fn seal_stream(
    disk: &dyn Disk,
    directory: &Path,
    stream: u32,
) -> Result<(u64, BTreeMap<u64, u64>), CommitLogError> {
    let mut segments = BTreeMap::new();
    for (name, file_bytes) in list_segments(disk, directory)? {
        if name.stream == stream {
            segments.insert(name.id, file_bytes);
        }
    }
    let last_entered = entered_ids(disk, directory, stream)?.last().copied().unwrap_or(0);
    let Some(id) = segments.last_key_value().map(|(id, _)| *id) else { return Ok((last_entered, segments)) };
    match seal_last_segment(disk, directory, SegmentName { stream, id })?.file_bytes {
        Some(file_bytes) => _ = segments.insert(id, file_bytes),
        None => _ = segments.remove(&id),
    }
    Ok((id.max(last_entered), segments))
}

impl State {
    fn new(first_segment: u64, segments: BTreeMap<u64, u64>) -> State {
        let next = LogPosition { segment: first_segment, offset: HEADER_BYTES as u32 };
        let gone_below = segments.first_key_value().map_or(0, |(id, _)| *id);
        State {
            chunks: Vec::new(),
            pending_bytes: 0,
            next,
            synced: next,
            group: Rc::default(),
            group_record_count: 0,
            group_since: None,
            in_flight: None,
            written_unsynced: false,
            sync_wanted: false,
            closing: None,
            stopped: None,
            stalled: None,
            segments,
            spares: Vec::new(),
            needed_from: LogPosition::START,
            held_from: LogPosition::END,
            kept_from: LogPosition::END,
            gone_below,
            intact_from: LogPosition::START,
            lost: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), CommitLogError> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        if self.closing.is_some() {
            return Err(CommitLogError::Closed);
        }
        match &self.stalled {
            Some(source) => Err(CommitLogError::DiskFull { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    /// Nobody needs segments below this one but who reads again. The greatest id stays on disk, so that ids never
    /// repeat.
    pub(crate) fn unneeded_below(&self) -> u64 {
        let last = self.segments.last_key_value().map_or(0, |(id, _)| *id);
        self.needed_from.segment.min(last).min(self.next.segment)
    }

    /// Is there room in the active segment for a record, and behind it for a marker and the end?
    pub(crate) fn fits(&self, record_bytes: usize, segment_bytes: usize) -> bool {
        self.next.offset as usize + frame_bytes(record_bytes) + RESERVED_BYTES <= segment_bytes
    }

    /// Why a record is not durable though later ones may be.
    pub(crate) fn loss_of(&self, position: LogPosition) -> Option<CommitLogError> {
        let (_, _, error) = self.lost.iter().find(|(from, to, _)| (*from..*to).contains(&position))?;
        Some(error.clone())
    }

    /// Begins anew after a failure, behind the segments that are there.
    pub(crate) fn begin_anew(&mut self, last: u64, segments: BTreeMap<u64, u64>) {
        let segment = last.max(self.next.segment) + 1;
        let next = LogPosition { segment, offset: HEADER_BYTES as u32 };
        assert!(self.next < next && self.synced < next, "positions do not repeat after a failure");
        if let Some(error) = self.stopped.take() {
            if self.lost.len() == LOST_MAX {
                self.lost.remove(0);
            }
            self.lost.push((self.synced, next, error));
        }
        let State { statistics, needed_from, held_from, kept_from, gone_below, .. } = *self;
        let (spares, lost) = (std::mem::take(&mut self.spares), std::mem::take(&mut self.lost));
        let anew = State::new(segment, segments);
        *self = State {
            spares,
            lost,
            statistics,
            needed_from,
            held_from,
            kept_from,
            gone_below,
            intact_from: next,
            ..anew
        };
    }

    /// Whether all that was framed is written and synced, or being so.
    pub(crate) fn is_settled(&self) -> bool {
        self.chunks.is_empty() && !self.written_unsynced
    }

    /// Frames a payload at the end; the caller knows that it fits.
    pub(crate) fn push_frame(&mut self, stream: u32, kind: Kind, parts: &[&[u8]]) {
        let LogPosition { segment, offset } = self.next;
        let is_full = |chunk: &Chunk| chunk.segment != segment || chunk.bytes.len() >= WRITE_OUT_BYTES;
        if self.chunks.last().is_none_or(is_full) {
            let bytes = self.spares.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
            self.chunks.push(Chunk { segment, offset, bytes, seals: false });
        }
        let Some(chunk) = self.chunks.last_mut() else { return };
        let before = chunk.bytes.len();
        assert_eq!(chunk.offset as usize + before, offset as usize, "the last chunk ends at the next frame");
        encode_frame(&mut chunk.bytes, SegmentName { stream, id: segment }, offset, kind, parts);
        let framed_bytes = chunk.bytes.len() - before;
        chunk.seals = kind == Kind::End;
        self.pending_bytes += framed_bytes;
        self.next.offset += framed_bytes as u32;
    }

    /// Keeps buffers for the next frames: as many as one write and one in the making need.
    pub(crate) fn keep(&mut self, buffers: Vec<Vec<u8>>) {
        let usual = buffers.into_iter().filter(|buffer| (1..=2 * CHUNK_BYTES).contains(&buffer.capacity()));
        self.spares.extend(usual);
        self.spares.truncate(SPARES_MAX);
    }

    /// Ends the active segment; the next frame goes to a new one.
    pub(crate) fn roll(&mut self, stream: u32) {
        self.push_frame(stream, Kind::End, &[&self.synced_offset().to_le_bytes()]);
        self.next = LogPosition { segment: self.next.segment + 1, offset: HEADER_BYTES as u32 };
    }

    /// Says in the segment how much of it is durable, if there is room to say it.
    pub(crate) fn push_marker(&mut self, stream: u32, segment_bytes: u32) {
        if self.next.offset as usize + 2 * MARKER_BYTES <= segment_bytes as usize {
            self.push_frame(stream, Kind::Synced, &[&self.synced_offset().to_le_bytes()]);
        }
    }

    /// Up to where the active segment is durable.
    fn synced_offset(&self) -> u32 {
        assert!(self.synced <= self.next, "what is durable was appended");
        if self.synced.segment == self.next.segment { self.synced.offset } else { HEADER_BYTES as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut state = State::new(1, BTreeMap::new());
        state.push_frame(0, Kind::Record, &[b"one"]);
        state
    }

    #[test]
    #[should_panic(expected = "the last chunk ends at the next frame")]
    fn a_gap_between_frames_ends_the_program() {
        let mut state = state();
        state.next.offset += 4;
        state.push_frame(0, Kind::Record, &[b"two"]);
    }

    #[test]
    #[should_panic(expected = "what is durable was appended")]
    fn a_marker_that_would_call_durable_what_is_not_there_ends_the_program() {
        let mut state = state();
        state.synced = LogPosition { segment: 1, offset: 4000 };
        state.push_marker(0, 8192);
    }

    #[test]
    #[should_panic(expected = "positions do not repeat")]
    fn a_log_that_would_begin_anew_before_its_end_ends_the_program() {
        let mut state = state();
        state.synced = LogPosition::END;
        state.begin_anew(1, BTreeMap::new());
    }
}
