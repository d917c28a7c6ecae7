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
    by_kind: Vec<Vec<Second>>,
    /// Operations that ended well within the window, by kind, whenever they were due.
    done_by_kind: Vec<u64>,
    errors: BTreeMap<String, u64>,
    wrongs: BTreeMap<String, u64>,
    /// Operations that had no end when the run was over.
    endless_count: u64,
    /// Seconds for which the thread was ready to run and had no core.
    waited_s: f64,
}

/// Counts of all threads, by kind.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) kinds: Vec<KindResults>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) wrongs: BTreeMap<String, u64>,
    pub(super) endless_count: u64,
    pub(super) waited_s: f64,
}

impl Recorder {
    /// Nothing yet.
    pub(super) fn new(kind_count: usize, window: Window) -> Recorder {
        Recorder {
            window,
            by_kind: vec![Vec::new(); kind_count],
            done_by_kind: vec![0; kind_count],
            errors: BTreeMap::new(),
            wrongs: BTreeMap::new(),
            endless_count: 0,
            waited_s: 0.0,
        }
    }

    /// An operation is over. Of those that were due in the warm-up only what went wrong is told, and that they were
    /// done, if that was later.
    pub(super) fn record(&mut self, kind: usize, times: Times, end: End) {
        match &end {
            End::Good if self.window.has(times.ended_us) => self.done_by_kind[kind] += 1,
            End::Good => {}
            End::Error(message) => note(&mut self.errors, message),
            End::Wrong(why) => note(&mut self.wrongs, why),
        }
        if !self.window.has(times.intended_us) {
            return;
        }
        let second = ((times.ended_us.saturating_sub(self.window.from_us)) / 1_000_000) as usize;
        let seconds = &mut self.by_kind[kind];
        if seconds.len() <= second {
            seconds.resize_with(second + 1, Second::default);
        }
        let second = &mut seconds[second];
        match end {
            End::Good => {
                second.response.record(times.ended_us - times.intended_us);
                second.service.record(times.ended_us - times.begun_us);
            }
            End::Error(_) => second.error_count += 1,
            End::Wrong(_) => second.wrong_count += 1,
        }
    }

    /// The thread had no core for so long, though it could have run.
    pub(super) fn note_waited(&mut self, seconds: f64) {
        self.waited_s += seconds;
    }

    /// So many of the measurement's operations have no end.
    pub(super) fn note_endless(&mut self, count: u64) {
        self.endless_count += count;
    }

    /// Adds what it has found to what others have.
    pub(super) fn add_to(self, found: &mut Found, kinds: &[&str]) {
        if found.kinds.is_empty() {
            let named = |kind: &&str| KindResults { kind: (*kind).to_owned(), ..KindResults::default() };
            found.kinds = kinds.iter().map(named).collect();
        }
        for (all, done) in found.kinds.iter_mut().zip(&self.done_by_kind) {
            all.done_count += done;
        }
        for (all, own) in found.kinds.iter_mut().zip(self.by_kind) {
            if all.by_second.len() < own.len() {
                all.by_second.resize_with(own.len(), Second::default);
            }
            all.by_second.iter_mut().zip(&own).for_each(|(all, own)| all.add(own));
        }
        add_counts(&mut found.errors, self.errors);
        add_counts(&mut found.wrongs, self.wrongs);
        found.endless_count += self.endless_count;
        found.waited_s += self.waited_s;
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
        let mut recorder = Recorder::new(1, WINDOW);
        recorder.record(0, times(900_000, 900_000, 1_100_000), End::Good);
        recorder.record(0, times(1_000_000, 1_500_000, 2_200_000), End::Good);
        recorder.record(0, times(2_900_000, 2_900_000, 4_100_000), End::Error("late".to_owned()));
        recorder.record(0, times(3_000_000, 3_000_000, 3_100_000), End::Good);
        let mut found = Found::default();
        recorder.add_to(&mut found, &["read"]);
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
