//! Rules for how much one thing may be: methods of a type, lines of a crate. Where a limit is reached, there is an
//! idea in it that wants a name of its own. And how many assertions there must be: a crate that grows makes promises.
//!
//! The counts are simple, because `rustfmt` writes all our code: what stands at the margin begins and ends there.
//! Tests are not counted.

use std::collections::BTreeMap;

use super::Complaint;
use super::floors;
use super::tree::{TextFile, Tree};

/// Functions in the `impl Type` blocks of one type in one crate.
const METHOD_COUNT_MAX: usize = 45;

/// Types that may have more: a grammar has a function for each of its rules.
const GRAMMARS: &[(&str, &str)] = &[("cql", "Parser")];

/// Lines of a crate of the node floor, which holds the largest subjects: one that outgrew this was two.
const NODE_CRATE_LINE_COUNT_MAX: usize = 9_000;

/// Assertions in a thousand lines, at least: of crates that hold data, and of those that answer for others.
fn assertions_min(name: &str) -> Option<usize> {
    match name {
        "coordinator" | "server" => Some(3),
        "rows" | "read" => Some(5),
        _ => floors::is_on("node", name).then_some(5),
    }
}

/// No type has so many methods that nobody knows them all.
pub(crate) fn methods(tree: &Tree) -> Vec<Complaint> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, file) in sources(tree) {
        for type_name in method_owners(file) {
            *counts.entry((name, type_name)).or_default() += 1;
        }
    }
    counts.retain(|of, count| *count > METHOD_COUNT_MAX && !GRAMMARS.contains(of));
    let complaint = |((name, type_name), count): ((&str, &str), usize)| {
        let what =
            format!("`{type_name}` has {count} methods, more than {METHOD_COUNT_MAX}: split it by idea");
        Complaint::new(&format!("crates/{name}"), 0, what)
    };
    counts.into_iter().map(complaint).collect()
}

/// No crate of the node floor is too long to be read as one thing.
pub(crate) fn node_crates(tree: &Tree) -> Vec<Complaint> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, file) in sources(tree).filter(|(name, _)| floors::is_on("node", name)) {
        *counts.entry(name).or_default() += lines_without_tests(file).count();
    }
    counts.retain(|_, count| *count > NODE_CRATE_LINE_COUNT_MAX);
    let complaint = |(name, count): (&str, usize)| {
        let what =
            format!("{count} lines without tests, more than {NODE_CRATE_LINE_COUNT_MAX}: split it by idea");
        Complaint::new(&format!("crates/{name}"), 0, what)
    };
    counts.into_iter().map(complaint).collect()
}

/// Crates in which a broken promise could lose data assert what they promise.
pub(crate) fn assertions(tree: &Tree) -> Vec<Complaint> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, file) in sources(tree) {
        let (line_count, assertion_count) = counts.entry(name).or_default();
        for line in lines_without_tests(file) {
            *line_count += 1;
            *assertion_count += usize::from(is_assertion(line));
        }
    }
    let complaint = |(name, (line_count, assertion_count)): (&str, (usize, usize))| {
        let min = assertions_min(name)?;
        let what =
            format!("{assertion_count} assertions in {line_count} lines, fewer than {min} in a thousand");
        let are_enough = assertion_count * 1_000 >= min * line_count;
        (!are_enough).then(|| Complaint::new(&format!("crates/{name}"), 0, what))
    };
    counts.into_iter().filter_map(complaint).collect()
}

/// What our crates are made of, each file with the name of its crate. A file of tests is told by its name.
fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &TextFile)> {
    let files = tree.with_ending(".rs").filter(|file| !file.path.ends_with("tests.rs"));
    files.filter_map(|file| {
        let (name, path) = file.path.strip_prefix("crates/")?.split_once('/')?;
        path.starts_with("src/").then_some((name, file))
    })
}

/// For each method in a file, the type whose it is.
fn method_owners(file: &TextFile) -> Vec<&str> {
    let mut owners = Vec::new();
    let mut owner = None;
    for line in lines_without_tests(file) {
        match line {
            "}" => owner = None,
            _ if line.starts_with("impl") => owner = inherent_type(line),
            _ if is_method(line) => owners.extend(owner),
            _ => {}
        }
    }
    owners
}

/// The type of an `impl` block that is of no trait.
fn inherent_type(line: &str) -> Option<&str> {
    let subject = without_generics(line.strip_prefix("impl")?).trim_start();
    let path = subject.split(['<', ' ']).next()?;
    (!subject.contains(" for ")).then(|| path.rsplit("::").next().unwrap_or(path))
}

/// What comes after the generic parameters with which a text begins.
fn without_generics(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (index, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // The head of an arrow closes nothing.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if c == '>' { &text[index + 1..] } else { &text[index..] };
        }
        before = c;
    }
    ""
}

/// Is something asserted here, while the program runs or is compiled?
fn is_assertion(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("const _: () = ").or(line.strip_prefix("const { ")).unwrap_or(line);
    let line = line.strip_prefix("debug_").unwrap_or(line);
    ["assert!(", "assert_eq!(", "assert_ne!("].iter().any(|begin| line.starts_with(begin))
}

/// Does a function begin here, one step from the margin?
fn is_method(line: &str) -> bool {
    let Some((qualifiers, _)) = line.strip_prefix("    ").and_then(|line| line.split_once("fn ")) else {
        return false;
    };
    let is_known = |word: &str| word.starts_with("pub") || ["const", "async", "unsafe"].contains(&word);
    !qualifiers.starts_with(' ') && qualifiers.split_whitespace().all(is_known)
}

/// The lines of a file but those of items that are there for tests.
fn lines_without_tests(file: &TextFile) -> impl Iterator<Item = &str> {
    let mut in_tests = false;
    file.text.lines().filter(move |line| {
        in_tests |= *line == "#[cfg(test)]";
        let is_left_out = in_tests;
        let ends_item = !line.starts_with(' ') && line.ends_with(['}', ';']);
        in_tests &= !ends_item;
        !is_left_out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_owners(text: &str, owners: &[&str]) {
        let file = TextFile { path: "crates/a/src/lib.rs".into(), text: text.into() };
        assert_eq!(method_owners(&file), owners, "{text}");
    }

    /// A type with so many methods.
    fn type_of(name: &str, method_count: usize) -> String {
        format!("impl {name} {{\n{}}}\n", "    pub fn act(&self) {}\n".repeat(method_count))
    }

    #[test]
    fn methods_are_those_of_inherent_blocks() {
        check_owners("impl Shard {\n    fn a() {}\n    pub(crate) async fn b() {}\n}\n", &["Shard", "Shard"]);
        check_owners(
            "impl<F: Fn(u8) -> Vec<u8>> node::Step<F>\nwhere\n    F: Clone,\n{\n    const fn a() {}\n}\n",
            &["Step"],
        );
        check_owners("impl<'a> Iterator for Keys<'a> {\n    fn next() {}\n}\n", &[]);
        check_owners("trait Disk {\n    fn read();\n}\nfn free() {}\n", &[]);
    }

    #[test]
    fn what_only_looks_like_a_method_is_not_counted() {
        check_owners("impl Shard {\n    /// The fn of it.\n    const F: fn (u8) = f;\n}\n", &[]);
        check_owners("impl Shard {\n    fn a() {\n        fn inner() {}\n    }\n}\n", &["Shard"]);
    }

    #[test]
    fn tests_are_not_counted_and_what_follows_them_is() {
        check_owners("#[cfg(test)]\nmod tests;\nimpl Shard {\n    fn a() {}\n}\n", &["Shard"]);
        check_owners("#[cfg(test)]\nmod tests {\n    use x;\n}\nimpl A {\n    fn a() {}\n}\n", &["A"]);
        check_owners("#[cfg(test)]\nimpl Shard {\n    fn a() {}\n}\n", &[]);
    }

    #[test]
    fn a_type_with_too_many_methods_is_reported_over_all_its_files() {
        let (most, one) = (type_of("Shard", METHOD_COUNT_MAX), type_of("Shard", 1));
        let at_limit = Tree::of(&[
            ("crates/a/src/lib.rs", &most),
            ("crates/b/src/lib.rs", &one),
            ("crates/a/src/shard_tests.rs", &one),
            ("crates/a/tests/node.rs", &one),
        ]);
        assert_eq!(methods(&at_limit), []);
        let beyond = Tree::of(&[("crates/a/src/lib.rs", &most), ("crates/a/src/shard/write.rs", &one)]);
        assert_eq!(methods(&beyond).len(), 1);
        let grammar = type_of("Parser", METHOD_COUNT_MAX + 1);
        assert_eq!(methods(&Tree::of(&[("crates/cql/src/lib.rs", &grammar)])), []);
    }

    #[test]
    fn a_crate_of_the_node_floor_that_is_too_long_is_reported() {
        let lines = "//! x\n".repeat(NODE_CRATE_LINE_COUNT_MAX);
        let with_tests = format!("{lines}#[cfg(test)]\nmod tests {{\n}}\n");
        let beyond = format!("{lines}mod more;\n");
        assert_eq!(node_crates(&Tree::of(&[("crates/sstable/src/lib.rs", &with_tests)])), []);
        assert_eq!(node_crates(&Tree::of(&[("crates/sstable/src/lib.rs", &beyond)])).len(), 1);
        assert_eq!(node_crates(&Tree::of(&[("crates/query/src/lib.rs", &beyond)])), []);
    }

    #[test]
    fn a_crate_that_asserts_too_little_for_its_lines_is_reported() {
        let of = |lines: usize, assertions: &[&str]| {
            let text =
                format!("{}{}", assertions.join("\n") + "\n", "//! x\n".repeat(lines - assertions.len()));
            Tree::of(&[("crates/manifest/src/lib.rs", &text), ("crates/query/src/lib.rs", &text)])
        };
        let five = [
            "const _: () = assert!(",
            "    assert_eq!(",
            "assert!(",
            "debug_assert_ne!(",
            "const { assert!(",
        ];
        assert_eq!(assertions(&of(1_000, &five)), []);
        assert_eq!(assertions(&of(1_001, &five)).len(), 1);
        let not = ["// assert!(", "a.assert!(", "prop_assert!(", "#[cfg(test)]", "    assert!("];
        assert_eq!(assertions(&of(1_000, &not)).len(), 1);
    }
}
