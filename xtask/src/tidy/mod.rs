//! The house rules that no other tool holds. Each rule is a pure function from the tree to complaints.
//!
//! Rules are ratchets where the tree is not perfect yet: `long_files.txt` lists files that were too
//! long when the rule came; they may only shrink. `cargo xtask tidy --bless` writes that list anew,
//! which is right after a file was split, and a confession otherwise.

mod code;
mod config;
mod dependencies;
mod docs;
mod files;
pub(crate) mod floors;
mod packages;
mod sizes;
mod tree;

use std::fmt;

use crate::arguments::Arguments;
use crate::process::root;
use crate::report::{Failure, Tally};
use tree::Tree;

/// Something to put right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Where, from the root.
    path: String,
    /// From 1; 0 when it is about the file as a whole.
    line: usize,
    what: String,
}

impl Complaint {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Complaint {
        Complaint { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// A rule: its name, and what it finds.
type Rule = (&'static str, fn(&Tree) -> Vec<Complaint>);

const RULES: &[Rule] = &[
    ("floors", floors::check),
    ("packages", packages::check),
    ("code", code::check),
    ("file lengths", files::lengths),
    ("methods of a type", sizes::methods),
    ("lines of a crate", sizes::node_crates),
    ("assertions of a crate", sizes::assertions),
    ("files at the root", files::root),
    ("paths in documents", docs::paths),
    ("width of documents", docs::widths),
    ("decisions", docs::decisions),
    ("map of crates", docs::architecture),
    ("functions in documents", docs::named_functions),
    ("dependencies", dependencies::check),
    ("configuration options", config::check),
];

/// Runs every rule.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["bless"])?;
    println!("--- tidy");
    let tree = Tree::read(root())?;
    if arguments.flag("bless") {
        files::bless(&tree)?;
    }
    let mut tally = Tally::default();
    for (name, rule) in RULES {
        let complaints = rule(&tree);
        tally += if complaints.is_empty() { Tally::PASS } else { Tally::FAIL };
        for complaint in complaints {
            println!("{name}: {complaint}");
        }
    }
    Ok(tally)
}
