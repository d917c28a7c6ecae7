//! The seconds of all repetitions, one repetition behind the other, as plots show them.
//!
//! ```text
//!   0 s              30 s             60 s     of the timeline: warm-ups and pauses are left out
//!   |- repetition 1 -|- repetition 2 -|
//!   |..slot..|..slot.|..slot..|..slot.|        a few seconds each in a long run, never of two repetitions,
//!                                              nor of a measurement and what came late
//! ```
//!
//! A repetition takes whole seconds here: those of its measurement, and those behind it in which late operations ended.
//! The few that are under way when it is over, and are over themselves in a moment, are counted with its last second.

use std::collections::BTreeMap;

use super::summary::kind_names;
use crate::latencies::Latencies;
use crate::results::{KindResults, Repetition, Results};

/// A plot is a few hundred points wide.
const SLOT_COUNT_MAX: usize = 240;
/// A month; whatever a file claims to be beyond that is not shown.
const SECOND_COUNT_MAX: usize = 31 * 86_400;
/// Heat has so many buckets to each power of ten.
pub(super) const BUCKETS_PER_DECADE: f64 = 8.0;
/// The last second of a measurement may be a part of one. A smaller part than this says nothing about a rate.
const PART_MIN: f64 = 0.2;
/// Clocks are not exact to the last digit.
const TOLERANCE_S: f64 = 0.001;
/// No more late operations than this part of those of the last second, none of which took longer than that, were just
/// under way when the measurement was over.
const STRAGGLING_PART: f64 = 0.05;
const STRAGGLING_MAX_US: u64 = 200_000;

/// All repetitions.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) kinds: Vec<String>,
    pub(super) spans: Vec<Span>,
    /// Of a slot, but for the last of a repetition.
    pub(super) slot_seconds: usize,
    /// Of the whole line.
    pub(super) seconds: f64,
}

/// One repetition.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) from_s: f64,
    pub(super) until_s: f64,
    pub(super) is_kept: bool,
    pub(super) slots: Vec<Slot>,
    /// When and what, in the order of time.
    pub(super) events: Vec<(f64, String)>,
}

/// One second or a few.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) from_s: f64,
    pub(super) until_s: f64,
    /// How long operations were due in it: not at all behind the measurement, when late ones end.
    pub(super) measured_s: f64,
    /// In the order of [`Timeline::kinds`].
    pub(super) kinds: Vec<Moment>,
}

/// What ended in a slot, of one kind.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub(super) count: u64,
    pub(super) failed_count: u64,
    pub(super) response: Option<Response>,
}

/// Response times of a slot in which something went well, in microseconds.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
    /// How many there are in each bucket: those from `10^(bucket / BUCKETS_PER_DECADE)` on.
    pub(super) heat: BTreeMap<i32, u64>,
}

impl Timeline {
    /// Lays the repetitions one behind the other.
    pub(super) fn of(results: &Results) -> Timeline {
        Timeline::laid(results, &second_counts(&[results]))
    }

    /// Lays several runs beside each other: a repetition begins when the one before is over in all of them.
    pub(super) fn side_by_side(all: &[&Results]) -> Vec<Timeline> {
        let second_counts = second_counts(all);
        all.iter().map(|results| Timeline::laid(results, &second_counts)).collect()
    }

    /// With room for so many seconds in each repetition.
    fn laid(results: &Results, second_counts: &[usize]) -> Timeline {
        let kinds = kind_names(results);
        let second_count: usize = second_counts.iter().sum();
        let slot_seconds = second_count.div_ceil(SLOT_COUNT_MAX).max(1);
        let mut spans = Vec::new();
        let mut from = 0;
        for (repetition, room) in results.repetitions.iter().zip(second_counts) {
            let until_s = (from + room) as f64;
            spans.push(Span { until_s, ..span(repetition, from as f64, slot_seconds, &kinds) });
            from += room;
        }
        Timeline { kinds, spans, slot_seconds, seconds: second_count as f64 }
    }

    /// Each slot, with the repetition that it is of.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.spans.iter().flat_map(|span| &span.slots)
    }
}

impl Slot {
    /// Where its point stands.
    pub(super) fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.until_s)
    }

    /// All kinds that have any.
    pub(super) fn responses(&self) -> impl Iterator<Item = &Response> {
        self.kinds.iter().filter_map(|moment| moment.response.as_ref())
    }
}

/// Whole seconds that a repetition takes, so that none is left out though nothing ended in it.
pub(super) fn second_count(repetition: &Repetition) -> usize {
    let recorded = repetition.kinds.iter().map(|kind| kind.by_second.len()).max().unwrap_or(0);
    measured_seconds(repetition).max(recorded).min(SECOND_COUNT_MAX)
}

/// As many as are plotted: a last one that has stragglers alone is not.
fn plotted_count(repetition: &Repetition) -> usize {
    let (all, measured) = (second_count(repetition), measured_seconds(repetition));
    let in_second = |second: usize| {
        let kinds = repetition.kinds.iter().filter_map(|kind| kind.by_second.get(second));
        kinds.map(|of| of.response.count() + of.error_count + of.wrong_count).sum::<u64>() as f64
    };
    let late = repetition.kinds.iter().filter_map(|kind| kind.by_second.get(measured));
    let are_stragglers = all == measured + 1
        && measured > 0
        && late.map(|second| second.response.max_us()).max().unwrap_or(0) <= STRAGGLING_MAX_US
        && in_second(measured) <= in_second(measured - 1) * STRAGGLING_PART;
    if are_stragglers { measured } else { all }
}

/// Whole seconds that each repetition takes in the run in which it takes most.
fn second_counts(all: &[&Results]) -> Vec<usize> {
    let repetition_count = all.iter().map(|results| results.repetitions.len()).max().unwrap_or(0);
    let of = |index: usize| {
        let own = all.iter().filter_map(|results| results.repetitions.get(index));
        own.map(plotted_count).max().unwrap_or(0)
    };
    (0..repetition_count).map(of).collect()
}

fn measured_seconds(repetition: &Repetition) -> usize {
    (repetition.seconds - TOLERANCE_S).ceil().max(0.0) as usize
}

/// The second of the timeline at which each repetition begins.
pub(super) fn starts(results: &Results) -> impl Iterator<Item = usize> {
    let mut next = 0;
    results.repetitions.iter().map(move |repetition| {
        let start = next;
        next += second_count(repetition);
        start
    })
}

/// How much of a second, numbered from 0, belongs to a repetition.
pub(super) fn measured_part(repetition: &Repetition, second: usize) -> f64 {
    let left = repetition.seconds - second as f64;
    if left > TOLERANCE_S { left.clamp(PART_MIN, 1.0) } else { 1.0 }
}

fn span(repetition: &Repetition, from_s: f64, slot_seconds: usize, kinds: &[String]) -> Span {
    let (second_count, all_count) = (plotted_count(repetition), second_count(repetition));
    let until_s = from_s + second_count as f64;
    let measured_count = measured_seconds(repetition).min(second_count);
    let slot = |first: usize| {
        let is_late = first >= measured_count;
        let end = if is_late { second_count } else { measured_count };
        let seconds = first..end.min(first + slot_seconds);
        let part = |second| if is_late { 0.0 } else { measured_part(repetition, second) };
        let of_kind = |name: &String| {
            let kind = repetition.kinds.iter().find(|kind| kind.kind == *name);
            let stragglers = if seconds.end == second_count { all_count - second_count } else { 0 };
            let count = seconds.len() + stragglers;
            kind.map(|kind| moment(kind, first, count)).unwrap_or_default()
        };
        Slot {
            from_s: from_s + first as f64,
            until_s: from_s + seconds.end as f64,
            measured_s: seconds.clone().map(part).sum(),
            kinds: kinds.iter().map(of_kind).collect(),
        }
    };
    let at = |at_s: f64| (from_s + at_s).clamp(from_s, until_s);
    let mut events: Vec<(f64, String)> =
        repetition.events.iter().map(|event| (at(event.at_s), event.text.clone())).collect();
    events.sort_by(|left, right| left.0.total_cmp(&right.0));
    let in_time = (0..measured_count).step_by(slot_seconds);
    let slots = in_time.chain((measured_count..second_count).step_by(slot_seconds)).map(slot).collect();
    Span { from_s, until_s, is_kept: repetition.is_kept, slots, events }
}

fn moment(kind: &KindResults, first: usize, count: usize) -> Moment {
    let mut moment = Moment::default();
    let mut latencies = Latencies::new();
    for second in kind.by_second.iter().skip(first).take(count) {
        latencies.add(&second.response);
        moment.failed_count += second.error_count + second.wrong_count;
    }
    moment.count = latencies.count();
    moment.response = (moment.count > 0).then(|| Response {
        p50_us: latencies.quantile_us(0.5),
        p99_us: latencies.quantile_us(0.99),
        max_us: latencies.max_us(),
        heat: heat(&latencies),
    });
    moment
}

fn heat(latencies: &Latencies) -> BTreeMap<i32, u64> {
    let mut heat = BTreeMap::new();
    for (us, count) in latencies.steps() {
        let bucket = ((us.max(1) as f64).log10() * BUCKETS_PER_DECADE).floor() as i32;
        *heat.entry(bucket).or_default() += count;
    }
    heat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{empty, example, flat, long_example};

    #[test]
    fn repetitions_stand_one_behind_the_other_and_no_second_is_left_out() {
        let mut results = example();
        results.repetitions[1].kinds.iter_mut().for_each(|kind| kind.by_second.truncate(3));
        let timeline = Timeline::of(&results);
        assert_eq!(timeline.seconds, 121.0);
        let froms: Vec<f64> = timeline.spans.iter().map(|span| span.from_s).collect();
        assert_eq!(froms, [0.0, 30.0, 60.0, 90.0]);
        assert_eq!(timeline.spans[1].slots.len(), 30);
        assert!(timeline.spans[1].slots[20].responses().next().is_none());
        assert_eq!(timeline.spans[2].events[0].0, 70.4);
    }

    #[test]
    fn repetitions_of_several_runs_begin_together() {
        let (long, short) = (long_example(12), long_example(9));
        let timelines = Timeline::side_by_side(&[&short, &long]);
        for timeline in &timelines {
            let froms: Vec<f64> = timeline.spans.iter().map(|span| span.from_s).collect();
            assert_eq!((froms, timeline.seconds), (vec![0.0, 12.0, 24.0, 36.0], 49.0));
        }
        assert_eq!(timelines[0].spans[1].slots.len(), 9);
    }

    #[test]
    fn a_long_run_has_slots_of_several_seconds_with_all_of_its_operations() {
        let results = long_example(100);
        let timeline = Timeline::of(&results);
        assert_eq!(timeline.slot_seconds, 2);
        assert_eq!(timeline.slots().count(), 4 * 50 + 1);
        let late = timeline.slots().last().unwrap();
        assert_eq!((late.measured_s, late.until_s - late.from_s), (0.0, 1.0));
        let counted: u64 = timeline.slots().flat_map(|slot| &slot.kinds).map(|moment| moment.count).sum();
        let run: u64 = results.repetitions.iter().map(|one| one.total().response.count()).sum();
        assert_eq!(counted, run);
        let heat: u64 = timeline.slots().flat_map(Slot::responses).flat_map(|one| one.heat.values()).sum();
        assert_eq!(heat, run);
    }

    #[test]
    fn stragglers_are_of_the_last_second_and_many_that_are_late_are_not() {
        for (late_count, slot_count) in [(5, 2), (60, 3)] {
            let mut results = flat(&[(100, 250)]);
            results.repetitions[0].seconds = 2.0;
            let by_second = &mut results.repetitions[0].kinds[0].by_second;
            let mut late = by_second[0].clone();
            late.response = Latencies::new();
            (0..late_count).for_each(|_| late.response.record(300));
            by_second.resize(2, by_second[0].clone());
            by_second.push(late);
            let all: u64 = by_second.iter().map(|second| second.response.count()).sum();
            let timeline = Timeline::of(&results);
            let counted: u64 = timeline.slots().map(|slot| slot.kinds[0].count).sum();
            assert_eq!((timeline.slots().count(), counted), (slot_count, all));
        }
    }

    #[test]
    fn a_part_of_a_second_is_told_from_a_whole_one() {
        let mut results = flat(&[(10, 100)]);
        results.repetitions[0].seconds = 2.5;
        assert_eq!(second_count(&results.repetitions[0]), 3);
        let parts: Vec<f64> = Timeline::of(&results).slots().map(|slot| slot.measured_s).collect();
        assert_eq!(parts, [1.0, 1.0, 0.5]);
        assert_eq!(Timeline::of(&empty()).slots().count(), 0);
    }
}
