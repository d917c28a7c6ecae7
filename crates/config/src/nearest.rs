//! Finds the option that was probably meant.

use crate::options::OPTIONS;

/// Names people know from `cassandra.yaml`, and what they are here.
const FROM_CASSANDRA: &[(&str, &str)] = &[
    ("data_file_directories", "data_dir"),
    ("commitlog_directory", "data_dir"),
    ("rpc_address", "listen"),
    ("native_transport_port", "listen"),
    ("start_native_transport", "listen"),
    ("native_transport_max_frame_size", "frame_bytes_max"),
    ("native_transport_max_concurrent_connections", "connections_max"),
    ("native_transport_max_concurrent_connections_per_ip", "connections_max_per_address"),
    ("native_transport_max_request_data_in_flight", "in_flight_bytes_max"),
    ("native_transport_max_concurrent_requests_in_bytes", "in_flight_bytes_max"),
    ("native_transport_timeout", "request_wait_max"),
    ("commitlog_sync_period_in_ms", "commitlog_sync_period"),
    ("commitlog_sync_group_window", "commitlog_sync_window"),
    ("commitlog_sync_group_window_in_ms", "commitlog_sync_window"),
    ("compaction_throughput_mb_per_sec", "compaction_throughput"),
    ("disk_access_mode", "disk_access"),
    ("memtable_heap_space", "memory"),
    ("file_cache_size", "memory"),
    ("slow_query_log_timeout_in_ms", "slow_query_log_timeout"),
    ("dc", "datacenter"),
    ("listen_interface", "listen_address"),
    ("ssl_storage_port", "storage_port"),
    ("seed_provider", "seeds"),
];

/// The option whose name is nearest to what was written, if any is near.
pub(crate) fn nearest_option(written: &str) -> Option<&'static str> {
    let written = written.to_lowercase().replace('-', "_");
    if let Some((_, option)) = FROM_CASSANDRA.iter().find(|(known, _)| *known == written) {
        return Some(option);
    }
    let is_near = |distance: usize, name: &str| distance <= (name.len() / 3).max(2);
    OPTIONS
        .iter()
        .map(|option| (distance(&written, option.name), option.name))
        .filter(|(distance, name)| is_near(*distance, name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour to make
/// one word of the other.
fn distance(left: &str, right: &str) -> usize {
    /// A longer word is near to nothing, and not worth the time.
    const LETTERS_MAX: usize = 64;
    let left: Vec<char> = left.chars().take(LETTERS_MAX).collect();
    let right: Vec<char> = right.chars().take(LETTERS_MAX).collect();
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_options_are_recognised() {
        for (written, meant) in [
            ("data_dri", "data_dir"),
            ("data-dir", "data_dir"),
            ("memmory", "memory"),
            ("shard", "shards"),
            ("commitlog_sync_periode", "commitlog_sync_period"),
            ("Cluster_Name", "cluster_name"),
            ("native_transport_port", "listen"),
        ] {
            assert_eq!(nearest_option(written), Some(meant), "{written}");
        }
    }

    #[test]
    fn something_else_entirely_is_near_to_nothing() {
        assert_eq!(nearest_option("streaming_keep_alive_period"), None);
        assert_eq!(nearest_option(&"x".repeat(10_000)), None);
    }

    #[test]
    fn every_name_of_cassandra_leads_to_an_option() {
        for (_, option) in FROM_CASSANDRA {
            assert!(OPTIONS.iter().any(|known| known.name == *option), "{option}");
        }
    }
}
