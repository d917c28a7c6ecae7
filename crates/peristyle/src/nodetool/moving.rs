//! `import`, `refresh`, `snapshot`, `listsnapshots`, `clearsnapshot`, and backups.

use std::io::Write;

use clap::Args;
use management::{Backups, Imported, Snapshots};
use serde_json::json;

use super::NodetoolError;
use super::http::Management;
use super::numbers::file_size;

#[derive(Args, Debug)]
pub(super) struct ImportArguments {
    /// Keep the level on the new sstables
    #[arg(short = 'l', long)]
    keep_level: bool,
    /// Keep any repaired information from the sstables
    #[arg(short = 'r', long)]
    keep_repaired: bool,
    /// Don't verify new sstables
    #[arg(short = 'v', long)]
    no_verify: bool,
    /// Do a quick import without verifying sstables
    #[arg(short, long)]
    quick: bool,
    /// Run an extended verify, verifying all values in the new sstables (always done unless told not to)
    #[arg(short, long)]
    extended_verify: bool,
    /// Copy data from source directories instead of moving them
    #[arg(long)]
    copy_data: bool,
    /// The keyspace
    keyspace: String,
    /// The table
    table: String,
    /// Directories to import sstables from
    #[arg(required = true)]
    directories: Vec<std::path::PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct SnapshotArguments {
    /// The name of the snapshot
    #[arg(short, long)]
    tag: Option<String>,
    /// The table name (one keyspace must be given then)
    #[arg(long)]
    table: Option<String>,
    /// The list of keyspace.table to take a snapshot of, with commas between them
    #[arg(long, value_name = "ktlist", value_delimiter = ',')]
    kt_list: Vec<String>,
    /// Do not flush memtables before snapshotting
    #[arg(long)]
    skip_flush: bool,
    /// List of keyspaces. By default, all keyspaces
    keyspaces: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct ClearArguments {
    /// Remove the snapshot with a given name
    #[arg(short, long)]
    tag: Option<String>,
    /// Removes all snapshots
    #[arg(long)]
    all: bool,
    /// Remove snapshots from the given keyspaces
    keyspaces: Vec<String>,
}

/// Imports; says which directories failed, and why.
pub(super) fn import(
    management: &Management,
    wanted: &ImportArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let full = |path: &std::path::PathBuf| {
        std::path::absolute(path)
            .map_err(|error| NodetoolError::BadUse(format!("{}: {error}", path.display())))
    };
    let directories = wanted.directories.iter().map(full).collect::<Result<Vec<_>, _>>()?;
    if wanted.quick {
        writeln!(out, "Doing a quick import - skipping sstable verification and row cache invalidation")?;
    }
    let body = json!({
        "keyspace": wanted.keyspace, "table": wanted.table, "directories": directories,
        "copy_data": wanted.copy_data, "keep_level": wanted.keep_level, "keep_repaired": wanted.keep_repaired,
        "skip_verify": wanted.no_verify || wanted.quick,
    });
    let done: Imported = management.ask("/v1/import", &body)?;
    if done.failed.is_empty() {
        return Ok(());
    }
    let lines = done.failed.iter().map(|failed| format!("\n{}: {}", failed.directory, failed.reason));
    let lines: String = lines.collect();
    Err(NodetoolError::Failed(format!(
        "Some directories failed to import, check server logs for details:{lines}"
    )))
}

/// Loads what was placed in the table's directory.
pub(super) fn refresh(management: &Management, keyspace: &str, table: &str) -> Result<(), NodetoolError> {
    management.post("/v1/refresh", &json!({ "keyspace": keyspace, "table": table }))
}

/// Keyspaces, and one table of them or all.
type Wanted = (Vec<String>, Option<String>);

impl SnapshotArguments {
    /// What is asked for, one request each.
    fn pairs(&self) -> Result<Vec<Wanted>, NodetoolError> {
        if self.kt_list.is_empty() {
            return Ok(vec![(self.keyspaces.clone(), self.table.clone())]);
        }
        if !self.keyspaces.is_empty() || self.table.is_some() {
            let what = "When specifying the Keyspace table list (using -kt,--kt-list,-kc,--kc.list), you must not also specify keyspaces to snapshot";
            return Err(NodetoolError::Failed(what.to_owned()));
        }
        let pair = |name: &String| match name.trim().split_once('.') {
            Some((keyspace, table)) => Ok((vec![keyspace.to_owned()], Some(table.to_owned()))),
            None => Err(NodetoolError::BadUse(
                "You must specify a keyspace and a table, as keyspace.table".to_owned(),
            )),
        };
        self.kt_list.iter().map(pair).collect()
    }
}

/// Makes a snapshot; its name is the time when none is given.
pub(super) fn snapshot(
    management: &Management,
    wanted: &SnapshotArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let tag = wanted.tag.clone().unwrap_or_else(|| now.map_or(0, |time| time.as_millis()).to_string());
    let skip = wanted.skip_flush;
    let of = if wanted.kt_list.is_empty() { listed(&wanted.keyspaces) } else { listed(&wanted.kt_list) };
    for (keyspaces, table) in wanted.pairs()? {
        let body = json!({ "tag": tag, "keyspaces": keyspaces, "table": table, "skip_flush": skip });
        management.post("/v1/snapshot", &body)?;
    }
    // Said once it is true: Cassandra says it before it looks whether there is such a keyspace.
    writeln!(
        out,
        "Requested creating snapshot(s) for {of} with snapshot name [{tag}] and options {{skipFlush={skip}}}"
    )?;
    writeln!(out, "Snapshot directory: {tag}")?;
    Ok(())
}

/// Lists snapshots as a table.
pub(super) fn list(management: &Management, out: &mut impl Write) -> Result<(), NodetoolError> {
    writeln!(out, "Snapshot Details: ")?;
    let found: Snapshots = management.get("/v1/snapshots", &[])?;
    if found.snapshots.is_empty() {
        writeln!(out, "There are no snapshots")?;
        return Ok(());
    }
    let heads = [
        "Snapshot name",
        "Keyspace name",
        "Column family name",
        "True size",
        "Size on disk",
        "Creation time",
        "Expiration time",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    for snapshot in &found.snapshots {
        rows.push([
            snapshot.tag.clone(),
            snapshot.keyspace.clone(),
            snapshot.table.clone(),
            file_size(snapshot.true_bytes),
            file_size(snapshot.disk_bytes),
            snapshot.created_at.clone().unwrap_or_default(),
            snapshot.expires_at.clone().unwrap_or_default(),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$} "));
        writeln!(out, "{}", cells.collect::<String>())?;
    }
    let sum = found.snapshots.iter().map(|snapshot| snapshot.true_bytes).sum();
    writeln!(out, "\nTotal TrueDiskSpaceUsed: {}\n", file_size(sum))?;
    Ok(())
}

/// Deletes snapshots.
pub(super) fn clear(
    management: &Management,
    wanted: &ClearArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let body = json!({ "tag": wanted.tag, "all": wanted.all, "keyspaces": wanted.keyspaces });
    let named = wanted.tag.as_ref();
    let named = named.map_or("[all snapshots]".to_owned(), |tag| format!("snapshot name [{tag}]"));
    management.post("/v1/snapshots/clear", &body)?;
    writeln!(out, "Requested clearing snapshot(s) for {} with {named}", listed(&wanted.keyspaces))?;
    Ok(())
}

/// Begins or ends incremental backups.
pub(super) fn set_backups(management: &Management, enabled: bool) -> Result<(), NodetoolError> {
    management.post("/v1/backups", &json!({ "enabled": enabled }))
}

/// Says whether incremental backups are kept.
pub(super) fn backups(management: &Management, out: &mut impl Write) -> Result<(), NodetoolError> {
    let Backups { enabled: is_on } = management.get("/v1/backups", &[])?;
    writeln!(out, "{}", if is_on { "running" } else { "not running" })?;
    Ok(())
}

fn listed(keyspaces: &[String]) -> String {
    if keyspaces.is_empty() { "[all keyspaces]".into() } else { format!("[{}]", keyspaces.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_of_keyspaces_or_of_pairs_and_not_of_both() {
        let mut wanted = SnapshotArguments {
            tag: None,
            table: None,
            kt_list: vec!["a.b".into(), "c.d".into()],
            skip_flush: false,
            keyspaces: Vec::new(),
        };
        let of = |keyspace: &str, table: &str| (vec![keyspace.to_owned()], Some(table.to_owned()));
        assert_eq!(wanted.pairs().expect("pairs"), [of("a", "b"), of("c", "d")]);
        wanted.kt_list[1] = "c".into();
        assert!(wanted.pairs().is_err());
        wanted.keyspaces = vec!["k".into()];
        assert!(wanted.pairs().is_err());
        wanted.kt_list.clear();
        assert_eq!(wanted.pairs().expect("all of it"), [(vec!["k".to_owned()], None)]);
    }
}
