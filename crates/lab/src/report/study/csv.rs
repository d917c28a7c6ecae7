//! Each repetition of each part and server as a line, for a spreadsheet or a script.

use std::fmt::Write;

use super::super::csv::quoted;
use crate::figures::{COST, FIGURES};
use crate::study::Study;

/// Times are in microseconds, sizes in bytes; what is not known is empty.
pub fn study_csv(study: &Study) -> String {
    let mut csv = "part,server,repetition,is_kept,due_per_s,done_per_s,p50_us,p95_us,p99_us,p999_us,max_us,good_count,\
                   error_count,wrong_count,endless_count,client_cpu_s,server_cpu_us_per_op,server_resident_bytes,\
                   disk_read_bytes,disk_written_bytes,received_bytes\n"
        .to_owned();
    for (part, comparison) in &study.parts {
        for (server, results) in comparison.results() {
            for (index, one) in results.repetitions.iter().enumerate() {
                let (total, rate) = (one.total(), FIGURES[0].1(one).unwrap_or(0.0));
                let due = match results.manifest.plan.pace {
                    crate::manifest::Pace::Open { rate } => rate.to_string(),
                    crate::manifest::Pace::Closed { .. } => String::new(),
                };
                let times =
                    [0.5, 0.95, 0.99, 0.999].map(|quantile| total.response.quantile_us(quantile).to_string());
                let (disk_read, disk_written) = match one.server_disk_bytes {
                    Some((read, written)) => (read.to_string(), written.to_string()),
                    None => Default::default(),
                };
                let cost = COST.1(one).map_or_else(String::new, |us| format!("{us:.2}"));
                let memory = one.server_resident_bytes.map_or_else(String::new, |bytes| bytes.to_string());
                let _ = writeln!(
                    csv,
                    "{},{},{},{},{due},{rate:.1},{},{},{},{},{},{},{:.3},{cost},{memory},{disk_read},{disk_written},{}",
                    quoted(&part.name),
                    quoted(server),
                    index + 1,
                    one.is_kept,
                    times.join(","),
                    total.response.max_us(),
                    total.response.count(),
                    total.error_count,
                    total.wrong_count,
                    one.endless_count,
                    one.client_cpu_s,
                    one.received_bytes,
                );
            }
        }
    }
    csv
}
