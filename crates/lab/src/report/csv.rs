//! Each second of each repetition as a line of a table, for a spreadsheet or a script.

use std::fmt::Write;

use super::summary::{QUANTILES, kind_names};
use super::timeline::second_count;
use crate::latencies::Latencies;
use crate::results::{Repetition, Results, Second};

/// A line for each second and kind of each repetition, those that are dropped among them. Repetitions are numbered from
/// 1 and seconds from 0; latencies are in microseconds, and 0 where nothing went well.
pub fn csv(results: &Results) -> String {
    let mut csv = "repetition,is_kept,second,kind,count,error_count,wrong_count".to_owned();
    for time in ["response", "service"] {
        QUANTILES
            .iter()
            .for_each(|(name, _)| csv.push_str(&format!(",{time}_{}_us", name.replace('.', "_"))));
        csv.push_str(&format!(",{time}_max_us"));
    }
    csv.push('\n');
    let kinds = kind_names(results);
    for (index, repetition) in results.repetitions.iter().enumerate() {
        add_repetition(&mut csv, index + 1, repetition, &kinds);
    }
    csv
}

fn add_repetition(csv: &mut String, number: usize, repetition: &Repetition, kinds: &[String]) {
    let none = Second::default();
    for second_index in 0..second_count(repetition) {
        for name in kinds {
            let kind = repetition.kinds.iter().find(|kind| kind.kind == *name);
            let second = kind.and_then(|kind| kind.by_second.get(second_index)).unwrap_or(&none);
            let Second { response, service, error_count, wrong_count } = second;
            let (is_kept, name, count) = (repetition.is_kept, quoted(name), response.count());
            let _ =
                write!(csv, "{number},{is_kept},{second_index},{name},{count},{error_count},{wrong_count}");
            add_latencies(csv, response);
            add_latencies(csv, service);
            csv.push('\n');
        }
    }
}

fn add_latencies(csv: &mut String, latencies: &Latencies) {
    for (_, quantile) in QUANTILES {
        let _ = write!(csv, ",{}", latencies.quantile_us(quantile));
    }
    let _ = write!(csv, ",{}", latencies.max_us());
}

/// As RFC 4180 has it: in quotes, if it could be taken for more than one field.
pub(super) fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{example, flat};

    #[test]
    fn each_second_of_each_kind_has_a_line() {
        let csv = csv(&example());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 4 * 30 * 2 + 2);
        let columns: Vec<&str> = lines[0].split(',').collect();
        assert_eq!(columns.len(), 17);
        assert!(lines.iter().all(|line| line.split(',').count() == columns.len()));
        assert!(lines[1].starts_with("1,false,0,read,"), "{}", lines[1]);
        assert!(lines[241].starts_with("4,true,29,update,") || lines[240].starts_with("4,true,29,update,"));
        assert!(columns.contains(&"response_p99_9_us") && columns.contains(&"service_max_us"));
    }

    #[test]
    fn a_line_tells_the_figures_of_its_second() {
        let mut results = flat(&[(7, 300)]);
        results.repetitions[0].kinds[0].kind = "a,\"b\"".to_owned();
        results.repetitions[0].seconds = 2.0;
        let csv = csv(&results);
        let first = "1,true,0,\"a,\"\"b\"\"\",7,0,0,300,300,300,300,300,300,300,300,300,300";
        assert_eq!(csv.lines().nth(1), Some(first));
        assert_eq!(csv.lines().nth(2), Some("1,true,1,\"a,\"\"b\"\"\",0,0,0,0,0,0,0,0,0,0,0,0,0"));
    }
}
