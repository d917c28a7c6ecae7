//! Every option of the configuration file is documented: its name stands in backquotes in
//! `docs/configuration.md`, with its effect.

use super::Complaint;
use super::tree::Tree;

const PAGE: &str = "docs/configuration.md";
const TABLE: &str = "crates/config/src/options.rs";

/// Options are the names in the table `OPTIONS` of `crates/config`.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let page = tree.text(PAGE).unwrap_or_default();
    let options = options(tree.text(TABLE).unwrap_or_default());
    let missing = options.into_iter().filter(|(_, option)| !page.contains(&format!("`{option}`")));
    missing
        .map(|(line, option)| Complaint::new(TABLE, line, format!("option `{option}` is not in {PAGE}")))
        .collect()
}

/// Lines of the table that name an option.
fn options(text: &str) -> Vec<(usize, &str)> {
    let names = text.lines().enumerate().filter_map(|(index, line)| {
        let name = line.trim().strip_prefix("name: \"")?.strip_suffix("\",")?;
        Some((index + 1, name))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_the_page_lacks_is_reported() {
        let table = "OptionSpec {\n    name: \"listen\",\n},\nOptionSpec {\n    name: \"shards\",\n}\n";
        let tree = Tree::of(&[(TABLE, table), (PAGE, "| `listen` | where |\n")]);
        assert_eq!(
            check(&tree),
            [Complaint::new(TABLE, 5, "option `shards` is not in docs/configuration.md")]
        );
    }
}
