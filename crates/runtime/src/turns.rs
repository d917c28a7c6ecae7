//! How long a shard's thread is kept: every turn of every task, measured always.
//!
//! A shard is one thread, so whoever keeps it keeps everybody. A *turn* is what runs between two moments at which the
//! thread could have done something else:
//!
//! ```text
//!   wakes ── a task ──┬── a task ──┬── a task ──┬─ sleeps
//!         ◄─ a turn ─►│◄─ a turn ─►│◄─ a turn ─►│
//! ```
//!
//! One reading of the processor's own counter ends a turn and begins the next. What a turn took may not all be its own:
//! on a busy machine the thread stands in the kernel's run queue meanwhile. How long it did is asked of the kernel
//! about every millisecond, and taken off.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::future::{Future, poll_fn};
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stdx::ticks::{TickRate, Ticks};
use tokio::task::JoinHandle;

/// A longer turn is told in the log, and counted.
pub const TURN_MAX: Duration = Duration::from_millis(20);

/// Turns of up to 2^n ticks are counted together, for each n below this.
const BUCKET_COUNT: usize = 48;
/// Who kept a turn for longer may be told with it, if the turn was long.
const BLAMED_FROM: Duration = Duration::from_millis(5);
/// How often the kernel is asked.
const ASKED_EVERY: Duration = Duration::from_millis(1);
/// Of long turns one is told in so much time, and each that is the longest.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Work that is cut in pieces gives way to others after about so long.
const PIECE_MAX: Duration = Duration::from_millis(1);

/// A piece of work that is to give way to others when it has become long. Where turns are not measured it never does:
/// the simulator repeats a run, whatever the time.
#[derive(Clone, Copy, Debug)]
pub struct Piece(Option<Ticks>);

impl Piece {
    /// The piece that began with the turn that goes on. Whoever has what comes in pieces of its own takes care of the
    /// whole turn: a loop whose next message is there at once does not come back to the thread by itself, and 74 ms of
    /// messages of less than a millisecond each were one turn.
    pub fn of_turn() -> Self {
        Piece(METER.with(|meter| meter.get().map(|meter| meter.begun.get())))
    }

    /// Is it time to give way?
    pub fn is_long(&self) -> bool {
        let Some(begun) = self.0 else { return false };
        let rate_of = |meter: &Meter| Ticks::now().since(begun) > meter.figures.rate.ticks(PIECE_MAX);
        METER.with(|meter| meter.get().is_some_and(rate_of))
    }

    /// Lets others on the shard go first if it has become long.
    pub async fn give_way(&mut self) {
        if self.is_long() {
            tokio::task::yield_now().await;
            *self = Piece::of_turn();
        }
    }
}

/// What is known of a shard's turns; read by any thread.
#[derive(Debug)]
pub struct TurnFigures {
    rate: TickRate,
    counts: [AtomicU64; BUCKET_COUNT],
    own_longest_nanos: AtomicU64,
    queued_longest_nanos: AtomicU64,
    long_count: AtomicU64,
}

impl Default for TurnFigures {
    fn default() -> Self {
        TurnFigures {
            rate: TickRate::default(),
            counts: [const { AtomicU64::new(0) }; BUCKET_COUNT],
            own_longest_nanos: AtomicU64::new(0),
            queued_longest_nanos: AtomicU64::new(0),
            long_count: AtomicU64::new(0),
        }
    }
}

impl TurnFigures {
    /// How many turns took up to how long, shortest first, and not less than the line before; without empty lines.
    pub fn histogram(&self) -> Vec<(Duration, u64)> {
        let counts = self.counts.iter().enumerate();
        let counted =
            counts.map(|(index, count)| (self.rate.duration(1 << index), count.load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The longest turn, without what it stood in the kernel's run queue.
    pub fn own_longest(&self) -> Duration {
        Duration::from_nanos(self.own_longest_nanos.load(Ordering::Relaxed))
    }

    /// The longest that a turn stood in the kernel's run queue.
    pub fn queued_longest(&self) -> Duration {
        Duration::from_nanos(self.queued_longest_nanos.load(Ordering::Relaxed))
    }

    /// How many turns took longer than [`TURN_MAX`] of their own.
    pub fn long_count(&self) -> u64 {
        self.long_count.load(Ordering::Relaxed)
    }
}

/// The time of turns on one thread.
struct Meter {
    figures: Arc<TurnFigures>,
    /// When the turn began.
    begun: Cell<Ticks>,
    asked: Cell<Ticks>,
    /// What the kernel said.
    said: Cell<Schedule>,
    reported: Cell<Option<Ticks>>,
    /// Who kept the turn longest, and for how many ticks.
    culprit: RefCell<Option<(u64, String)>>,
    /// Where the kernel tells it; `None` if it does not.
    schedule: RefCell<Option<File>>,
}

thread_local! {
    /// Of a shard's thread; others have none.
    static METER: OnceCell<Meter> = const { OnceCell::new() };
}

/// Has the turns of this thread measured from now on; the first call counts.
pub(crate) fn measure_this_thread(figures: Arc<TurnFigures>) {
    METER.with(|meter| {
        let now = Ticks::now();
        _ = meter.set(Meter {
            figures,
            begun: Cell::new(now),
            asked: Cell::new(now),
            said: Cell::default(),
            reported: Cell::default(),
            culprit: RefCell::default(),
            schedule: RefCell::new(open_schedule()),
        });
    });
}

#[expect(clippy::disallowed_methods, reason = "no file of the node's: the kernel's word on this thread")]
fn open_schedule() -> Option<File> {
    File::open("/proc/thread-self/schedstat").ok()
}

/// This thread has slept: a turn begins.
pub(crate) fn begin_turn() {
    METER.with(|meter| {
        if let Some(meter) = meter.get() {
            meter.begin(Ticks::now());
        }
    });
}

/// A larger future is boxed where it is made, before anything wraps it. A task is allocated whole, and each `async fn`
/// that wraps a future has room for it twice: as it was given, and as it is polled. (A read that was left to its shard
/// took 140 KB for its 5, which the kernel cleared for each read.)
const TASK_BYTES_MAX: usize = 8 << 10;

/// Starts a task on this thread whose turns are measured; `what` names it where one was long.
pub fn spawn_local<F>(what: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    const { assert!(size_of::<F>() <= TASK_BYTES_MAX, "what is larger is boxed before it is wrapped") }
    tokio::task::spawn_local(measured(what, future))
}

/// The same future, its turns measured: for tasks that are started in other ways.
pub async fn measured<F: Future>(what: &'static str, future: F) -> F::Output {
    let end = || {
        METER.with(|meter| {
            if let Some(meter) = meter.get() {
                meter.end(what);
            }
        });
    };
    let output = {
        let mut future = pin!(future);
        poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            end();
            polled
        })
        .await
    };
    // What it held was dropped since.
    end();
    output
}

/// Does something; where a turn was long because of it, the log has these words of it.
pub fn labelled<T>(words: impl Fn() -> String, act: impl FnOnce() -> T) -> T {
    METER.with(|meter| match meter.get() {
        None => act(),
        Some(meter) => {
            let begun = Ticks::now();
            let done = act();
            meter.blame(Ticks::now().since(begun), words);
            done
        }
    })
}

/// The same future, labelled as by [`labelled`] each time that it goes on.
pub async fn labelled_future<F: Future>(words: impl Fn() -> String, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| labelled(&words, || future.as_mut().poll(context))).await
}

impl Meter {
    /// A turn begins, its thread having slept or ended another.
    fn begin(&self, now: Ticks) {
        self.begun.set(now);
        if now.since(self.asked.get()) > self.figures.rate.ticks(ASKED_EVERY) {
            self.ask(now);
        }
    }

    fn end(&self, what: &'static str) {
        let now = Ticks::now();
        let ticks = now.since(self.begun.get());
        let bucket = (u64::BITS - ticks.leading_zeros()) as usize;
        let count = &self.figures.counts[bucket.min(BUCKET_COUNT - 1)];
        // One writer: a load and a store are enough.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if ticks > self.figures.rate.ticks(ASKED_EVERY) {
            self.look_closer(now, self.figures.rate.duration(ticks), what);
        }
        self.begin(now);
    }

    /// Somebody had so much of this turn. Of two of which one is a part of the other, the part is told if it had most.
    fn blame(&self, ticks: u64, words: impl Fn() -> String) {
        if ticks > self.figures.rate.ticks(BLAMED_FROM) {
            let mut culprit = self.culprit.borrow_mut();
            if culprit.as_ref().is_none_or(|(most, _)| ticks > most + most / 4) {
                *culprit = Some((ticks, words()));
            }
        }
    }

    /// A turn was not short: was it its own fault?
    fn look_closer(&self, now: Ticks, took: Duration, what: &'static str) {
        let culprit = self.culprit.take();
        let Schedule { ran, queued } = self.ask(now);
        let queued = queued.min(took);
        let own = took - queued;
        let figures = &self.figures;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let longest_before = figures.own_longest_nanos.fetch_max(nanos(own), Ordering::Relaxed);
        figures.queued_longest_nanos.fetch_max(nanos(queued), Ordering::Relaxed);
        if own <= TURN_MAX {
            return;
        }
        figures.long_count.fetch_add(1, Ordering::Relaxed);
        let pause = figures.rate.ticks(TOLD_EVERY);
        let is_longest = nanos(own) > longest_before;
        if is_longest || self.reported.get().is_none_or(|reported| now.since(reported) > pause) {
            self.reported.set(Some(now));
            let rate = &figures.rate;
            let (culprit_took, culprit) =
                culprit.map(|(ticks, words)| (rate.duration(ticks), words)).unwrap_or_default();
            // Of its own the thread did not run while it waited for a disk or for memory, or its machine for another.
            let ran = ran.min(own);
            tracing::warn!(
                ?own,
                ?ran,
                ?queued,
                what,
                ?culprit_took,
                culprit,
                "a turn kept its shard for long"
            );
        }
    }

    /// Asks the kernel what the thread has done since it was asked before.
    fn ask(&self, now: Ticks) -> Schedule {
        self.asked.set(now);
        let mut schedule = self.schedule.borrow_mut();
        let Some(said) = schedule.as_ref().and_then(Schedule::read) else {
            *schedule = None;
            return Schedule::default();
        };
        let before = self.said.replace(said);
        Schedule {
            ran: said.ran.saturating_sub(before.ran),
            queued: said.queued.saturating_sub(before.queued),
        }
    }
}

/// The kernel's word on a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    ran: Duration,
    /// It could have run, and other threads did.
    queued: Duration,
}

impl Schedule {
    /// The first two numbers of `schedstat`, in nanoseconds.
    fn read(file: &File) -> Option<Schedule> {
        let mut text = [0; 64];
        let length = file.read_at(&mut text, 0).ok()?;
        let mut numbers = std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
        let mut next = || numbers.next()?.parse().ok().map(Duration::from_nanos);
        Some(Schedule { ran: next()?, queued: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(figures: &Arc<TurnFigures>, body: impl Future<Output = ()> + 'static) {
        let figures = Arc::clone(figures);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        measure_this_thread(figures);
        tokio::task::LocalSet::new()
            .block_on(&runtime, async { spawn_local("test", body).await.expect("ends") });
    }

    fn spin(time: Duration) {
        let clock = crate::SystemClock::new();
        let start = crate::Clock::elapsed(&clock);
        while crate::Clock::elapsed(&clock) - start < time {}
    }

    #[test]
    fn who_kept_a_turn_longest_is_known() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                run(&Arc::default(), async {
                    for (millis, name) in [(6, "short"), (30, "long"), (7, "later")] {
                        labelled_future(|| name.to_owned(), async { spin(Duration::from_millis(millis)) })
                            .await;
                    }
                    METER.with(|meter| {
                        let culprit = meter.get().and_then(|meter| meter.culprit.borrow().clone());
                        assert_eq!(culprit.map(|(_, words)| words).as_deref(), Some("long"));
                    });
                });
            });
        });
    }

    /// A loop whose work is there at once, each piece short by itself, was one turn.
    #[test]
    fn short_pieces_of_one_turn_add_up() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let figures = Arc::new(TurnFigures::default());
                run(&figures, async {
                    for _ in 0..200 {
                        let mut piece = Piece::of_turn();
                        spin(Duration::from_micros(500));
                        piece.give_way().await;
                    }
                });
                let longest = figures.own_longest();
                assert!(longest < Duration::from_millis(60), "two hundred pieces of 0.5 ms, {longest:?}");
            });
        });
    }

    #[test]
    fn a_long_turn_is_seen_and_many_short_ones_are_not_one() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let figures = Arc::new(TurnFigures::default());
                run(&figures, async {
                    for _ in 0..50 {
                        spin(Duration::from_millis(2));
                        tokio::task::yield_now().await;
                    }
                });
                let short = figures.own_longest();
                assert!(short < Duration::from_millis(60), "fifty turns of 2 ms, {short:?}");
                assert!(figures.histogram().iter().map(|(_, count)| count).sum::<u64>() >= 50);
            });
            scope.spawn(|| {
                let figures = Arc::new(TurnFigures::default());
                run(&figures, async { spin(Duration::from_millis(80)) });
                // Of its own or in the run queue, as the machine likes.
                let long = figures.own_longest() + figures.queued_longest();
                assert!(long >= Duration::from_millis(60), "{long:?}");
                let last = figures.histogram().last().map(|(time, _)| *time);
                assert!(last >= Some(Duration::from_millis(60)), "{last:?}");
            });
        });
    }
}
