//! The machine itself: fates, clocks, and that a seed repeats a run.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogOptions, replay};
use runtime::{Random, Runtime};
use simulator::{Fate, Machine, MachineOptions};

const DIRECTORY: &str = "/data/commitlog";

/// Appends until its life ends; pushes what was acknowledged.
async fn append_forever(runtime: Runtime, acknowledged: Rc<RefCell<Vec<u64>>>) {
    let options = CommitLogOptions { segment_bytes: 8192, ..CommitLogOptions::default() };
    let Ok(log) = CommitLog::open(&runtime, Path::new(DIRECTORY), 0, options) else { return };
    loop {
        let number = runtime.random.next_u64();
        let mut record = vec![1; (number % 700) as usize + 8];
        record[..8].copy_from_slice(&number.to_le_bytes());
        let Ok(position) = log.append(&record) else { return };
        if log.synced(position).await.is_err() {
            return;
        }
        acknowledged.borrow_mut().push(number);
    }
}

fn replayed(runtime: &Runtime) -> Vec<u64> {
    replay(&runtime.disk, Path::new(DIRECTORY))
        .expect("list")
        .map(|record| {
            let payload = record.expect("sound").payload;
            u64::from_le_bytes(payload[..8].try_into().expect("eight bytes"))
        })
        .collect()
}

/// Some lives with all kinds of ends; what was acknowledged and what the disk then holds.
fn run(seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut machine = Machine::new(seed, MachineOptions::default());
    let acknowledged = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..6 {
        let fate = match machine.random().below(3) {
            0 => Fate::KillAfter(Duration::from_micros(machine.random().below(60_000))),
            1 => Fate::PowerCutAfter(Duration::from_micros(machine.random().below(60_000))),
            _ => Fate::PowerCutAfterChanges(machine.random().below(60)),
        };
        machine.live(fate, |runtime| append_forever(runtime, Rc::clone(&acknowledged)));
    }
    let found = machine.live(Fate::LiveOn, |runtime| async move { replayed(&runtime) }).expect("lived on");
    (acknowledged.take(), found)
}

#[test]
fn what_was_acknowledged_outlives_every_fate() {
    for seed in 0..300 {
        let (acknowledged, found) = run(seed);
        let mut rest = found.iter();
        for number in &acknowledged {
            assert!(rest.any(|other| other == number), "seed {seed}: {number} is lost or out of order");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert!((0..20).any(|seed| !run(seed).0.is_empty()));
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}

#[test]
fn the_wall_clock_goes_on_between_lives_and_may_be_set() {
    let look = |runtime: Runtime| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        runtime.clock.now_micros()
    };
    let mut steady = Machine::new(1, MachineOptions::default());
    let first = steady.live(Fate::LiveOn, look).expect("lived on");
    let second = steady.live(Fate::LiveOn, look).expect("lived on");
    assert_eq!(second - first, 10_000_000);

    let clock_step_max = Duration::from_secs(3600);
    let mut odd = Machine::new(1, MachineOptions { clock_step_max, ..MachineOptions::default() });
    let shown: Vec<i64> = (0..20).map(|_| odd.live(Fate::LiveOn, look).expect("lived on")).collect();
    assert!(shown.windows(2).any(|pair| pair[1] < pair[0]), "somebody set it back");
}

#[test]
fn a_power_cut_ends_a_life_that_would_not_end() {
    let mut machine = Machine::new(1, MachineOptions::default());
    let ended = machine.live(Fate::PowerCutAfterChanges(3), |runtime| async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            _ = runtime.disk.sync_dir(Path::new("/"));
        }
    });
    assert_eq!(ended, None::<()>);
}
