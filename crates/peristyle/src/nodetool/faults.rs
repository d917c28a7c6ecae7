//! `nodetool faults`, `verify` and `scrub`: what has failed, and what can be done about it.

use std::io::Write;

use management::{Faults, FileReport, FileReports};
use serde_json::Value;

use super::NodetoolError;
use super::http::Management;

pub(super) fn print(faults: &Faults, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(out, "Disk failure policy   : {}", faults.disk_failure_policy)?;
    writeln!(out, "Commit failure policy : {}", faults.commit_failure_policy)?;
    let why = if faults.stopped_by_failure { " (stopped by a failure)" } else { "" };
    writeln!(out, "Clients are served    : {}{why}", faults.native_transport_active)?;
    for directory in &faults.directories {
        let state = if directory.writable { "" } else { " (not written to any more)" };
        writeln!(out, "Data directory        : {}{state}", directory.path)?;
    }
    for path in &faults.quarantined {
        writeln!(out, "Set aside             : {path}")?;
    }
    writeln!(out, "Failures              : {}", faults.fault_count)?;
    for fault in &faults.faults {
        writeln!(out, "  {} at {}: {}", fault.kind, fault.act, fault.what)?;
    }
    Ok(())
}

/// Prints damaged files; ends with an error when there is one, as Cassandra's.
pub(super) fn verify(
    management: &Management,
    target: &Value,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let FileReports { files } = management.ask("/v1/verify", target)?;
    let mut damaged_count = 0;
    for (file, problem) in files.iter().filter_map(|file| Some((file, file.problem.as_ref()?))) {
        damaged_count += 1;
        writeln!(out, "{}: {problem}", file.path)?;
    }
    match damaged_count {
        0 => Ok(()),
        _ => {
            Err(NodetoolError::Failed(format!("{damaged_count} of {} table files are damaged", files.len())))
        }
    }
}

/// Prints what was done to damaged files.
pub(super) fn scrub(
    management: &Management,
    target: &Value,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let FileReports { files } = management.ask("/v1/scrub", target)?;
    for FileReport { path, problem, kept, lost } in files {
        let (kept, lost) = (kept.unwrap_or(0), lost.unwrap_or(0));
        let problem = problem.unwrap_or_default();
        writeln!(out, "{path} is set aside ({problem}): {kept} partitions kept, {lost} lost")?;
    }
    Ok(())
}
