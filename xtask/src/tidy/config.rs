//! Every option of the configuration file is documented: its name stands in backquotes in
//! `docs/configuration.md`, with its effect.

use super::Complaint;
use super::tree::Tree;

const PAGE: &str = "docs/configuration.md";

/// Options are the public fields of structs in `crates/config` that serde reads.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let page = tree.text(PAGE).unwrap_or_default();
    let mut complaints = Vec::new();
    for file in tree.with_ending(".rs").filter(|file| file.path.starts_with("crates/config/src/")) {
        for (line, option) in options(&file.text) {
            if !page.contains(&format!("`{option}`")) {
                complaints.push(Complaint::new(
                    &file.path,
                    line,
                    format!("option `{option}` is not in {PAGE}"),
                ));
            }
        }
    }
    complaints
}

/// Fields of structs that derive `Deserialize`.
fn options(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut derives, mut inside) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("#[derive(") {
            derives = trimmed.contains("Deserialize");
        } else if trimmed.contains("struct ") && trimmed.ends_with('{') {
            inside = derives;
        } else if line == "}" {
            (derives, inside) = (false, false);
        } else if inside && !trimmed.starts_with("//") && !trimmed.starts_with('#') {
            let field = trimmed
                .strip_prefix("pub ")
                .or_else(|| trimmed.strip_prefix("pub(crate) "))
                .unwrap_or(trimmed);
            found.extend(field.split_once(':').map(|(name, _)| (index + 1, name.trim())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_deserialized_structs_are_options() {
        let text = "#[derive(Debug, Deserialize)]\npub struct File {\n    /// Doc: here.\n    pub listen: String,\n}\nstruct Other {\n    x: u8,\n}\n";
        assert_eq!(options(text), [(4, "listen")]);
    }
}
