//! What the notes of a load say.

use std::time::Duration;

use tokio::time::Instant;

use super::load::Record;

/// How long a moment is in which the rate is looked at.
const MOMENT: Duration = Duration::from_millis(100);
/// And one in which reads are.
const READS_MOMENT: Duration = Duration::from_millis(200);
/// Moments begin so long after each other.
const STEP: Duration = Duration::from_millis(10);

/// Moments between two times, each by its begin.
fn moments(from: Instant, until: Instant, length: Duration) -> impl Iterator<Item = Instant> {
    let count = until.saturating_duration_since(from).saturating_sub(length).as_millis() / STEP.as_millis();
    (0..=count as u32).map(move |index| from + STEP * index)
}

/// The least part of the rate that was answered well within any 100 ms between two times.
pub(super) fn worst_moment(records: &[Record], rate: f64, (from, until): (Instant, Instant)) -> f64 {
    let mut answered: Vec<Instant> = records.iter().filter_map(well_answered).collect();
    answered.sort();
    let count = |begin: Instant| {
        let before = |end: Instant| answered.partition_point(|when| *when < end);
        before(begin + MOMENT) - before(begin)
    };
    let least = moments(from, until, MOMENT).map(count).min().unwrap_or(0);
    least as f64 / (rate * MOMENT.as_secs_f64())
}

fn well_answered(record: &Record) -> Option<Instant> {
    record.answered.filter(|(_, is_good)| *is_good).map(|(when, _)| when)
}

/// Of reads that were sent between two times, how long all but one of a hundred took at most. One that was not answered
/// took for ever.
pub(super) fn read_p99(records: &[Record], from: Instant, until: Instant) -> Duration {
    let is_in = |record: &&Record| record.is_read && record.sent >= from && record.sent < until;
    let took = |record: &Record| well_answered(record).map_or(Duration::MAX, |when| when - record.sent);
    let mut latencies: Vec<Duration> = records.iter().filter(is_in).map(took).collect();
    latencies.sort();
    let index = (latencies.len() * 99).div_ceil(100).saturating_sub(1);
    latencies.get(index).copied().unwrap_or_default()
}

/// How long after the first time, until the second, reads took longer than that.
pub(super) fn slow_for(records: &[Record], bound: Duration, (from, until): (Instant, Instant)) -> Duration {
    let is_slow = |begin: &Instant| read_p99(records, *begin, *begin + READS_MOMENT) > bound;
    let last_slow = moments(from, until, READS_MOMENT).filter(is_slow).last();
    last_slow.map_or(Duration::ZERO, |begin| begin - from + STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One read every millisecond for a second, each of which takes so many.
    fn reads(begun: Instant, took: impl Fn(u64) -> Option<u64>) -> Vec<Record> {
        let record = |millis| {
            let sent = begun + Duration::from_millis(millis);
            let answered = took(millis).map(|took| (sent + Duration::from_millis(took), true));
            Record { sent, node: 0, is_read: true, answered }
        };
        (0..1_000).map(record).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_is_the_worst_moment_and_what_waits_for_ever_is_slow() {
        let begun = Instant::now();
        let all = (begun + Duration::from_millis(10), begun + Duration::from_millis(1_000));
        let steady = reads(begun, |_| Some(2));
        assert_eq!(worst_moment(&steady, 1_000.0, all), 1.0);
        assert_eq!(read_p99(&steady, begun, all.1), Duration::from_millis(2));
        let halted = reads(begun, |millis| (!(300..350).contains(&millis)).then_some(2));
        assert_eq!(worst_moment(&halted, 1_000.0, all), 0.5);
        assert_eq!(read_p99(&halted, begun, all.1), Duration::MAX);
        let slow = slow_for(&halted, Duration::from_millis(4), (begun, all.1));
        assert_eq!(slow, Duration::from_millis(350));
    }
}
