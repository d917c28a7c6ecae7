//! Rules for documents: what they name exists, lines are not too long, decisions are numbered, the map is complete.

use std::collections::BTreeSet;

use super::Complaint;
use super::tree::{TextFile, Tree};

/// Folders whose names make a quoted word a path.
const FOLDERS: &[&str] = &["crates/", "docs/", "tests/", "xtask/", "fuzz/", "lab/", ".ci/", ".cargo/"];

/// Characters in a line of prose.
const LINE_WIDTH_MAX: usize = 120;

/// A document that names a path of the repository names one that exists.
pub(crate) fn paths(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.with_ending(".md") {
        for (index, line) in file.text.lines().enumerate() {
            for named in quoted(line).into_iter().filter_map(repository_path) {
                if !exists(tree, named) {
                    complaints.push(Complaint::new(
                        &file.path,
                        index + 1,
                        format!("names `{named}`, which is not there"),
                    ));
                }
            }
            for target in links(line) {
                let target_path = beside(file, target);
                if !exists(tree, &target_path) {
                    complaints.push(Complaint::new(
                        &file.path,
                        index + 1,
                        format!("links to {target}, which is not there"),
                    ));
                }
            }
        }
    }
    complaints
}

/// Prose is wrapped. Rows of tables, headings and what stands between fences have to be one line.
pub(crate) fn widths(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.with_ending(".md") {
        let mut is_fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            let start = line.trim_start();
            let is_fence = start.starts_with("```") || start.starts_with("~~~");
            is_fenced ^= is_fence;
            let width = width(line);
            if width > LINE_WIDTH_MAX && !is_fenced && !is_fence && !start.starts_with(['|', '#']) {
                let what = format!("{width} characters, more than {LINE_WIDTH_MAX}");
                complaints.push(Complaint::new(&file.path, index + 1, what));
            }
        }
    }
    complaints
}

/// Characters of a line without the addresses of its links, which can not be wrapped.
fn width(line: &str) -> usize {
    let words = line.split(' ').map(|word| match word.split_once("](") {
        Some((text, rest)) => {
            text.chars().count() + rest.split_once(')').map_or(0, |(_, rest)| rest.chars().count())
        }
        None if word.contains("://") => 0,
        None => word.chars().count(),
    });
    words.map(|width| width + 1).sum::<usize>().saturating_sub(1)
}

/// Files in `docs/decisions` are `NNNN-some-words.md`, numbered without gaps, and say their number.
pub(crate) fn decisions(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut expected = 1;
    for file in tree.with_ending(".md").filter(|file| file.path.starts_with("docs/decisions/")) {
        let name = file.path.trim_start_matches("docs/decisions/");
        if name == "README.md" {
            continue;
        }
        let number = format!("{expected:04}");
        if !name.starts_with(&format!("{number}-")) {
            complaints.push(Complaint::new(&file.path, 0, format!("expected number {number}")));
        } else if !file.text.starts_with(&format!("# {number} ")) {
            complaints.push(Complaint::new(&file.path, 1, format!("does not open with `# {number} …`")));
        }
        expected += 1;
    }
    complaints
}

/// The map names every crate, in backquotes.
pub(crate) fn architecture(tree: &Tree) -> Vec<Complaint> {
    let map = tree.text("ARCHITECTURE.md").unwrap_or_default();
    let missing = tree.crates().into_iter().filter(|name| !map.contains(&format!("`{name}`")));
    missing
        .map(|name| Complaint::new("ARCHITECTURE.md", 0, format!("does not mention crate `{name}`")))
        .collect()
}

/// Functions that a document names as `Type::function` are there: pages are followed by searching for them. The diary
/// alone names what was.
pub(crate) fn named_functions(tree: &Tree) -> Vec<Complaint> {
    let lines = tree.with_ending(".rs").flat_map(|file| file.text.lines());
    let defined: BTreeSet<&str> = lines.filter_map(defined_function).collect();
    let mut complaints = Vec::new();
    for page in tree.with_ending(".md").filter(|page| !page.path.starts_with("docs/history/")) {
        for (index, line) in page.text.lines().enumerate() {
            for word in quoted(line) {
                if function_of_type(word).is_some_and(|function| !defined.contains(function)) {
                    let what = format!("names `{word}`, which is not there");
                    complaints.push(Complaint::new(&page.path, index + 1, what));
                }
            }
        }
    }
    complaints
}

/// The name of the function that a line of code begins, if it does.
fn defined_function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split(['(', '<']).next()
}

/// The function of a quoted `Type::function`.
fn function_of_type(word: &str) -> Option<&str> {
    let (path, function) = word.rsplit_once("::")?;
    let type_name = path.rsplit("::").next()?;
    let is_type = type_name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_function = !function.is_empty() && function.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_type && is_function).then_some(function)
}

/// Words in single backquotes on a line.
fn quoted(line: &str) -> Vec<&str> {
    if line.starts_with("    ") || line.trim_start().starts_with("```") {
        return Vec::new();
    }
    line.split('`').skip(1).step_by(2).collect()
}

/// A quoted word as a path, when it is one and is meant literally.
fn repository_path(word: &str) -> Option<&str> {
    let is_path = FOLDERS.iter().any(|folder| word.starts_with(folder));
    let is_pattern = word.contains(['*', '<', '{', '…', ' ', '$']) || word.contains("NNNN");
    let word = word.split([':', '#']).next()?;
    (is_path && !is_pattern).then_some(word)
}

/// Targets of links that stay inside the repository.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inside = targets.filter(|target| !target.contains("://") && !target.starts_with(['#', '<']));
    inside.filter_map(|target| target.split('#').next()).filter(|target| !target.is_empty()).collect()
}

/// A link's target from the root.
fn beside(file: &TextFile, target: &str) -> String {
    let mut parts: Vec<&str> = file.path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Is there a file or a folder of that name?
fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let folder = format!("{path}/");
    tree.paths.iter().any(|other| other == path || other.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_reported_and_a_pattern_is_not() {
        let text = "See `crates/a/src/lib.rs`, `crates/b`, `docs/decisions/NNNN-x.md`.\n[x](../ARCHITECTURE.md) [y](z.md)\n";
        let tree = Tree::of(&[("docs/a.md", text), ("crates/a/src/lib.rs", ""), ("ARCHITECTURE.md", "")]);
        let lines: Vec<usize> = paths(&tree).iter().map(|complaint| complaint.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn prose_that_is_not_wrapped_is_reported() {
        let long = "word ".repeat(30);
        let address = "a".repeat(130);
        let text = format!(
            "{long}\n# {long}\n| {long} |\n```\n{long}\n```\n- {long}\n[x]({address})\nhttps://{address}\n"
        );
        let tree = Tree::of(&[("docs/a.md", &text)]);
        let lines: Vec<usize> = widths(&tree).iter().map(|complaint| complaint.line).collect();
        assert_eq!(lines, [1, 7]);
    }

    #[test]
    fn a_function_that_is_gone_is_reported_but_not_of_the_diary() {
        let text = "`Shard::write` then `Shard::gone`, `Step::Need` and `tokio::watch`\n";
        let code = "pub fn write<T>(x: T) {}\n";
        let tree = Tree::of(&[
            ("docs/history/a.md", text),
            ("docs/internals/a.md", text),
            ("crates/a/src/lib.rs", code),
        ]);
        let paths: Vec<String> = named_functions(&tree).into_iter().map(|complaint| complaint.path).collect();
        assert_eq!(paths, ["docs/internals/a.md"]);
    }

    #[test]
    fn decisions_are_numbered_without_gaps() {
        let tree = Tree::of(&[
            ("docs/decisions/0001-a.md", "# 0001 A\n"),
            ("docs/decisions/0003-b.md", "# 0003 B\n"),
        ]);
        assert_eq!(decisions(&tree).len(), 1);
    }
}
