//! `compactionstats`, `compactionhistory` and what else concerns compaction.

use std::io::Write;

use clap::Args;
use management::{ActiveCompaction, Compaction, CompactionHistory, Compactions, PendingCompactions};
use serde::Serialize;
use serde_json::json;
use types::calendar::Day;

use super::http::Management;
use super::{NodetoolError, numbers, target};

/// `nodetool compact`.
#[derive(Args, Debug)]
pub(super) struct CompactArguments {
    /// Use -s to not create a single big file
    #[arg(short, long)]
    split_output: bool,
    /// Use --user-defined to submit listed files for user-defined compaction
    #[arg(long)]
    user_defined: bool,
    /// Use -st to specify a token at which the compaction range starts (inclusive)
    #[arg(long, allow_hyphen_values = true, value_name = "start_token")]
    start_token: Option<String>,
    /// Use -et to specify a token at which compaction range ends (inclusive)
    #[arg(long, allow_hyphen_values = true, value_name = "end_token")]
    end_token: Option<String>,
    /// The keyspace followed by one or many tables or list of SSTable data files when using --user-defined
    names: Vec<String>,
}

/// `nodetool compactionstats`.
#[derive(Args, Debug)]
pub(super) struct StatsArguments {
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// Display fields matching vtable output
    #[arg(short = 'V', long)]
    vtable: bool,
}

pub(super) fn compact(management: &Management, arguments: &CompactArguments) -> Result<(), NodetoolError> {
    let is_range = arguments.start_token.is_some() || arguments.end_token.is_some();
    let wrong = |what: &str| Err(NodetoolError::Failed(format!("Invalid option combination: {what}")));
    if arguments.split_output && (arguments.user_defined || is_range) {
        return wrong("Can not use split-output here");
    }
    if arguments.user_defined && is_range {
        return wrong("Can not provide tokens when using user-defined");
    }
    if arguments.user_defined && arguments.names.is_empty() {
        return Err(NodetoolError::BadUse("no table files are named".to_owned()));
    }
    let mut body = if arguments.user_defined {
        json!({ "user_defined": arguments.names })
    } else {
        target(&arguments.names)
    };
    body["split_output"] = json!(arguments.split_output);
    body["start_token"] = json!(arguments.start_token);
    body["end_token"] = json!(arguments.end_token);
    management.post("/v1/compact", &body)
}

/// How many compactions may run at once on the node.
pub(super) fn concurrent_compactors(management: &Management) -> Result<u64, NodetoolError> {
    let stats: Compactions = management.get("/v1/compactions", &[])?;
    Ok(stats.concurrent_compactors)
}

pub(super) fn stats(
    management: &Management,
    arguments: &StatsArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let stats: Compactions = management.get("/v1/compactions", &[])?;
    print_table(&stats_rows(&stats, arguments), out)
}

fn stats_rows(stats: &Compactions, arguments: &StatsArguments) -> Vec<Vec<String>> {
    let bytes = |bytes: u64| match arguments.human_readable {
        true => numbers::file_size(bytes),
        false => bytes.to_string(),
    };
    let pending: u64 = stats.pending.iter().map(|pending| pending.count).sum();
    let mut rows = vec![
        vec!["concurrent compactors".into(), stats.concurrent_compactors.to_string()],
        vec!["pending tasks".into(), pending.to_string()],
    ];
    let of_table = |pending: &PendingCompactions| {
        vec![pending.keyspace.clone(), pending.table.clone(), pending.count.to_string()]
    };
    rows.extend(stats.pending.iter().map(of_table));
    let mean = match stats.uptime_seconds {
        0 => 0.0,
        seconds => stats.completed as f64 * 3600.0 / seconds as f64,
    };
    let rate = match stats.throughput_bytes_per_second {
        0 => "throttling disabled (0)".to_owned(),
        bytes => numbers::double(bytes as f64 / 1_048_576.0),
    };
    let minutes = (stats.uptime_seconds as f64 / 60.0).clamp(1.0, 15.0);
    rows.extend([
        vec!["compactions completed".into(), stats.completed.to_string()],
        vec!["data compacted".into(), bytes(stats.compacted_bytes)],
        vec!["compressed data compacted".into(), bytes(stats.compacted_compressed_bytes)],
        vec!["compactions aborted".into(), stats.aborted.to_string()],
        vec!["compactions reduced".into(), stats.reduced.to_string()],
        vec!["sstables dropped from compaction".into(), stats.left_out_files.to_string()],
        vec![
            "15 minute rate".into(),
            format!("{:.2}/minute", stats.completed_in_15_minutes as f64 / minutes),
        ],
        vec!["mean rate".into(), format!("{mean:.2}/hour")],
        vec!["compaction throughput (MiB/s)".into(), rate],
    ]);
    if !stats.active.is_empty() {
        rows.extend(active_rows(stats, arguments.vtable, &bytes));
    }
    rows
}

fn active_rows(stats: &Compactions, is_vtable: bool, bytes: &dyn Fn(u64) -> String) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut rows = vec![if is_vtable {
        words(&[
            "keyspace",
            "table",
            "task id",
            "completion ratio",
            "kind",
            "progress",
            "sstables",
            "total",
            "total compressed",
            "unit",
            "target directory",
        ])
    } else {
        words(&["id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress"])
    }];
    for active in &stats.active {
        let progress = match active.total_bytes {
            0 => "n/a".to_owned(),
            total => format!("{:.2}%", active.completed_bytes as f64 / total as f64 * 100.0),
        };
        let (completed, total) = (bytes(active.completed_bytes), bytes(active.total_bytes));
        rows.push(if is_vtable {
            words(&[
                &active.keyspace,
                &active.table,
                &active.id,
                &progress,
                &active.kind,
                &completed,
                &active.files.to_string(),
                &total,
                &bytes(active.total_compressed_bytes),
                "bytes",
                &active.directory,
            ])
        } else {
            words(&[
                &active.id,
                &active.kind,
                &active.keyspace,
                &active.table,
                &completed,
                &total,
                "bytes",
                &progress,
            ])
        });
    }
    let left = |active: &ActiveCompaction| active.total_bytes.saturating_sub(active.completed_bytes);
    let remaining = match stats.throughput_bytes_per_second {
        0 => "n/a".to_owned(),
        rate => {
            let seconds = stats.active.iter().map(left).sum::<u64>() / rate;
            format!("{}h{:02}m{:02}s", seconds / 3600, seconds % 3600 / 60, seconds % 60)
        }
    };
    rows.push(vec!["active compaction remaining time".into(), remaining]);
    rows
}

pub(super) fn history(
    management: &Management,
    format: Option<&str>,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    if format.is_some_and(|format| format != "json") {
        return Err(NodetoolError::BadUse("arguments for -F are json only.".to_owned()));
    }
    let history: CompactionHistory = management.get("/v1/compactionhistory", &[])?;
    let records: Vec<HistoryLine> = history.compactions.iter().map(HistoryLine::of).collect();
    if format.is_some() {
        let text = serde_json::to_string(&json!({ "CompactionHistory": records })).unwrap_or_default();
        writeln!(out, "{text}")?;
        return Ok(());
    }
    writeln!(out, "Compaction History: ")?;
    if records.is_empty() {
        write!(out, "There is no compaction history")?;
        return Ok(());
    }
    let mut rows = vec![HistoryLine::NAMES.map(str::to_owned).to_vec()];
    rows.extend(records.iter().map(HistoryLine::cells));
    print_table(&rows, out)
}

/// A line of the history, its fields as Cassandra spells them.
#[derive(Debug, Serialize)]
struct HistoryLine {
    id: String,
    keyspace_name: String,
    columnfamily_name: String,
    compacted_at: String,
    bytes_in: u64,
    bytes_out: u64,
    rows_merged: String,
    compaction_properties: String,
}

impl HistoryLine {
    const NAMES: [&'static str; 8] = [
        "id",
        "keyspace_name",
        "columnfamily_name",
        "compacted_at",
        "bytes_in",
        "bytes_out",
        "rows_merged",
        "compaction_properties",
    ];

    fn of(record: &Compaction) -> Self {
        let rows: Vec<String> =
            record.rows_merged.iter().map(|(files, count)| format!("{files}:{count}")).collect();
        let properties: Vec<String> =
            record.properties.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        HistoryLine {
            id: record.id.clone(),
            keyspace_name: record.keyspace.clone(),
            columnfamily_name: record.table.clone(),
            compacted_at: local_date_time(record.compacted_at_ms),
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            rows_merged: format!("{{{}}}", rows.join(", ")),
            compaction_properties: format!("{{{}}}", properties.join(", ")),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.keyspace_name.clone(),
            self.columnfamily_name.clone(),
            self.compacted_at.clone(),
            self.bytes_in.to_string(),
            self.bytes_out.to_string(),
            self.rows_merged.clone(),
            self.compaction_properties.clone(),
        ]
    }
}

/// `2024-01-01T00:00:00.123`, in UTC.
pub(super) fn local_date_time(ms: i64) -> String {
    let Day { year, month, day } = Day::from_epoch_days(ms.div_euclid(86_400_000));
    let of_day = ms.rem_euclid(86_400_000);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}", of_day % 1_000)
}

/// `nodetool getcompactionthroughput`.
pub(super) fn throughput(
    management: &Management,
    is_precise: bool,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let stats: Compactions = management.get("/v1/compactions", &[])?;
    let mebibytes = stats.throughput_bytes_per_second as f64 / 1_048_576.0;
    if is_precise {
        writeln!(out, "Current compaction throughput: {} MiB/s", numbers::double(mebibytes))?;
    } else if mebibytes.fract() == 0.0 {
        writeln!(out, "Current compaction throughput: {mebibytes:.0} MB/s")?;
    } else {
        let what = "Use the -d flag to quiet this error and get the exact throughput in MiB/s";
        return Err(NodetoolError::Failed(what.to_owned()));
    }
    Ok(())
}

pub(super) fn set_throughput(management: &Management, mebibytes: i32) -> Result<(), NodetoolError> {
    let bytes = u64::from(mebibytes.unsigned_abs()) << 20;
    management.post("/v1/compactions/throughput", &json!({ "bytes_per_second": bytes }))
}

pub(super) fn set_auto(
    management: &Management,
    names: &[String],
    enabled: bool,
) -> Result<(), NodetoolError> {
    let mut body = target(names);
    body["enabled"] = json!(enabled);
    management.post("/v1/compactions/auto", &body)
}

/// What Cassandra can stop. Of these there are compactions and files written anew here.
const STOPPABLE: [&str; 17] = [
    "COMPACTION",
    "VALIDATION",
    "CLEANUP",
    "SCRUB",
    "UPGRADE_SSTABLES",
    "INDEX_BUILD",
    "TOMBSTONE_COMPACTION",
    "ANTICOMPACTION",
    "VERIFY",
    "VIEW_BUILD",
    "INDEX_SUMMARY",
    "RELOCATE",
    "GARBAGE_COLLECT",
    "MAJOR_COMPACTION",
    "FLUSH",
    "STREAM",
    "WRITE",
];

pub(super) fn stop(management: &Management, id: Option<&str>, kind: &str) -> Result<(), NodetoolError> {
    let kind = kind.to_uppercase();
    if !STOPPABLE.contains(&kind.as_str()) {
        let known = STOPPABLE.join(", ");
        return Err(NodetoolError::BadUse(format!("{kind} is not a compaction type; there are: {known}")));
    }
    match id {
        Some(id) if id.parse::<uuid::Uuid>().is_err() => {
            Err(NodetoolError::BadUse(format!("{id} is not the id of a compaction")))
        }
        Some(id) => management.post("/v1/compactions/stop", &json!({ "id": id })),
        None => match stopped_kind(&kind) {
            Some(kind) => management.post("/v1/compactions/stop", &json!({ "kind": kind })),
            None => Ok(()),
        },
    }
}

/// As the management port calls it; there is nothing of the others to stop.
fn stopped_kind(kind: &str) -> Option<&'static str> {
    match kind {
        "COMPACTION" | "TOMBSTONE_COMPACTION" | "MAJOR_COMPACTION" => Some("compaction"),
        "UPGRADE_SSTABLES" => Some("upgrade_sstables"),
        _ => None,
    }
}

/// Columns as wide as their widest cell, as Cassandra's `TableBuilder` prints them.
fn print_table(rows: &[Vec<String>], out: &mut impl Write) -> Result<(), NodetoolError> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for row in rows {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| format!("{:<width$}", row.get(column).map_or("", String::as_str)))
            .collect();
        writeln!(out, "{}", cells.join(" "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_laid_out_as_cassandra_lays_them_out() {
        let stats = Compactions {
            concurrent_compactors: 2,
            throughput_bytes_per_second: 64 << 20,
            pending: vec![PendingCompactions { keyspace: "ks".into(), table: "t".into(), count: 3 }],
            completed: 10,
            uptime_seconds: 3600,
            active: vec![ActiveCompaction {
                id: "i".into(),
                kind: "Compaction".into(),
                keyspace: "ks".into(),
                table: "t".into(),
                completed_bytes: 1 << 20,
                total_bytes: 4 << 20,
                ..ActiveCompaction::default()
            }],
            ..Compactions::default()
        };
        let arguments = StatsArguments { human_readable: true, vtable: false };
        let mut out = Vec::new();
        print_table(&stats_rows(&stats, &arguments), &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[1], format!("{:<32} 3", "pending tasks"));
        assert_eq!(lines[2], format!("{:<32} {:<15} 3", "ks", "t"));
        assert!(lines.iter().any(|line| line.starts_with("mean rate") && line.ends_with("10.00/hour")));
        assert!(lines.iter().any(|line| line.ends_with("25.00%")));
        assert!(lines.last().is_some_and(|line| line.ends_with("0h00m00s")));
    }

    #[test]
    fn what_is_stopped_is_of_the_kind_that_is_named() {
        let known: Vec<_> = STOPPABLE.iter().filter_map(|kind| stopped_kind(kind)).collect();
        assert_eq!(known, ["compaction", "upgrade_sstables", "compaction", "compaction"]);
    }

    #[test]
    fn instants_are_dates_of_the_calendar() {
        assert_eq!(local_date_time(1_704_067_200_123), "2024-01-01T00:00:00.123");
    }
}
