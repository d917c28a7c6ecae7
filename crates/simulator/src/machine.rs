//! A machine whose power, disk and time are in our hands.
//!
//! A [`Machine`] lives several lives on one disk. In each, a node's code runs as tasks of one thread
//! in virtual time; then the life ends as its [`Fate`] says, and the next one starts from what the
//! disk kept. Everything that is random comes from the machine's seed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use runtime::{
    Background, Failsafe, Io, MemoryDisk, Network, Plants, Random, Runtime, SeededRandom, VirtualClock,
};

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// When the node's code ends. What was not synced stays in the system's cache.
    LiveOn,
    /// The process is killed after so long, or when its code ends. The same for the disk.
    KillAfter(Duration),
    /// The power goes after so long, or when the code ends.
    PowerCutAfter(Duration),
    /// The power goes after so many changes of the disk, or when the code ends.
    PowerCutAfterChanges(u64),
}

/// How slow and how odd the machine is. The defaults are a usual one.
#[derive(Clone, Copy, Debug)]
pub struct MachineOptions {
    /// The longest that short disk work takes; each takes what the seed says.
    pub io_delay_max: Duration,
    /// The longest that a background job takes.
    pub background_delay_max: Duration,
    /// What the wall clock shows at the start of the first life, in microseconds since 1970.
    pub start_micros: i64,
    /// How far, forth or back, somebody sets the wall clock between two lives.
    pub clock_step_max: Duration,
}

impl Default for MachineOptions {
    fn default() -> MachineOptions {
        MachineOptions {
            io_delay_max: Duration::from_millis(5),
            background_delay_max: Duration::from_millis(200),
            start_micros: runtime::ManualClock::DEFAULT_START_MICROS,
            clock_step_max: Duration::ZERO,
        }
    }
}

/// A machine, between two lives.
#[derive(Debug)]
pub struct Machine {
    options: MachineOptions,
    random: SeededRandom,
    disk: MemoryDisk,
    /// What the wall clock shows when the next life starts.
    now_micros: i64,
}

/// How often a life looks whether the power has gone.
const POWER_CHECK_PERIOD: Duration = Duration::from_millis(1);

impl Machine {
    /// A new machine with an empty disk. The same seed and the same code give the same lives.
    pub fn new(seed: u64, options: MachineOptions) -> Machine {
        let random = SeededRandom::new(seed);
        Machine { options, random, disk: MemoryDisk::new(), now_micros: options.start_micros }
    }

    /// The disk as it is now: to order faults for the next life, or to damage files.
    pub fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    /// The machine's random numbers, for a workload that has to repeat with it.
    pub fn random(&self) -> &SeededRandom {
        &self.random
    }

    /// Runs `body` for one life. Gives its result, or `None` if the life ended first; what it had
    /// started is dropped where it waited, and the disk is left as the fate says.
    ///
    /// In `body` and in what it calls, `tokio::select!` must be `biased`: its other form takes a
    /// branch by a number that no seed decides.
    ///
    /// # Panics
    /// As `body` does; and if tokio can not start.
    pub fn live<T, Life>(&mut self, fate: Fate, body: impl FnOnce(Runtime) -> Life) -> Option<T>
    where
        Life: Future<Output = T>,
    {
        if let Fate::PowerCutAfterChanges(change_count) = fate {
            self.disk.faults().power_off_after(change_count);
        }
        let tokio_runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing that can fail");
        let local = tokio::task::LocalSet::new();
        let seeds = (self.random.next_u64(), self.random.next_u64(), self.random.next_u64());
        let (disk, options, start_micros) = (self.disk.clone(), self.options, self.now_micros);
        let (result, lived) = local.block_on(&tokio_runtime, async move {
            let start = tokio::time::Instant::now();
            let runtime = Runtime {
                disk: Arc::new(disk.clone()),
                network: Network::None,
                clock: Arc::new(VirtualClock::new(start_micros)),
                random: Arc::new(SeededRandom::new(seeds.0)),
                background: Background::seeded_tasks(seeds.1, options.background_delay_max),
                io: Io::seeded(seeds.2, options.io_delay_max),
                failsafe: Failsafe::default(),
                plants: Plants::default(),
            };
            let result = until_fate(fate, &disk, body(runtime)).await;
            (result, start.elapsed())
        });
        // All tasks die here, before the disk is looked at.
        drop(local);
        drop(tokio_runtime);
        self.end_life(fate, lived);
        result
    }

    fn end_life(&mut self, fate: Fate, lived: Duration) {
        self.disk = match fate {
            Fate::LiveOn | Fate::KillAfter(_) => self.disk.kill(),
            Fate::PowerCutAfter(_) | Fate::PowerCutAfterChanges(_) => self.disk.crash(self.random.next_u64()),
        };
        let step_max = micros(self.options.clock_step_max);
        let step = self.random.below(step_max.unsigned_abs() * 2 + 1) as i64 - step_max;
        self.now_micros = self.now_micros.saturating_add(micros(lived)).saturating_add(step);
    }
}

/// Runs `body` until it ends or its life does.
async fn until_fate<T>(fate: Fate, disk: &MemoryDisk, body: impl Future<Output = T>) -> Option<T> {
    match fate {
        Fate::LiveOn => Some(body.await),
        Fate::KillAfter(time) | Fate::PowerCutAfter(time) => tokio::time::timeout(time, body).await.ok(),
        Fate::PowerCutAfterChanges(_) => {
            let power_goes = async {
                while !disk.faults().is_off() {
                    tokio::time::sleep(POWER_CHECK_PERIOD).await;
                }
            };
            tokio::select! {
                biased;
                result = body => Some(result),
                () = power_goes => None,
            }
        }
    }
}

fn micros(duration: Duration) -> i64 {
    // Half of the range, so that twice of it is no overflow.
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}
