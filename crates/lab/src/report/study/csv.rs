//! Each repetition of each part and server as a line, for a spreadsheet or a script.

use super::super::csv::quoted;
use super::input::{Input, Run};
use crate::figures::COST;
use crate::manifest::Pace;
use crate::results::Repetition;
use crate::study::Study;

const HEAD: &str = "part,server,repetition,is_kept,due_per_s,done_per_s,p50_us,p95_us,p99_us,p999_us,max_us,good_count,\
    error_count,wrong_count,endless_count,asked_again_count,client_cpu_s,server_cpu_us_per_op,server_resident_bytes,\
    disk_read_bytes,disk_written_bytes,received_bytes";

/// Times are in microseconds, sizes in bytes; what is not known is empty. Each cache has its hits and its requests.
pub fn study_csv(study: &Study) -> String {
    let input = Input::of(study);
    let caches = input.caches();
    let mut csv = HEAD.to_owned();
    for cache in &caches {
        let columns = ["hit", "request"].map(|what| quoted(&format!("cache_{cache}_{what}_count")));
        csv.push_str(&format!(",{}", columns.join(",")));
    }
    csv.push('\n');
    for run in &input.runs {
        for (index, repetition) in run.results.repetitions.iter().enumerate() {
            csv.push_str(&line(run, index + 1, repetition, &caches));
        }
    }
    csv
}

fn line(run: &Run<'_>, number: usize, one: &Repetition, caches: &[String]) -> String {
    let total = one.total();
    let due = match run.results.manifest.plan.pace {
        Pace::Open { rate } => rate.to_string(),
        Pace::Closed { .. } => String::new(),
    };
    let mut fields =
        vec![quoted(&run.part.name), quoted(run.server), number.to_string(), one.is_kept.to_string()];
    fields.extend([due, format!("{:.1}", one.rate())]);
    fields.extend([0.5, 0.95, 0.99, 0.999].map(|part| total.response.quantile_us(part).to_string()));
    let counts = [total.response.max_us(), total.response.count(), total.error_count, total.wrong_count];
    fields.extend(counts.map(|count| count.to_string()));
    fields.extend([one.endless_count, one.asked_again_count].map(|count| count.to_string()));
    fields.push(format!("{:.3}", one.client_cpu_s));
    fields.push(COST.1(one).map_or_else(String::new, |us| format!("{us:.2}")));
    let disk = one.server_disk_bytes.unzip();
    fields.extend([
        known(one.server_resident_bytes),
        known(disk.0),
        known(disk.1),
        one.received_bytes.to_string(),
    ]);
    for cache in caches {
        let counts = one.caches.get(cache).copied().unzip();
        fields.extend([known(counts.0), known(counts.1)]);
    }
    format!("{}\n", fields.join(","))
}

fn known(figure: Option<u64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}
