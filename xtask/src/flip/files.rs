//! The files of a data directory, kept in memory, and what kinds of them there are.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::crash::Dice;
use crate::report::Failure;

/// Bytes behind the last written one of a log segment that are still worth a change.
const SLACK_BYTES: u64 = 64;

/// One file as it was when the node was killed.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// Below the data directory.
    pub(super) path: PathBuf,
    /// Without the zeros at its end.
    pub(super) bytes: Vec<u8>,
    pub(super) file_bytes: u64,
}

/// Where a byte is changed, and into what.
#[derive(Debug, Clone)]
pub(super) struct Flip {
    pub(super) kind: String,
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) mask: u8,
    /// Is it in the zeros behind all that was written?
    pub(super) is_behind: bool,
}

/// All files of a directory.
#[derive(Debug)]
pub(super) struct Snapshot {
    files: Vec<Kept>,
}

impl Snapshot {
    pub(super) fn take(root: &Path) -> Result<Snapshot, Failure> {
        let mut files = Vec::new();
        walk(root, root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Snapshot { files })
    }

    /// Makes the directory as it was; zeros at the end of a file take no room.
    pub(super) fn restore(&self, root: &Path) -> Result<(), Failure> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        for kept in &self.files {
            let path = root.join(&kept.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = File::create(&path)?;
            file.write_all(&kept.bytes)?;
            file.set_len(kept.file_bytes)?;
        }
        Ok(())
    }

    /// Every kind of file there is.
    pub(super) fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.files.iter().filter_map(kind).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// A byte of a file of that kind. In a log segment nearly all bytes are reserved and zero, so nine
    /// of ten changes go to what was written.
    pub(super) fn draw(&self, kind_wanted: &str, dice: &mut Dice) -> Result<Flip, Failure> {
        let files: Vec<&Kept> =
            self.files.iter().filter(|kept| kind(kept).as_deref() == Some(kind_wanted)).collect();
        if files.is_empty() {
            return Err(Failure::new(format!("there is no file of the kind {kind_wanted}")));
        }
        let kept = files[dice.between(0, files.len() as u64) as usize];
        let written = kept.bytes.len() as u64;
        let is_anywhere = dice.between(0, 10) == 0;
        let range = if is_anywhere { kept.file_bytes } else { (written + SLACK_BYTES).min(kept.file_bytes) };
        let offset = dice.between(0, range);
        let mask = match dice.between(0, 2) {
            0 => 1 << dice.between(0, 8),
            _ => dice.between(1, 256) as u8,
        };
        let is_behind = offset >= written;
        Ok(Flip { kind: kind_wanted.to_owned(), path: kept.path.clone(), offset, mask, is_behind })
    }
}

impl Flip {
    /// Changes the byte below `root`.
    pub(super) fn apply(&self, snapshot: &Snapshot, root: &Path) -> Result<(), Failure> {
        let kept = snapshot.files.iter().find(|kept| kept.path == self.path);
        let old = kept.and_then(|kept| kept.bytes.get(self.offset as usize)).copied().unwrap_or(0);
        let mut file = File::options().write(true).open(root.join(&self.path))?;
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file.write_all(&[old ^ self.mask])?)
    }

    /// The name by which a message must call the file.
    pub(super) fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<Kept>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, files)?;
            continue;
        }
        let mut bytes = fs::read(&path)?;
        let file_bytes = bytes.len() as u64;
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(written);
        bytes.shrink_to_fit();
        files.push(Kept { path: path.strip_prefix(root)?.to_owned(), bytes, file_bytes });
    }
    Ok(())
}

/// What kind of file it is; none for one without content.
fn kind(kept: &Kept) -> Option<String> {
    let name = kept.path.file_name()?.to_str()?;
    if kept.file_bytes == 0 {
        return None;
    }
    if let Some((_, component)) = name.split_once("-bti-") {
        let is_plain = kept.path.to_str()?.contains("flip_plain");
        let of = match component {
            "Data.db" if is_plain => " (uncompressed)",
            "Data.db" => " (LZ4)",
            _ => "",
        };
        return Some(format!("{component}{of}"));
    }
    match name {
        // The number of a process that is gone: nothing of it is read.
        "LOCK" => None,
        // Nothing of a segment that is kept to be written again is read either, and what is remembered of
        // compactions is for people to look at.
        _ if name.ends_with(".spare") || kept.path.parent()?.ends_with("history") => None,
        "node.json" | "schema.log" | "schema.head" => Some(name.to_owned()),
        _ if name.starts_with("shard-") => Some("manifest".to_owned()),
        _ if name.ends_with(".roster") => Some("commit log roster".to_owned()),
        _ if name.starts_with("commitlog-") => Some("commit log segment".to_owned()),
        other => Some(format!("other: {other}")),
    }
}
