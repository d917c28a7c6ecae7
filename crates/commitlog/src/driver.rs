//! The task that takes pending bytes to the disk, one write at a time.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::CommitLogError;
use crate::format::Kind;
use crate::group::Group;
use crate::log::{InFlight, Shared, State, WRITE_OUT_BYTES};
use crate::options::SyncMode;
use crate::position::LogPosition;
use crate::segment_writer::{Chunk, Outcome, SegmentWriter};

/// After so long without a writer, what is pending is synced: mostly the marker that tells replay
/// that the last group was durable.
const SETTLE_AFTER: Duration = Duration::from_millis(20);
/// How often a full disk is tried again.
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
    loop {
        let step = next_step(&shared).await;
        if step == Step::Sync
            && let SyncMode::Group { window } = shared.options.sync
            && !window.is_zero()
        {
            tokio::time::sleep(window).await;
        }
        let flow;
        (writer, flow) = match step {
            Step::Abandon => return,
            Step::Close => return close(&shared, writer).await,
            Step::Write | Step::Sync => write_out(&shared, writer, step == Step::Sync).await,
        };
        match flow {
            Flow::Continue => {}
            Flow::Stop => return,
            Flow::Stalled => {
                tokio::time::sleep(RETRY_AFTER).await;
                shared.state.borrow_mut().sync_wanted = true;
            }
        }
    }
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
            if state.closing.is_some() {
                return Step::Close;
            }
            if state.sync_wanted {
                return Step::Sync;
            }
            if state.pending_bytes >= WRITE_OUT_BYTES {
                return Step::Write;
            }
            if state.is_settled() {
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
                    return Step::Sync;
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
    sync: bool,
}

/// Writes what is pending; with `sync`, makes it durable and tells those who wait.
async fn write_out(shared: &Shared, mut writer: SegmentWriter, sync: bool) -> (SegmentWriter, Flow) {
    let mut taken = take(&mut shared.state.borrow_mut(), sync);
    let chunks = std::mem::take(&mut taken.chunks);
    let segments: Vec<u64> = chunks.iter().map(|chunk| chunk.segment).collect();
    let (writer, written) = shared
        .io
        .run(move || {
            let written = writer.write(chunks, sync);
            (writer, written)
        })
        .await;
    shared.state.borrow_mut().in_flight = None;
    let flow = match written.outcome {
        Outcome::Done => {
            done(shared, taken, segments, written.buffers);
            Flow::Continue
        }
        Outcome::NoSpace(error) => {
            stall(shared, taken, written.left, error);
            Flow::Stalled
        }
        Outcome::Failed(error) => {
            fail(shared, taken, error);
            Flow::Stop
        }
    };
    (writer, flow)
}

fn take(state: &mut State, sync: bool) -> Taken {
    let chunks = std::mem::take(&mut state.chunks);
    state.pending_bytes = 0;
    state.written_unsynced |= !chunks.is_empty();
    let end = state.next;
    if !sync {
        return Taken { chunks, group: Rc::default(), record_count: 0, end, sync };
    }
    let group = std::mem::take(&mut state.group);
    let record_count = std::mem::take(&mut state.group_record_count);
    let since = state.group_since.take();
    state.in_flight = Some(InFlight { group: Rc::clone(&group), end, since });
    state.sync_wanted = false;
    state.written_unsynced = false;
    Taken { chunks, group, record_count, end, sync }
}

fn done(shared: &Shared, taken: Taken, segments: Vec<u64>, buffers: Vec<Vec<u8>>) {
    let mut state = shared.state.borrow_mut();
    for segment in segments {
        state.segments.insert(segment, u64::from(shared.options.segment_bytes));
    }
    state.keep(buffers);
    if state.stalled.take().is_some() {
        tracing::info!(stream = shared.stream, "commit log takes records again");
    }
    if !taken.sync {
        return;
    }
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
    if state.stalled.is_none() {
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
}

fn fail(shared: &Shared, taken: Taken, error: io::Error) {
    let mut state = shared.state.borrow_mut();
    tracing::error!(stream = shared.stream, %error, "commit log stops: what was written may be lost");
    let error = CommitLogError::Failed { source: Arc::new(error) };
    let (waiting, closing) = (Rc::clone(&state.group), state.closing.clone());
    state.stopped = Some(error.clone());
    drop(state);
    for group in [Some(taken.group), Some(waiting), closing].into_iter().flatten() {
        group.finish(Err(error.clone()));
    }
}

/// Syncs everything, then ends the segment, so that the next start sees that nothing is missing.
async fn close(shared: &Shared, writer: SegmentWriter) {
    let (writer, mut flow) = write_out(shared, writer, true).await;
    if flow == Flow::Continue && writer.file.is_some() {
        let synced = {
            let mut state = shared.state.borrow_mut();
            // The marker of the sync just made says less than the end frame will.
            state.chunks.clear();
            state.next = state.synced;
            state.synced.offset.to_le_bytes()
        };
        shared.state.borrow_mut().push_frame(shared.stream, Kind::End, &[&synced]);
        flow = write_out(shared, writer, true).await.1;
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
