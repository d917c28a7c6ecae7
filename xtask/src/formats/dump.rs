//! What Cassandra's tools print of table files, without what no two runs share.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::peers::{output, script};
use crate::report::Failure;

const TOOL_DUMP: &str = "org.apache.cassandra.tools.SSTableExport";
const TOOL_METADATA: &str = "org.apache.cassandra.tools.SSTableMetadataViewer";
/// Fields of a dump that tell where in the file or when by the clock.
const FIELDS_OF_THE_RUN: [&str; 5] = ["position", "local_delete_time", "expires_at", "expired", "table kind"];
/// Lines of sstablemetadata that the data decides, not the run.
const METADATA_LINES: [&str; 11] = [
    "Bloom Filter FP chance:",
    "Minimum timestamp:",
    "Maximum timestamp:",
    "TTL min:",
    "TTL max:",
    "SSTable Level:",
    "Repaired at:",
    "Partitioner:",
    "totalColumnsSet:",
    "totalRows:",
    "KeyType:",
];
/// Lines that list types; the same in every file of a table.
const METADATA_TYPES: [&str; 3] = ["ClusteringTypes:", "StaticColumns:", "RegularColumns:"];

/// The `Data.db` files of a table below a data folder.
pub(super) fn data_files(data: &Path, keyspace: &str, table: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(data.join(keyspace))? {
        let folder = folder?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.rsplit_once('-').is_some_and(|(before, _)| before == table) {
            for file in std::fs::read_dir(&folder)? {
                let file = file?.path();
                if file.to_string_lossy().ends_with("-bti-Data.db") {
                    files.push(file);
                }
            }
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::new(format!("no table file of {table} below {}", data.display()))),
        false => Ok(files),
    }
}

/// The partitions that sstabledump prints, over all files, by key.
pub(super) fn partitions(files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let mut partitions = Vec::new();
    for file in files {
        let text = output(script("cassandra").args(["tool", TOOL_DUMP]).arg(file))?;
        let Value::Array(more) = serde_json::from_str(&text)? else {
            return Err(Failure::new(format!("sstabledump of {} is no list", file.display())));
        };
        partitions.extend(more);
    }
    partitions.iter_mut().for_each(forget_the_run);
    partitions.sort_by_key(|partition| partition.pointer("/partition/key").map(Value::to_string));
    Ok(partitions)
}

/// Partitions as they are kept: one line for each row.
pub(super) fn partitions_text(partitions: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for partition in partitions {
        text.push_str(&serde_json::to_string(&partition["partition"])?);
        text.push('\n');
        for row in partition["rows"].as_array().into_iter().flatten() {
            text.push_str("  ");
            text.push_str(&serde_json::to_string(row)?);
            text.push('\n');
        }
    }
    Ok(text)
}

fn forget_the_run(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(forget_the_run),
        Value::Object(fields) => {
            FIELDS_OF_THE_RUN.iter().for_each(|field| drop(fields.remove(*field)));
            if let Some(Value::Array(path)) = fields.get_mut("path") {
                path.iter_mut().filter(|step| is_uuid(step)).for_each(|step| *step = Value::from("*"));
            }
            fields.values_mut().for_each(forget_the_run);
        }
        _ => {}
    }
}

fn is_uuid(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.len() == 36 && text.bytes().filter(|byte| *byte == b'-').count() == 4)
}

/// What sstablemetadata says of the files, as far as the data decides it; numbers are summed over files.
pub(super) fn metadata(files: &[PathBuf]) -> Result<String, Failure> {
    let texts = files.iter().map(|file| output(script("cassandra").args(["tool", TOOL_METADATA]).arg(file)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let mut lines = Vec::new();
    for label in METADATA_LINES.iter().chain(&METADATA_TYPES) {
        let values = texts.iter().filter_map(|text| text.lines().find_map(|line| line.strip_prefix(label)));
        let values: Vec<String> = values.map(|value| plain(label, value)).collect();
        lines.push(format!("{label} {}", joined(label, &values)));
    }
    Ok(lines.join("\n") + "\n")
}

/// A value without its translation for people: `date (microseconds)`, `seconds (days)`; lists of columns,
/// which come in no order, in order.
fn plain(label: &str, value: &str) -> String {
    let (first, second) = value.trim().split_once(" (").unwrap_or((value.trim(), ""));
    match label {
        "Minimum timestamp:" | "Maximum timestamp:" => second.trim_end_matches(')').to_owned(),
        "StaticColumns:" | "RegularColumns:" => {
            let mut columns: Vec<&str> = value.trim().split(", ").collect();
            columns.sort_unstable();
            columns.join(", ")
        }
        _ => first.to_owned(),
    }
}

/// One value for several files: the least, the greatest, the sum or what all say.
fn joined(label: &str, values: &[String]) -> String {
    let numbers: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
    match (label, numbers) {
        ("Minimum timestamp:" | "TTL min:", Some(numbers)) => numbers.iter().min().unwrap_or(&0).to_string(),
        ("Maximum timestamp:" | "TTL max:", Some(numbers)) => numbers.iter().max().unwrap_or(&0).to_string(),
        (label, Some(numbers)) if label.starts_with("total") => numbers.iter().sum::<i64>().to_string(),
        _ => {
            let mut values = values.to_vec();
            values.dedup();
            values.join(" / ")
        }
    }
}
