//! Every outside crate has a reason: a row in `docs/dependencies.md`.

use super::Complaint;
use super::tree::{Tree, dependencies_of};

const LIST: &str = "docs/dependencies.md";

/// Rows and dependencies match, both ways; crates take versions from the workspace only.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let ours = tree.crates();
    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    let declared = dependencies_of(manifest, &["workspace.dependencies"]);
    let rows = rows(tree.text(LIST).unwrap_or_default());
    for (line, name) in &declared {
        if !ours.contains(&name.as_str()) && !rows.iter().any(|(_, row)| row == name) {
            complaints.push(Complaint::new("Cargo.toml", *line, format!("`{name}` has no row in {LIST}")));
        }
    }
    for (line, row) in &rows {
        if !declared.iter().any(|(_, name)| name == row) {
            complaints.push(Complaint::new(LIST, *line, format!("`{row}` is not a dependency")));
        }
    }
    complaints.extend(versions(tree));
    complaints
}

/// First cells of the tables' rows: names in backquotes.
fn rows(text: &str) -> Vec<(usize, String)> {
    let names = text.lines().enumerate().filter_map(|(index, line)| {
        let name = line.strip_prefix("| `")?.split('`').next()?;
        Some((index + 1, name.to_owned()))
    });
    names.collect()
}

/// Versions are named once, in the root.
fn versions(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    let members = tree.with_ending("Cargo.toml").filter(|file| {
        file.path.starts_with("crates/") && file.path.matches('/').count() == 2
            || file.path == "xtask/Cargo.toml"
    });
    for file in members {
        for (line, name) in dependencies_of(&file.text, &tables) {
            let text = file.text.lines().nth(line - 1).unwrap_or_default();
            if !text.contains("workspace") {
                complaints.push(Complaint::new(
                    &file.path,
                    line,
                    format!("`{name}` has a version of its own"),
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_dependencies_match_both_ways() {
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\na = { path = \"crates/a\" }\nbytes = \"1\"\nserde = \"1\"\n",
            ),
            ("crates/a/Cargo.toml", "[dependencies]\nbytes = \"1\"\n"),
            (LIST, "| `serde` | x | y |\n| `gone` | x | y |\n"),
        ]);
        assert_eq!(check(&tree).len(), 3);
    }
}
