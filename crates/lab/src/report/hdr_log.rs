//! HdrHistogram's interval log, version 1.3: a histogram of each second, for its own tools.
//!
//! Tags tell kinds and times apart, as `read.response` and `read.service`. A tool adds up all lines of a tag, so those
//! of dropped repetitions have another one, `dropped.read.response`. Values are microseconds; the times of lines are
//! those of the plots, from the beginning of the first measurement on, with warm-ups and pauses left out.

use std::fmt::Write;

use super::summary::kind_names;
use super::timeline::{measured_part, second_count, starts};
use crate::latencies::Latencies;
use crate::results::{Repetition, Results, Second};

/// Two lines for each second and kind of each repetition.
pub fn hdr_log(results: &Results) -> String {
    let (lab, began_at_s) = (&results.manifest.lab, results.manifest.began_at_s);
    let mut log = format!(
        "#[Histogram log of a run of Peristyle's lab {lab}; values in microseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {began_at_s}.000 (seconds since epoch)]\n\
         #[BaseTime: {began_at_s}.000 (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    );
    let kinds = kind_names(results);
    for (repetition, start) in results.repetitions.iter().zip(starts(results)) {
        add_repetition(&mut log, repetition, start, &kinds);
    }
    log
}

fn add_repetition(log: &mut String, repetition: &Repetition, start: usize, kinds: &[String]) {
    let none = Second::default();
    let prefix = if repetition.is_kept { "" } else { "dropped." };
    for second_index in 0..second_count(repetition) {
        let (at_s, length_s) = (start + second_index, measured_part(repetition, second_index));
        for name in kinds {
            let kind = repetition.kinds.iter().find(|kind| kind.kind == *name);
            let second = kind.and_then(|kind| kind.by_second.get(second_index)).unwrap_or(&none);
            let tag = format!("{prefix}{}", tag(name));
            add_line(log, &format!("{tag}.response,{at_s}.000,{length_s:.3}"), &second.response);
            add_line(log, &format!("{tag}.service,{at_s}.000,{length_s:.3}"), &second.service);
        }
    }
}

fn add_line(log: &mut String, head: &str, latencies: &Latencies) {
    let _ = writeln!(log, "Tag={head},{}.000,{}", latencies.max_us(), latencies.encoded());
}

/// A kind's name without what would end a tag.
fn tag(name: &str) -> String {
    name.replace([',', ' ', '\r', '\n'], "_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::report::example::{empty, example, flat};
    use crate::report::summary::Summary;

    /// What a tool makes of a log: all lines of a tag added up.
    fn read(log: &str) -> BTreeMap<String, Latencies> {
        let mut by_tag: BTreeMap<String, Latencies> = BTreeMap::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            if let LogEntry::Interval(line) = entry.expect("a line that can be read") {
                let latencies = Latencies::decode(line.encoded_histogram()).unwrap();
                assert_eq!(line.max(), latencies.max_us() as f64);
                by_tag.entry(line.tag().unwrap().as_str().to_owned()).or_default().add(&latencies);
            }
        }
        by_tag
    }

    #[test]
    fn a_log_is_read_back_with_the_figures_of_the_summary() {
        let results = example();
        let by_tag = read(&hdr_log(&results));
        let tags: Vec<&str> = by_tag.keys().map(String::as_str).collect();
        assert_eq!(tags[..2], ["dropped.read.response", "dropped.read.service"]);
        assert_eq!(tags[4..], ["read.response", "read.service", "update.response", "update.service"]);
        let summary = Summary::of(&results);
        assert_eq!(by_tag["read.response"], summary.kinds[0].response.latencies);
        assert_eq!(by_tag["update.service"], summary.kinds[1].service.latencies);
    }

    #[test]
    fn times_are_since_the_first_measurement() {
        let log = hdr_log(&example());
        let entries: Vec<LogEntry<'_>> =
            IntervalLogIterator::new(log.as_bytes()).map(Result::unwrap).collect();
        assert!(matches!(entries[0], LogEntry::StartTime(at) if at.as_secs() == 1_764_378_000));
        assert!(matches!(entries[1], LogEntry::BaseTime(_)));
        let Some(LogEntry::Interval(last)) = entries.last() else { panic!("no line") };
        assert_eq!((last.start_timestamp().as_secs(), last.duration().as_secs()), (120, 1));
    }

    #[test]
    fn a_kind_can_not_break_a_line() {
        let mut results = flat(&[(1, 1)]);
        results.repetitions[0].kinds[0].kind = "a, b\nc".to_owned();
        assert_eq!(read(&hdr_log(&results)).keys().next().unwrap(), "a__b_c.response");
        assert!(read(&hdr_log(&empty())).is_empty());
    }
}
