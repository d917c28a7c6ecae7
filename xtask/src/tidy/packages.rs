//! Every crate can be published: its package has a name that no other project is likely to want, a description and a
//! license, and whoever depends on it names a version.
//!
//! The folder and the library keep their short name, and so does our code: `crates/rows` is the library `rows` in the
//! package `peristyle-rows`.

use super::Complaint;
use super::tree::Tree;

/// The program, which has no library, and the beginning of all other names.
const PROGRAM: &str = "peristyle";

/// Checks the manifest of every crate, and the workspace's table of them.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let workspace = tree.text("Cargo.toml").unwrap_or_default();
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let manifest = tree.text(&path).unwrap_or_default();
        let is_published = !lines_of(manifest, "package").any(|line| line == "publish = false");
        for (table, line) in expected_lines(name) {
            if !lines_of(manifest, table).any(|found| found.starts_with(&line)) {
                complaints.push(Complaint::new(&path, 0, format!("has no line `{line}` in [{table}]")));
            }
        }
        let version = if is_published { ", version = \"" } else { "" };
        let entry = format!("{name} = {{ package = \"{PROGRAM}-{name}\", path = \"crates/{name}\"{version}");
        if name != PROGRAM
            && !lines_of(workspace, "workspace.dependencies").any(|line| line.starts_with(&entry))
        {
            complaints.push(Complaint::new("Cargo.toml", 0, format!("has no line `{entry}`")));
        }
    }
    complaints
}

/// How lines begin that a crate's manifest has, each with its table.
fn expected_lines(name: &str) -> Vec<(&'static str, String)> {
    let package = if name == PROGRAM { name.to_owned() } else { format!("{PROGRAM}-{name}") };
    let mut lines = vec![
        ("package", format!("name = \"{package}\"")),
        ("package", "description = \"".to_owned()),
        ("package", "license.workspace = true".to_owned()),
    ];
    if name != PROGRAM {
        lines.push(("lib", format!("name = \"{name}\"")));
    }
    lines
}

/// The lines of one table of a manifest.
fn lines_of<'a>(manifest: &'a str, table: &str) -> impl Iterator<Item = &'a str> {
    let header = format!("[{table}]");
    let lines = manifest.lines().skip_while(move |line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"peristyle-rows\"\ndescription = \"Rows\"\n\
        license.workspace = true\n\n[lib]\nname = \"rows\"\n";
    const WORKSPACE: &str = "[workspace.dependencies]\n\
        rows = { package = \"peristyle-rows\", path = \"crates/rows\", version = \"0.1.0\" }\n";

    fn complaint_count(manifest: &str, workspace: &str) -> usize {
        check(&Tree::of(&[("crates/rows/Cargo.toml", manifest), ("Cargo.toml", workspace)])).len()
    }

    #[test]
    fn a_package_that_can_not_be_published_is_reported() {
        assert_eq!(complaint_count(MANIFEST, WORKSPACE), 0);
        for (part, other) in [
            ("\"peristyle-rows\"", "\"rows\""),
            ("description", "authors"),
            ("license.workspace = true\n", ""),
            ("[lib]\nname = \"rows\"", "[lib]\nname = \"peristyle_rows\""),
        ] {
            assert_eq!(complaint_count(&MANIFEST.replace(part, other), WORKSPACE), 1, "{part}");
        }
        let without_version = WORKSPACE.replace(", version = \"0.1.0\"", "");
        assert_eq!(complaint_count(MANIFEST, &without_version), 1);
        let unpublished = MANIFEST.replace("[lib]", "publish = false\n[lib]");
        assert_eq!(complaint_count(&unpublished, &without_version), 0);
    }
}
