//! Which crate may import which: the table of floors, held against every `Cargo.toml`.
//!
//! A crate imports lower floors only, and on its own floor only crates of an earlier step. Beyond
//! that some crates must not know some lower ones (`FORBIDDEN`), so that each can be understood alone:
//! the values are pure, languages know no storage, the query floor sees no frames.

use super::Complaint;
use super::tree::{Tree, dependencies_of};

/// Floors from the ground up. On a floor, the steps in order; crates of one step do not see each other.
const FLOORS: &[(&str, &[&[&str]])] = &[
    ("ground", &[&["stdx", "allocator"], &["runtime"], &["tls"]]),
    ("values", &[&["types"], &["schema"], &["rows", "ring"], &["read"]]),
    (
        "node",
        &[
            &["trie"],
            &["components"],
            &["commitlog", "sstable"],
            &["memtable", "manifest", "cache", "upkeep"],
            &["compaction"],
            &["table"],
            &["storage"],
        ],
    ),
    ("cluster", &[&["messaging", "replica"], &["cluster", "hints", "streaming"], &["repair", "coordinator"]]),
    ("languages", &[&["cql", "protocol"]]),
    ("query", &[&["auth"], &["query", "analytics"]]),
    ("server", &[&["config", "management"], &["assembly"], &["server"]]),
    ("faces", &[&["client"], &["embedded", "lab"], &["peristyle"]]),
    ("beside", &[&["simulator", "xtask"]]),
];

/// Lower crates that a crate must not know all the same, and why.
const FORBIDDEN: &[(&[&str], &[&str], &str)] = &[
    (
        &["types", "schema", "rows", "ring", "read"],
        &["runtime", "tls"],
        "values are pure: no files, no clocks",
    ),
    (&["memtable"], &["trie", "components", "sstable"], "a memtable knows no files"),
    (&["cql", "protocol"], &["runtime", "tls"], "languages are pure: bytes to trees"),
    (
        &["cql", "protocol"],
        &[
            "commitlog",
            "trie",
            "components",
            "sstable",
            "memtable",
            "manifest",
            "cache",
            "upkeep",
            "compaction",
            "table",
            "storage",
            "cluster",
            "coordinator",
            "messaging",
            "hints",
            "streaming",
            "repair",
        ],
        "languages know neither storage nor cluster",
    ),
    (
        &["commitlog", "messaging", "trie"],
        &["types", "schema", "rows", "ring", "read"],
        "it carries opaque bytes",
    ),
    (
        &["cluster", "coordinator", "query"],
        &[
            "commitlog",
            "trie",
            "components",
            "sstable",
            "memtable",
            "manifest",
            "cache",
            "upkeep",
            "compaction",
            "table",
        ],
        "only storage knows a node's files",
    ),
    (&["query"], &["protocol"], "the query floor sees neither sockets nor frames"),
    (
        &["assembly", "embedded"],
        &["protocol", "config"],
        "a node can be used without frames and files of options",
    ),
    (&["embedded"], &["server", "client", "cql"], "a library brings neither listeners nor a driver"),
    (
        &["config", "management"],
        &["storage", "cluster", "query", "protocol"],
        "options and answers are plain values",
    ),
    (&["client"], &["storage", "cluster", "query", "server", "config"], "a client knows only the protocol"),
];

/// Crates without I/O may not pull in a runtime from outside either.
const PURE: &[&str] = &["types", "schema", "rows", "ring", "read", "trie", "cql", "protocol"];
const IMPURE_DEPENDENCIES: &[&str] = &["tokio", "socket2", "axum", "rustix", "libc", "tracing"];

/// Dependencies the rule looks at; `dev-dependencies` obey the same table.
const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Checks every crate's manifest.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(manifest) = tree.text(&path) else { continue };
        if place(name).is_none() {
            complaints.push(Complaint::new(
                &path,
                0,
                format!("crate `{name}` is on no floor of xtask/src/tidy/floors.rs"),
            ));
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(Complaint::new(&path, 0, "does not take the workspace's lints"));
        }
        for (line, dependency) in dependencies_of(manifest, TABLES) {
            if let Some(reason) = refusal(name, &dependency) {
                complaints.push(Complaint::new(
                    &path,
                    line,
                    format!("`{name}` may not import `{dependency}`: {reason}"),
                ));
            }
        }
    }
    complaints
}

/// Why a crate may not import another; `None` if it may.
fn refusal(name: &str, dependency: &str) -> Option<String> {
    if PURE.contains(&name) && IMPURE_DEPENDENCIES.contains(&dependency) {
        return Some("it is pure".into());
    }
    let (floor, step) = place(name)?;
    let (dependency_floor, dependency_step) = place(dependency)?;
    if (dependency_floor, dependency_step) >= (floor, step) {
        let title = |index: usize| FLOORS[index].0;
        return Some(format!("floor {} does not lie below {}", title(dependency_floor), title(floor)));
    }
    let forbidden =
        FORBIDDEN.iter().find(|(crates, others, _)| crates.contains(&name) && others.contains(&dependency));
    forbidden.map(|(_, _, reason)| (*reason).to_owned())
}

/// Is this crate on the floor of that title?
pub(crate) fn is_on(title: &str, name: &str) -> bool {
    place(name).is_some_and(|(floor, _)| FLOORS[floor].0 == title)
}

/// Does this crate lie below that one, which may then have it among what it is built of?
pub(crate) fn is_below(name: &str, upper: &str) -> bool {
    place(name).zip(place(upper)).is_some_and(|(lower, upper)| lower < upper)
}

/// Floor and step of one of our crates.
fn place(name: &str) -> Option<(usize, usize)> {
    FLOORS.iter().enumerate().find_map(|(floor, (_, steps))| {
        let step = steps.iter().position(|crates| crates.contains(&name))?;
        Some((floor, step))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_edge(name: &str, dependency: &str, allowed: bool) {
        assert_eq!(refusal(name, dependency).is_none(), allowed, "{name} -> {dependency}");
    }

    #[test]
    fn a_crate_imports_lower_floors_only() {
        check_edge("storage", "rows", true);
        check_edge("storage", "sstable", true);
        check_edge("sstable", "storage", false);
        check_edge("table", "storage", false);
        check_edge("sstable", "commitlog", false);
        check_edge("query", "server", false);
        check_edge("rows", "ring", false);
    }

    #[test]
    fn some_lower_crates_are_forbidden_all_the_same() {
        check_edge("types", "runtime", false);
        check_edge("memtable", "sstable", false);
        check_edge("cql", "storage", false);
        check_edge("query", "protocol", false);
        check_edge("rows", "tokio", false);
        check_edge("rows", "bytes", true);
    }

    #[test]
    fn an_unknown_crate_is_reported() {
        let tree = Tree::of(&[("crates/odd/Cargo.toml", "[lints]\nworkspace = true\n")]);
        assert_eq!(check(&tree).len(), 1);
    }
}
