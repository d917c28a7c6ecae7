//! What one thread has found, by kind and second.

use std::collections::BTreeMap;

use crate::results::{KindResults, Second};

/// So many different messages are kept.
const MESSAGE_COUNT_MAX: usize = 20;

/// The part of a run that counts, in microseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Where the warm-up ends.
    pub(super) from_us: u64,
    /// Where the measurement ends.
    pub(super) until_us: u64,
}

impl Window {
    /// Is an operation with this intended start part of the measurement?
    pub(super) fn has(self, intended_us: u64) -> bool {
        (self.from_us..self.until_us).contains(&intended_us)
    }
}

/// When an operation was due, begun and over, in microseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) intended_us: u64,
    pub(super) begun_us: u64,
    pub(super) ended_us: u64,
}

/// How an operation ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// Well.
    Good,
    /// With an error: what it says.
    Error(String),
    /// With an answer that can not be right: why.
    Wrong(String),
}

/// Counts of one thread.
#[derive(Debug)]
pub(super) struct Recorder {
    window: Window,
    found: Found,
}

/// Counts of one thread or of all, by kind.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) kinds: Vec<KindResults>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) wrongs: BTreeMap<String, u64>,
    /// Operations that had no end when the run was over.
    pub(super) endless_count: u64,
    /// Requests that were asked again: of another node where one lacked replicas, and in a load where it was too
    /// busy.
    pub(super) asked_again_count: u64,
    /// Seconds for which threads were ready to run and had no core.
    pub(super) waited_s: f64,
    /// Bytes of answers, within the measurement.
    pub(super) received_bytes: u64,
}

impl Recorder {
    /// Nothing yet, of these kinds.
    pub(super) fn new(kinds: &[&str], window: Window) -> Recorder {
        Recorder { window, found: Found::new(kinds) }
    }

    /// An operation is over. Of those that were due in the warm-up only what went wrong is told, and that they were
    /// done, if that was later.
    pub(super) fn record(&mut self, kind: usize, times: Times, end: End) {
        let kind = &mut self.found.kinds[kind];
        match &end {
            End::Good if self.window.has(times.ended_us) => kind.done_count += 1,
            End::Good => {}
            End::Error(message) => note(&mut self.found.errors, message),
            End::Wrong(why) => note(&mut self.found.wrongs, why),
        }
        if !self.window.has(times.intended_us) {
            return;
        }
        let second = ((times.ended_us.saturating_sub(self.window.from_us)) / 1_000_000) as usize;
        if kind.by_second.len() <= second {
            kind.by_second.resize_with(second + 1, Second::default);
        }
        let second = &mut kind.by_second[second];
        match end {
            End::Good => {
                second.response.record(times.ended_us - times.intended_us);
                second.service.record(times.ended_us - times.begun_us);
            }
            End::Error(_) => second.error_count += 1,
            End::Wrong(_) => second.wrong_count += 1,
        }
    }

    /// The thread had no core for so long, though it could have run, and so much was answered.
    pub(super) fn note_used(&mut self, waited_s: f64, received_bytes: u64) {
        self.found.waited_s += waited_s;
        self.found.received_bytes += received_bytes;
    }

    /// So many of the measurement's operations have no end.
    pub(super) fn note_endless(&mut self, count: u64) {
        self.found.endless_count += count;
    }

    /// A request of an operation that was due then was asked again.
    pub(super) fn note_asked_again(&mut self, intended_us: u64) {
        self.found.asked_again_count += u64::from(self.window.has(intended_us));
    }

    /// What it has found.
    pub(super) fn finish(self) -> Found {
        self.found
    }
}

impl Found {
    /// Nothing yet, of these kinds.
    pub(super) fn new(kinds: &[&str]) -> Found {
        let named = |kind: &&str| KindResults { kind: (*kind).to_owned(), ..KindResults::default() };
        Found {
            kinds: kinds.iter().map(named).collect(),
            errors: BTreeMap::new(),
            wrongs: BTreeMap::new(),
            endless_count: 0,
            asked_again_count: 0,
            waited_s: 0.0,
            received_bytes: 0,
        }
    }

    /// All that another thread has found of the same kinds as well.
    pub(super) fn add(&mut self, other: Found) {
        for (all, own) in self.kinds.iter_mut().zip(other.kinds) {
            all.done_count += own.done_count;
            if all.by_second.len() < own.by_second.len() {
                all.by_second.resize_with(own.by_second.len(), Second::default);
            }
            all.by_second.iter_mut().zip(&own.by_second).for_each(|(all, own)| all.add(own));
        }
        add_counts(&mut self.errors, other.errors);
        add_counts(&mut self.wrongs, other.wrongs);
        self.endless_count += other.endless_count;
        self.asked_again_count += other.asked_again_count;
        self.waited_s += other.waited_s;
        self.received_bytes += other.received_bytes;
    }
}

fn note(counts: &mut BTreeMap<String, u64>, message: &str) {
    match counts.get_mut(message) {
        Some(count) => *count += 1,
        None => add_counts(counts, BTreeMap::from([(message.to_owned(), 1)])),
    }
}

fn add_counts(all: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (message, count) in more {
        if all.len() < MESSAGE_COUNT_MAX || all.contains_key(&message) {
            *all.entry(message).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from_us: 1_000_000, until_us: 3_000_000 };

    fn times(intended_us: u64, begun_us: u64, ended_us: u64) -> Times {
        Times { intended_us, begun_us, ended_us }
    }

    #[test]
    fn an_operation_belongs_to_the_second_in_which_it_ended() {
        let mut recorder = Recorder::new(&["read"], WINDOW);
        recorder.record(0, times(900_000, 900_000, 1_100_000), End::Good);
        recorder.record(0, times(1_000_000, 1_500_000, 2_200_000), End::Good);
        recorder.record(0, times(2_900_000, 2_900_000, 4_100_000), End::Error("late".to_owned()));
        recorder.record(0, times(3_000_000, 3_000_000, 3_100_000), End::Good);
        let found = recorder.finish();
        let seconds = &found.kinds[0].by_second;
        let counts: Vec<(u64, u64)> =
            seconds.iter().map(|second| (second.response.count(), second.error_count)).collect();
        assert_eq!(counts, [(0, 0), (1, 0), (0, 0), (0, 1)]);
        assert!((seconds[1].response.max_us() as f64 / 1_200_000.0 - 1.0).abs() < 0.001);
        assert!((seconds[1].service.max_us() as f64 / 700_000.0 - 1.0).abs() < 0.001);
        assert_eq!(found.errors["late"], 1);
        // Two ended within the measurement, one of them was due before it.
        assert_eq!(found.kinds[0].done_count, 2);
    }
}
