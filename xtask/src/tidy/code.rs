//! Rules for Rust files: they open with their doc, and hold no leftovers.

use super::Complaint;
use super::tree::{TextFile, Tree};

/// Characters in a line of Rust; `rustfmt` wraps at 110, but leaves comments and long literals alone.
const LINE_WIDTH_MAX: usize = 120;

/// Words that must not be committed, in two halves so that this file does not hold them itself.
const LEFTOVERS: &[(&str, &str)] = &[("to", "do!("), ("db", "g!("), ("unimple", "mented!("), ("FIX", "ME")];

/// Checks every Rust file of ours.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.with_ending(".rs") {
        opening(file, &mut complaints);
        for (index, line) in file.text.lines().enumerate() {
            let found = leftover(line).or_else(|| commented_out(line)).or_else(|| too_wide(line));
            complaints.extend(found.map(|what| Complaint::new(&file.path, index + 1, what)));
        }
    }
    complaints
}

/// The first line of a file says what it is.
fn opening(file: &TextFile, complaints: &mut Vec<Complaint>) {
    let opens_well =
        file.text.lines().find(|line| !line.starts_with("#!")).is_some_and(|line| line.starts_with("//!"));
    if !opens_well {
        complaints.push(Complaint::new(&file.path, 1, "does not open with `//!`: what this is and why"));
    }
}

fn leftover(line: &str) -> Option<String> {
    LEFTOVERS.iter().find_map(|(head, tail)| {
        let at = line.find(head)?;
        line[at + head.len()..].starts_with(tail).then(|| format!("leftover `{head}{tail}`"))
    })
}

/// A plain comment that reads as a statement, an item or a block.
fn commented_out(line: &str) -> Option<String> {
    let comment = line.trim_start().strip_prefix("//")?;
    if comment.starts_with(['/', '!']) {
        return None;
    }
    let text = comment.trim();
    let starts = [
        "let ", "use ", "pub ", "fn ", "impl ", "mod ", "if ", "for ", "while ", "match ", "return ", "self.",
    ];
    let ends_as_code = text.ends_with(';') || text.ends_with('{') || text.ends_with("},");
    let is_code = ends_as_code && starts.iter().any(|start| text.starts_with(start))
        || text.ends_with(");")
        || text == "}"
        || text.starts_with("#[") && text.ends_with(']');
    is_code.then(|| "commented-out code".to_owned())
}

/// Long literals and addresses cannot be wrapped and are let through.
fn too_wide(line: &str) -> Option<String> {
    let width = line.chars().count();
    let unwrappable = line.contains("://") || line.contains('"') || line.contains("](");
    (width > LINE_WIDTH_MAX && !unwrappable)
        .then(|| format!("{width} characters, more than {LINE_WIDTH_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_comments_is_told_from_prose() {
        for line in ["// let x = 5;", "    // call(a, b);", "// }", "// pub fn f() {", "// #[test]"] {
            assert!(commented_out(line).is_some(), "{line}");
        }
        for line in
            ["// use the other one; it is faster", "/// let x = 5;", "// if it fails, so be it", "let x = 5;"]
        {
            assert!(commented_out(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_file_without_its_doc_and_a_leftover_are_reported() {
        let text = format!("fn main() {{}}\n    {}do!(\"later\")\n", "to");
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text), ("crates/b/src/lib.rs", "//! Fine.\n")]);
        let lines: Vec<usize> = check(&tree).iter().map(|complaint| complaint.line).collect();
        assert_eq!(lines, [1, 2]);
    }
}
