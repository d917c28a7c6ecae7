//! Rules for files as such: how long, and which may lie at the root.

use std::fmt::Write;

use super::Complaint;
use super::tree::Tree;
use crate::report::Failure;

/// A file longer than this is asked whether it holds two ideas.
const LINE_COUNT_MAX: usize = 600;

/// Files that were longer when the rule came, with their lengths then.
const LONG_FILES: &str = include_str!("long_files.txt");
const LONG_FILES_PATH: &str = "xtask/src/tidy/long_files.txt";

/// What may lie at the root.
const ROOT_FILES: &[&str] = &[
    ".gitattributes",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
];
const ROOT_FOLDERS: &[&str] =
    &[".cargo", ".ci", ".github", "crates", "docs", "fuzz", "lab", "patches", "tests", "xtask"];

/// Nothing new above the limit, and what is above it only shrinks.
pub(crate) fn lengths(tree: &Tree) -> Vec<Complaint> {
    let known: Vec<(usize, &str)> = LONG_FILES.lines().filter_map(parse).collect();
    let mut complaints = Vec::new();
    for file in tree.with_ending(".rs") {
        let count = file.text.lines().count();
        let allowed =
            known.iter().find(|(_, path)| *path == file.path).map_or(LINE_COUNT_MAX, |(count, _)| *count);
        if count > allowed.max(LINE_COUNT_MAX) {
            complaints.push(Complaint::new(
                &file.path,
                0,
                format!("{count} lines, more than {allowed}: split it by idea"),
            ));
        }
    }
    for (_, path) in known {
        if !tree.paths.iter().any(|other| other == path) {
            complaints.push(Complaint::new(
                LONG_FILES_PATH,
                0,
                format!("{path} is gone: take it off the list"),
            ));
        }
    }
    complaints
}

/// Writes the list of long files as they are now.
pub(crate) fn bless(tree: &Tree) -> Result<(), Failure> {
    let mut list = String::new();
    for file in tree.with_ending(".rs") {
        let count = file.text.lines().count();
        if count > LINE_COUNT_MAX {
            writeln!(list, "{count} {}", file.path)?;
        }
    }
    std::fs::write(tree.root.join(LONG_FILES_PATH), list)?;
    println!("wrote {LONG_FILES_PATH}; it counts from the next build of xtask on");
    Ok(())
}

/// No stray files at the root.
pub(crate) fn root(tree: &Tree) -> Vec<Complaint> {
    let stray = tree.paths.iter().filter(|path| match path.split_once('/') {
        Some((folder, _)) => !ROOT_FOLDERS.contains(&folder),
        None => !ROOT_FILES.contains(&path.as_str()),
    });
    stray.map(|path| Complaint::new(path, 0, "does not belong at the root")).collect()
}

/// A line of the list: a length and a path.
fn parse(line: &str) -> Option<(usize, &str)> {
    let (count, path) = line.split_once(' ')?;
    Some((count.parse().ok()?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_file_and_a_new_long_file_are_reported() {
        let long = "//! x\n".repeat(LINE_COUNT_MAX + 1);
        let tree = Tree::of(&[("notes.txt", ""), ("README.md", ""), ("crates/a/src/lib.rs", &long)]);
        assert_eq!(root(&tree).len(), 1);
        assert!(lengths(&tree).iter().any(|complaint| complaint.path == "crates/a/src/lib.rs"));
    }
}
