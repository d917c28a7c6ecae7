//! A shard's state, visited by other shards while its own thread sleeps.
//!
//! Waking a thread costs more than most of what one shard asks of another: two system calls and two
//! changes of context for a read of a microsecond. But a thread that sleeps touches nothing, so
//! whoever wants something of it may do it in its place:
//!
//! ```text
//!   owner    ── awake, door shut ──┐ sleeps          wakes ┌── awake, door shut ──
//!                                  └── door open ──────────┘
//!                                         │    ▲
//!   visitor                     try_enter ┘    └ leave          (shut: send a message instead)
//! ```
//!
//! The door is shut whenever the owner's thread runs anything: tokio's hooks around its sleep open
//! and shut it. So owner and visitors never meet, and what the one wrote the other sees.
//!
//! Shards that are tasks of one thread never meet either: whoever runs is not the other. There the door stands open,
//! and a seed decides whether a visitor finds the owner asleep, so that a simulation takes both ways.

use std::cell::UnsafeCell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use crate::Random;

const OPEN: u8 = 0;
const SHUT: u8 = 1;
/// Shut by a visitor, while the owner waits to get in.
const AWAITED: u8 = 2;

/// What keeps a shard's thread and its visitors apart. Starts shut, and stays so until the thread
/// that `belongs_to_this_thread` was called on sleeps for the first time.
#[derive(Debug)]
pub struct Door {
    state: AtomicU8,
    owner: OnceLock<Thread>,
    /// Of a shard that is a task: decides whether it sleeps.
    chance: Option<Arc<dyn Random>>,
}

impl Default for Door {
    fn default() -> Self {
        Door { state: AtomicU8::new(SHUT), owner: OnceLock::new(), chance: None }
    }
}

impl Door {
    /// The door of a shard whose tasks run on this thread, beside those of its visitors.
    pub fn among_tasks(chance: Arc<dyn Random>) -> Self {
        let owner = OnceLock::from(thread::current());
        Door { state: AtomicU8::new(OPEN), owner, chance: Some(chance) }
    }

    /// Makes this thread the owner; the first to call it stays it.
    pub(crate) fn belongs_to_this_thread(&self) {
        _ = self.owner.set(thread::current());
    }

    fn is_owned_here(&self) -> bool {
        self.owner.get().is_some_and(|owner| owner.id() == thread::current().id())
    }

    /// The owner's thread is going to sleep.
    pub(crate) fn open(&self) {
        debug_assert!(self.is_owned_here(), "only its owner leaves a door open");
        self.leave();
    }

    /// The owner's thread woke up: returns once the visitor that may be inside has left.
    pub(crate) fn shut(&self) {
        while !self.try_enter() {
            if self.state.compare_exchange(SHUT, AWAITED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                while self.state.load(Ordering::Acquire) == AWAITED {
                    thread::park();
                }
            }
        }
    }

    /// Does the owner seem to sleep?
    fn is_likely_open(&self) -> bool {
        self.chance.as_ref().is_none_or(|chance| chance.below(2) == 0)
    }

    /// Keeps visitors out while the owner moves. A thread of its own has the door shut as long as it runs.
    fn hold(&self) -> Option<Leaving<'_>> {
        assert!(self.is_owned_here(), "a state lives on its own shard's thread");
        self.chance.as_ref()?;
        assert!(self.try_enter(), "nobody moves while a visitor is inside");
        Some(Leaving(self))
    }

    fn try_enter(&self) -> bool {
        self.state.compare_exchange(OPEN, SHUT, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn leave(&self) {
        if self.state.swap(OPEN, Ordering::Release) == AWAITED
            && let Some(owner) = self.owner.get()
        {
            owner.unpark();
        }
    }
}

/// The place where other threads find a shard's state.
pub struct Residence<T> {
    door: Arc<Door>,
    /// Invariant: touched only by who has shut the door.
    resident: UnsafeCell<Option<Rc<T>>>,
}

// SAFETY: `resident` is reached through `move_in` and `move_out`, which check that they run on the
// owner's thread, which has the door shut while it runs or is the visitors' as well; through `visit`, which
// shuts it first; and through `drop`, which leaks what the owner left on another thread.
#[expect(unsafe_code, reason = "a state that is not Send is reached by one thread at a time")]
unsafe impl<T> Send for Residence<T> {}
// SAFETY: as above: two threads that share it exclude each other by the door.
#[expect(unsafe_code, reason = "a state that is not Send is reached by one thread at a time")]
unsafe impl<T> Sync for Residence<T> {}

impl<T> Residence<T> {
    /// A place behind that door, empty.
    pub fn new(door: Arc<Door>) -> Self {
        Residence { door, resident: UnsafeCell::new(None) }
    }

    /// Puts the state where visitors find it.
    ///
    /// # Panics
    /// When this is not the door's own thread.
    #[expect(unsafe_code, reason = "writes what only the holder of the door touches")]
    pub fn move_in(&self, resident: Rc<T>) {
        let _moving = self.door.hold();
        // SAFETY: the owner's thread runs this and holds the door, so no visitor is inside.
        unsafe { *self.resident.get() = Some(resident) };
    }

    /// Takes the state away from visitors; they find the place empty from now on.
    ///
    /// # Panics
    /// When this is not the door's own thread.
    #[expect(unsafe_code, reason = "writes what only the holder of the door touches")]
    pub fn move_out(&self) {
        let _moving = self.door.hold();
        // SAFETY: as in `move_in`.
        drop(unsafe { (*self.resident.get()).take() });
    }

    /// Does something with the state, if its own thread sleeps and nobody else is there; `None`
    /// otherwise, or when nobody lives here.
    ///
    /// # Safety
    /// `act` and what it calls must leave on this thread nothing that shares parts with the state and
    /// is not `Send`: no `Rc` of it in a thread local or in a task that it spawns here. What it
    /// captures and returns cannot: both are `Send`. Nor may it use a part of the state that is its own
    /// thread's in other ways than by not being `Send`, such as a ring of which the kernel knows the thread.
    #[expect(unsafe_code, reason = "the compiler cannot see what a thread local keeps")]
    pub unsafe fn visit<R: Send>(&self, act: impl FnOnce(&T) -> R + Send) -> Option<R> {
        if !self.door.is_likely_open() || !self.door.try_enter() {
            return None;
        }
        let _leaving = Leaving(&self.door);
        // SAFETY: the door is shut by this thread until `_leaving` is dropped.
        let resident = unsafe { &*self.resident.get() };
        resident.as_deref().map(act)
    }
}

impl<T> Drop for Residence<T> {
    fn drop(&mut self) {
        let resident = self.resident.get_mut().take();
        // An owner that ended without moving out cannot be asked any more; its `Rc`s may be anywhere.
        if !self.door.is_owned_here() {
            std::mem::forget(resident);
        }
    }
}

impl<T> fmt::Debug for Residence<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Residence").field("door", &self.door).finish_non_exhaustive()
    }
}

/// Opens the door again, also when the visit ends in a panic.
struct Leaving<'a>(&'a Door);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::{SeededRandom, ShardOptions, ShardThreads};

    const VISITS: u64 = 20_000;

    /// Shards that count in each other's cells, which lose counts if two threads meet in one.
    #[test]
    #[expect(unsafe_code, reason = "visits are what is tested")]
    fn owners_and_visitors_never_meet() {
        let shard_count = 3;
        let doors: Vec<Arc<Door>> = (0..shard_count).map(|_| Arc::default()).collect();
        let homes: Arc<Vec<Residence<Cell<u64>>>> =
            Arc::new(doors.iter().cloned().map(Residence::new).collect());
        let counted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let finished = Arc::new(AtomicU8::new(0));
        let options = ShardOptions { shard_count, pinned: false, doors, turns: Vec::new() };
        let threads = ShardThreads::start(options, {
            let (homes, counted, finished) =
                (Arc::clone(&homes), Arc::clone(&counted), Arc::clone(&finished));
            move |index| {
                let (homes, counted, finished) =
                    (Arc::clone(&homes), Arc::clone(&counted), Arc::clone(&finished));
                async move {
                    let mine = Rc::new(Cell::new(0));
                    homes[index].move_in(Rc::clone(&mine));
                    let mut made = 0;
                    for round in 0..VISITS {
                        for other in (0..3).filter(|other| *other != index) {
                            // SAFETY: a number is added and none of the cell kept.
                            let visited = unsafe { homes[other].visit(|cell| cell.set(cell.get() + 1)) };
                            made += u64::from(visited.is_some());
                        }
                        mine.set(mine.get() + 1);
                        made += 1;
                        if round % 64 == index as u64 {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                    finished.fetch_add(1, Ordering::SeqCst);
                    while finished.load(Ordering::SeqCst) < 3 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    counted.lock().expect("lock").push((made, mine.get()));
                    homes[index].move_out();
                }
            }
        })
        .expect("threads");
        threads.join().expect("no panic");
        let counted = counted.lock().expect("lock");
        let made: u64 = counted.iter().map(|(made, _)| made).sum();
        let found: u64 = counted.iter().map(|(_, found)| found).sum();
        assert_eq!(made, found);
        assert!(made > 3 * VISITS, "some visits found their host asleep");
    }

    #[test]
    #[expect(unsafe_code, reason = "visits are what is tested")]
    fn a_door_is_shut_until_its_thread_sleeps_and_after_it_ended() {
        let door = Arc::<Door>::default();
        let home = Arc::new(Residence::new(Arc::clone(&door)));
        // SAFETY: nothing of the state is kept.
        assert_eq!(unsafe { home.visit(|number: &u64| *number) }, None);
        let options = ShardOptions { shard_count: 1, pinned: false, doors: vec![door], turns: Vec::new() };
        let (go_on, signal) = tokio::sync::oneshot::channel::<()>();
        let signal = Arc::new(std::sync::Mutex::new(Some(signal)));
        let threads = ShardThreads::start(options, {
            let home = Arc::clone(&home);
            move |_| {
                let (home, signal) = (Arc::clone(&home), Arc::clone(&signal));
                async move {
                    home.move_in(Rc::new(7));
                    let signal = signal.lock().expect("lock").take().expect("one shard");
                    _ = signal.await;
                    home.move_out();
                }
            }
        })
        .expect("thread");
        let seen = loop {
            // SAFETY: as above.
            match unsafe { home.visit(|number| *number) } {
                Some(number) => break number,
                None => thread::yield_now(),
            }
        };
        assert_eq!(seen, 7);
        go_on.send(()).expect("it waits");
        threads.join().expect("no panic");
        // SAFETY: as above.
        assert_eq!(unsafe { home.visit(|number| *number) }, None);
    }

    #[test]
    #[expect(unsafe_code, reason = "visits are what is tested")]
    fn among_tasks_of_one_thread_a_seed_decides_who_sleeps() {
        let visits = |seed| {
            let home = Residence::new(Arc::new(Door::among_tasks(Arc::new(SeededRandom::new(seed)))));
            let lived_in = Rc::new(7);
            home.move_in(Rc::clone(&lived_in));
            // SAFETY: nothing of the state is kept.
            let visits: Vec<bool> =
                (0..64).map(|_| unsafe { home.visit(|number| *number) } == Some(7)).collect();
            drop(home);
            assert_eq!(Rc::strong_count(&lived_in), 1, "nothing is left of it");
            visits
        };
        assert_eq!(visits(1), visits(1));
        assert!(visits(1).contains(&true) && visits(1).contains(&false));
        assert_ne!(visits(1), visits(2));
    }
}
