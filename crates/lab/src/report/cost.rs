//! What operations took of the machines, over the kept repetitions.

use std::collections::BTreeMap;

use crate::results::Repetition;

/// Figures are for each operation that went well; what is not known of any repetition is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    pub(crate) client_cpu_us: Option<f64>,
    pub(crate) server_cpu_us: Option<f64>,
    /// The most that the servers had at the end of a repetition.
    pub(crate) server_resident_bytes: Option<u64>,
    /// Bytes of answers.
    pub(crate) received_bytes: Option<f64>,
    /// Bytes that servers read from disks.
    pub(crate) disk_read_bytes: Option<f64>,
    /// Bytes that servers wrote to disks.
    pub(crate) disk_written_bytes: Option<f64>,
    /// Bytes that are read from disks for each byte of answers.
    pub(crate) read_amplification: Option<f64>,
    /// Hits and requests of the servers' caches.
    pub(crate) caches: BTreeMap<String, (u64, u64)>,
}

impl Cost {
    /// Of repetitions, each with how many operations went well in it.
    pub(super) fn of(kept: &[(&Repetition, u64)]) -> Cost {
        let each = |figure: &dyn Fn(&Repetition) -> Option<f64>| each(kept, figure);
        Cost {
            client_cpu_us: each(&|one| Some(one.client_cpu_s * 1e6)),
            server_cpu_us: each(&|one| Some(one.server_cpu_s? * 1e6)),
            server_resident_bytes: kept.iter().filter_map(|(one, _)| one.server_resident_bytes).max(),
            received_bytes: each(&|one| (one.received_bytes > 0).then_some(one.received_bytes as f64)),
            disk_read_bytes: each(&|one| Some(one.server_disk_bytes?.0 as f64)),
            disk_written_bytes: each(&|one| Some(one.server_disk_bytes?.1 as f64)),
            read_amplification: read_amplification(kept),
            caches: caches(kept),
        }
    }

    /// The part of a cache's requests that were hits.
    pub(crate) fn hit_part(&self, cache: &str) -> Option<f64> {
        let (hit_count, request_count) = self.caches.get(cache)?;
        (*request_count > 0).then(|| *hit_count as f64 / *request_count as f64)
    }
}

/// A sum over the repetitions of which it is known, for each operation of these; none of no operation.
fn each(kept: &[(&Repetition, u64)], figure: &dyn Fn(&Repetition) -> Option<f64>) -> Option<f64> {
    let known = kept.iter().filter_map(|(one, count)| Some((figure(one)?, *count)));
    let (sum, count) = known.reduce(|one, other| (one.0 + other.0, one.1 + other.1))?;
    (count > 0).then(|| sum / count as f64)
}

/// Over the repetitions of which both are known.
fn read_amplification(kept: &[(&Repetition, u64)]) -> Option<f64> {
    let known = kept.iter().filter_map(|(one, _)| Some((one.server_disk_bytes?.0, one.received_bytes)));
    let (read, received) = known.reduce(|one, other| (one.0 + other.0, one.1 + other.1))?;
    (received > 0).then(|| read as f64 / received as f64)
}

fn caches(kept: &[(&Repetition, u64)]) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, (hit_count, request_count)) in kept.iter().flat_map(|(one, _)| &one.caches) {
        let sums = all.entry(name.clone()).or_default();
        *sums = (sums.0 + hit_count, sums.1 + request_count);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::example::flat;
    use super::super::summary::Summary;

    #[test]
    fn cost_is_told_of_what_went_well_where_it_is_known() {
        let mut results = flat(&[(100, 100), (300, 900)]);
        results.repetitions[0].client_cpu_s = 0.4;
        results.repetitions[1].server_cpu_s = Some(0.3);
        let cost = Summary::of(&results).cost;
        assert_eq!(cost.client_cpu_us, Some(1000.0));
        assert_eq!(cost.server_cpu_us, Some(1000.0));
        assert_eq!(
            (cost.server_resident_bytes, cost.received_bytes, cost.disk_read_bytes),
            (None, None, None)
        );
    }

    #[test]
    fn reads_from_disks_are_held_against_answers_and_hits_against_requests() {
        let mut results = flat(&[(100, 100), (100, 100)]);
        for one in &mut results.repetitions {
            one.received_bytes = 1000;
            one.server_disk_bytes = Some((4000, 200));
            one.caches.insert("chunks".to_owned(), (30, 40));
            one.caches.insert("rows".to_owned(), (0, 0));
        }
        let cost = Summary::of(&results).cost;
        assert_eq!((cost.disk_read_bytes, cost.disk_written_bytes), (Some(40.0), Some(2.0)));
        assert_eq!(cost.read_amplification, Some(4.0));
        assert_eq!(
            [cost.hit_part("chunks"), cost.hit_part("rows"), cost.hit_part("keys")],
            [Some(0.75), None, None]
        );
    }
}
