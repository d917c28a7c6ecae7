//! `nodetool proxyhistograms`: how long requests of clients have taken, in Cassandra's words.

use std::io::Write;

use management::{Latencies, Latency};

use super::NodetoolError;

/// Cassandra's columns, and what of ours they show: nothing of what is not done here.
const COLUMNS: [(&str, &str); 6] = [
    ("Read Latency", "read"),
    ("Write Latency", "write"),
    ("Range Latency", "range"),
    ("CAS Read Latency", "serial_read"),
    ("CAS Write Latency", "conditional_write"),
    ("View Write Latency", ""),
];

/// One of the figures, in microseconds.
type Figure = fn(&Latency) -> u64;

/// Its rows.
const ROWS: [(&str, Figure); 7] = [
    ("50%", |latency| latency.p50_micros),
    ("75%", |latency| latency.p75_micros),
    ("95%", |latency| latency.p95_micros),
    ("98%", |latency| latency.p98_micros),
    ("99%", |latency| latency.p99_micros),
    ("Min", |latency| latency.min_micros),
    ("Max", |latency| latency.max_micros),
];

pub(super) fn print(latencies: &Latencies, out: &mut impl Write) -> Result<(), NodetoolError> {
    let columns = COLUMNS.map(|(_, kind)| latencies.requests.get(kind).cloned().unwrap_or_default());
    writeln!(out, "proxy histograms")?;
    writeln!(out, "{}", line("Percentile", COLUMNS.map(|(name, _)| name.to_owned())))?;
    writeln!(out, "{}", line("", COLUMNS.map(|_| "(micros)".to_owned())))?;
    for (name, figure) in ROWS {
        let cells = columns.each_ref().map(|latency| format!("{:.2}", figure(latency) as f64));
        writeln!(out, "{}", line(name, cells))?;
    }
    Ok(writeln!(out)?)
}

fn line(first: &str, cells: [String; 6]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>19}")).collect();
    format!("{first:<10}{cells}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_requests_are_told_in_cassandras_words() {
        let write = Latency { p50_micros: 40, p99_micros: 1_200, max_micros: 70_000, ..Latency::default() };
        let latencies = Latencies { requests: [("write".to_owned(), write)].into() };
        let mut out = Vec::new();
        print(&latencies, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "proxy histograms");
        assert!(lines[1].starts_with("Percentile       Read Latency      Write Latency      Range Latency"));
        assert!(lines[3].starts_with("50%                      0.00              40.00               0.00"));
        assert_eq!(lines.iter().map(|line| line.len()).max(), Some(10 + 6 * 19));
        assert_eq!((lines[9].split_whitespace().nth(2), lines.len()), (Some("70000.00"), 11), "{out}");
    }
}
