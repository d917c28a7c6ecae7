//! The task that takes pending bytes to the disk: one write at a time, and beside it at most one sync.
//!
//! ```text
//!   write ──► sync ─ ─ ─ ─ ─ ─ ─ ─ ─► tell its group
//!                write   write          (what came meanwhile; the next sync covers it)
//! ```
//!
//! A disk may take longer for a sync than the period of `periodic`. What is appended meanwhile is
//! written out all the same, so that the end of the process alone loses no more than a period.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::CommitLogError;
use crate::format::Kind;
use crate::group::Group;
use crate::log::{InFlight, LogEvent, Shared, State, WRITE_OUT_BYTES, seal_stream};
use crate::options::SyncMode;
use crate::position::LogPosition;
use crate::segment_writer::{Chunk, Outcome, SegmentWriter};

/// After so long without a writer, what is pending is synced: mostly the marker that tells replay
/// that the last group was durable.
const SETTLE_AFTER: Duration = Duration::from_millis(20);
/// How often a full or failed disk is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Sync,
    Close,
    Abandon,
}

/// Whether the log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Continue,
    /// The disk is full.
    Stalled,
    /// The log is stopped.
    Stop,
}

/// Runs until the log is closed, abandoned or broken.
pub(crate) async fn drive(shared: Rc<Shared>, mut writer: SegmentWriter) {
    writer = prepare(&shared, writer).await;
    let mut syncing: Option<Syncing> = None;
    loop {
        let step = tokio::select! {
            biased;
            (taken, synced) = finished(&mut syncing) => {
                syncing = None;
                if end_sync(&shared, taken, synced) == Flow::Stop {
                    match go_on(&shared, writer).await {
                        Some(anew) => writer = anew,
                        None => return,
                    }
                }
                continue;
            }
            step = next_step(&shared) => step,
        };
        if step == Step::Sync
            && let SyncMode::Group { window } = shared.options.sync
            && !window.is_zero()
        {
            tokio::time::sleep(window).await;
        }
        let (flow, taken);
        (writer, flow, taken) = match step {
            Step::Abandon => return,
            Step::Close => return close(&shared, writer).await,
            Step::Write | Step::Sync => write_out(&shared, writer, step == Step::Sync).await,
        };
        match flow {
            Flow::Continue => {
                if let Some(taken) = taken {
                    syncing = Some(start_sync(&shared, &writer, taken));
                }
            }
            Flow::Stop => {
                // What a sync under way may still say is of no use: who waits for it was told.
                syncing = None;
                match go_on(&shared, writer).await {
                    Some(anew) => writer = anew,
                    None => return,
                }
            }
            Flow::Stalled => {
                tokio::time::sleep(RETRY_AFTER).await;
                shared.state.borrow_mut().sync_wanted = true;
            }
        }
    }
}

/// After a failure, where the log is to go on: tries to end the failed segment as the next start would,
/// until that works, and begins a new one. `None` when it is over.
async fn go_on(shared: &Shared, mut writer: SegmentWriter) -> Option<SegmentWriter> {
    if !shared.options.goes_on_after_failure {
        return None;
    }
    writer.file = None;
    loop {
        tokio::time::sleep(RETRY_AFTER).await;
        if shared.abandoned.get() || shared.state.borrow().closing.is_some() {
            return None;
        }
        let (disk, directory, stream) = (Arc::clone(&shared.disk), shared.directory.clone(), shared.stream);
        match shared.io.run(move || seal_stream(&*disk, &directory, stream)).await {
            Ok((last, segments)) => {
                shared.state.borrow_mut().begin_anew(last, segments);
                tracing::warn!(stream, "commit log takes records again after a failure");
                shared.tell(LogEvent::GoesOn);
                return Some(writer);
            }
            Err(error) => tracing::debug!(stream, %error, "commit log can not go on yet"),
        }
    }
}

/// Creates the first segment ahead of the first record: on a busy disk that may take longer than the
/// period of `periodic`, and what is appended meanwhile is in memory alone.
async fn prepare(shared: &Shared, mut writer: SegmentWriter) -> SegmentWriter {
    let segment = {
        let state = shared.state.borrow();
        state.chunks.first().map_or(state.next.segment, |chunk| chunk.segment)
    };
    let writer = shared
        .io
        .run(move || {
            writer.prepare(segment);
            writer
        })
        .await;
    if writer.file.is_some() {
        shared.state.borrow_mut().segments.insert(segment, u64::from(shared.options.segment_bytes));
    }
    writer
}

/// Waits until there is something to do.
async fn next_step(shared: &Shared) -> Step {
    let delay = match shared.options.sync {
        SyncMode::Periodic { period } => period,
        SyncMode::Group { .. } | SyncMode::Batch => SETTLE_AFTER,
    };
    let mut deadline = None;
    loop {
        {
            let state = shared.state.borrow();
            if shared.abandoned.get() {
                return Step::Abandon;
            }
            let is_syncing = state.in_flight.is_some();
            if state.closing.is_some() && !is_syncing {
                return Step::Close;
            }
            if state.sync_wanted && !is_syncing {
                return Step::Sync;
            }
            if state.pending_bytes >= WRITE_OUT_BYTES {
                return Step::Write;
            }
            if state.is_settled() || (is_syncing && state.chunks.is_empty()) {
                deadline = None;
            } else if deadline.is_none() {
                // Written out early, the period still counts from the first record.
                let waited = state
                    .group_since
                    .map_or(Duration::ZERO, |since| shared.clock.elapsed().saturating_sub(since));
                deadline = Some(Instant::now() + delay.saturating_sub(waited));
            }
        }
        match deadline {
            None => shared.wake.notified().await,
            Some(deadline) => {
                if tokio::time::timeout_at(deadline, shared.wake.notified()).await.is_err() {
                    let is_syncing = shared.state.borrow().in_flight.is_some();
                    return if is_syncing { Step::Write } else { Step::Sync };
                }
            }
        }
    }
}

/// What a write takes out of the log's state.
struct Taken {
    chunks: Vec<Chunk>,
    group: Rc<Group>,
    record_count: u64,
    end: LogPosition,
}

/// A sync on its way, and what it makes durable.
struct Syncing {
    job: Pin<Box<dyn Future<Output = io::Result<()>>>>,
    taken: Option<Taken>,
}

/// Resolves when the sync is over; never, if there is none.
async fn finished(syncing: &mut Option<Syncing>) -> (Taken, io::Result<()>) {
    let Some(syncing) = syncing else { return pending().await };
    let outcome = syncing.job.as_mut().await;
    match syncing.taken.take() {
        Some(taken) => (taken, outcome),
        None => pending().await,
    }
}

/// Makes durable what was written; those who wait are told by [`end_sync`].
fn start_sync(shared: &Shared, writer: &SegmentWriter, taken: Taken) -> Syncing {
    let job: Pin<Box<dyn Future<Output = io::Result<()>>>> = match &writer.file {
        Some(file) => {
            let (file, io) = (Arc::clone(file), shared.io.clone());
            Box::pin(async move { io.run(move || file.sync_data()).await })
        }
        // The segment was ended, which makes it durable.
        None => Box::pin(std::future::ready(Ok(()))),
    };
    Syncing { job, taken: Some(taken) }
}

fn end_sync(shared: &Shared, taken: Taken, synced: io::Result<()>) -> Flow {
    shared.state.borrow_mut().in_flight = None;
    match synced {
        Ok(()) => {
            done(shared, taken);
            Flow::Continue
        }
        Err(error) => {
            fail(shared, taken.group, error);
            Flow::Stop
        }
    }
}

/// Writes what is pending. With `sync` gives what then has to be made durable.
async fn write_out(
    shared: &Shared,
    mut writer: SegmentWriter,
    sync: bool,
) -> (SegmentWriter, Flow, Option<Taken>) {
    let mut taken = take(&mut shared.state.borrow_mut(), sync);
    let chunks = std::mem::take(&mut taken.chunks);
    let segments: Vec<u64> = chunks.iter().map(|chunk| chunk.segment).collect();
    let (writer, written) = shared
        .io
        .run(move || {
            let written = writer.write(chunks);
            (writer, written)
        })
        .await;
    match written.outcome {
        Outcome::Done => {
            let mut state = shared.state.borrow_mut();
            for segment in segments {
                state.segments.insert(segment, u64::from(shared.options.segment_bytes));
            }
            state.keep(written.buffers);
            let was_stalled = state.stalled.take().is_some();
            drop(state);
            if was_stalled {
                tracing::info!(stream = shared.stream, "commit log takes records again");
                shared.tell(LogEvent::HasRoom);
            }
            (writer, Flow::Continue, sync.then_some(taken))
        }
        Outcome::NoSpace(error) => {
            if sync {
                shared.state.borrow_mut().in_flight = None;
            }
            stall(shared, taken, written.left, error);
            (writer, Flow::Stalled, None)
        }
        Outcome::Failed(error) => {
            fail(shared, taken.group, error);
            (writer, Flow::Stop, None)
        }
    }
}

fn take(state: &mut State, sync: bool) -> Taken {
    let chunks = std::mem::take(&mut state.chunks);
    state.pending_bytes = 0;
    state.written_unsynced |= !chunks.is_empty();
    let end = state.next;
    if !sync {
        return Taken { chunks, group: Rc::default(), record_count: 0, end };
    }
    assert!(state.in_flight.is_none(), "one sync at a time: the groups are told in order");
    let group = std::mem::take(&mut state.group);
    let record_count = std::mem::take(&mut state.group_record_count);
    let since = state.group_since.take();
    state.in_flight = Some(InFlight { group: Rc::clone(&group), end, since });
    state.sync_wanted = false;
    state.written_unsynced = false;
    Taken { chunks, group, record_count, end }
}

/// Tells those who wait that their records are durable.
fn done(shared: &Shared, taken: Taken) {
    let mut state = shared.state.borrow_mut();
    assert!(state.synced <= taken.end, "what is durable stays so");
    assert!(taken.end <= state.next, "what is durable was appended");
    state.synced = taken.end;
    state.statistics.sync_count += 1;
    if taken.record_count > 0 && taken.end.segment == state.next.segment {
        state.push_marker(shared.stream, shared.options.segment_bytes);
    }
    drop(state);
    taken.group.finish(Ok(()));
}

/// Keeps what was not written for the next try.
fn stall(shared: &Shared, taken: Taken, left: Vec<Chunk>, error: io::Error) {
    let mut state = shared.state.borrow_mut();
    let source = Arc::new(error);
    let is_new = state.stalled.is_none();
    if is_new {
        tracing::error!(stream = shared.stream, error = %source, "commit log takes no records: no space");
    }
    state.stalled = Some(Arc::clone(&source));
    let newer = std::mem::replace(&mut state.chunks, left);
    state.chunks.extend(newer);
    state.pending_bytes = state.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    state.group_record_count += taken.record_count;
    let waiting = std::mem::take(&mut state.group);
    drop(state);
    for group in [taken.group, waiting] {
        group.finish(Err(CommitLogError::DiskFull { source: Arc::clone(&source) }));
    }
    if is_new {
        shared.tell(LogEvent::Full(CommitLogError::DiskFull { source }));
    }
}

/// Stops the log: `group` and all others who wait are told why.
fn fail(shared: &Shared, group: Rc<Group>, error: io::Error) {
    let mut state = shared.state.borrow_mut();
    tracing::error!(stream = shared.stream, %error, "commit log stops: what was written may be lost");
    let error = CommitLogError::Failed { source: Arc::new(error) };
    let (waiting, closing) = (Rc::clone(&state.group), state.closing.clone());
    let in_flight = state.in_flight.take().map(|in_flight| in_flight.group);
    state.stopped = Some(error.clone());
    drop(state);
    for group in [Some(group), in_flight, Some(waiting), closing].into_iter().flatten() {
        group.finish(Err(error.clone()));
    }
    shared.tell(LogEvent::Failed(error));
}

/// Writes what is pending and makes it durable, with nothing beside.
async fn write_and_sync(shared: &Shared, writer: SegmentWriter) -> (SegmentWriter, Flow) {
    let (writer, flow, taken) = write_out(shared, writer, true).await;
    let Some(taken) = taken else { return (writer, flow) };
    let mut syncing = Some(start_sync(shared, &writer, taken));
    let (taken, synced) = finished(&mut syncing).await;
    (writer, end_sync(shared, taken, synced))
}

/// Syncs everything, then ends the segment, so that the next start sees that nothing is missing.
async fn close(shared: &Shared, writer: SegmentWriter) {
    let (writer, mut flow) = write_and_sync(shared, writer).await;
    if flow == Flow::Continue && writer.file.is_some() {
        let synced = {
            let mut state = shared.state.borrow_mut();
            // The marker of the sync just made says less than the end frame will.
            assert_eq!(state.group_record_count, 0, "a log that closes takes no records");
            state.chunks.clear();
            state.next = state.synced;
            state.synced.offset.to_le_bytes()
        };
        shared.state.borrow_mut().push_frame(shared.stream, Kind::End, &[&synced]);
        flow = write_and_sync(shared, writer).await.1;
    }
    let mut state = shared.state.borrow_mut();
    let outcome = match (flow, &state.stalled) {
        // A broken log has told everybody.
        (Flow::Stop, _) => return,
        (Flow::Stalled, Some(source)) => Err(CommitLogError::DiskFull { source: Arc::clone(source) }),
        _ => Ok(()),
    };
    state.stopped = Some(CommitLogError::Closed);
    let (waiting, closing) = (Rc::clone(&state.group), state.closing.take());
    drop(state);
    waiting.finish(Err(CommitLogError::Closed));
    if let Some(closing) = closing {
        closing.finish(outcome);
    }
}
