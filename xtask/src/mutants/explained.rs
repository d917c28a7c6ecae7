//! `tests/mutants/explained.txt`: mutants that survive rightly, each with its reason.
//!
//! ```text
//!   crates/commitlog/src/group.rs: replace < with <= in Group::is_due
//!       if waited < self.window {
//!       At equality nobody can tell: the timer fires once for both.
//! ```
//!
//! First the file and the change as `cargo-mutants` says it, without line and column; then, indented, the line of code
//! as it stands; then the reason. An empty line ends it. Lines with `#` are for the reader of the file.

use std::fs;

use super::areas::Area;
use super::mutant::Mutant;
use crate::process::root;
use crate::report::Failure;

const PATH: &str = "tests/mutants/explained.txt";

/// One mutant that may survive.
#[derive(Debug, PartialEq, Eq)]
struct Explanation {
    file: String,
    change: String,
    line: String,
    reason: String,
}

/// All of them.
pub(super) struct Explanations(Vec<Explanation>);

impl Explanations {
    /// Reads the list.
    pub(super) fn read() -> Result<Explanations, Failure> {
        parse(&fs::read_to_string(root().join(PATH))?)
    }

    /// Does the list say why this one survives?
    pub(super) fn has(&self, mutant: &Mutant) -> bool {
        self.0.iter().any(|explanation| explanation.is_about(mutant))
    }

    /// Those of an area's files that are about no mutant any more.
    pub(super) fn stale(&self, area: &Area, mutants: &[Mutant]) -> Vec<String> {
        let is_stale = |explanation: &&Explanation| {
            area.has(&explanation.file) && !mutants.iter().any(|mutant| explanation.is_about(mutant))
        };
        let stale = self.0.iter().filter(is_stale);
        stale.map(|stale| format!("no mutant is '{}: {}'", stale.file, stale.change)).collect()
    }
}

impl Explanation {
    fn is_about(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file && self.change == mutant.change && self.line == mutant.line
    }
}

fn parse(text: &str) -> Result<Explanations, Failure> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let blocks = lines.split(|line| line.trim().is_empty()).filter(|block| !block.is_empty());
    blocks.map(parse_block).collect::<Result<_, _>>().map(Explanations)
}

fn parse_block(block: &[&str]) -> Result<Explanation, Failure> {
    let wrong =
        || Failure::new(format!("{PATH}: file and change, line of code, reason: {}", block.join(" ")));
    let [head, line, reason @ ..] = block else { return Err(wrong()) };
    let (file, change) = head.split_once(": ").ok_or_else(wrong)?;
    let reason: Vec<&str> = reason.iter().map(|line| line.trim()).collect();
    if reason.is_empty() {
        return Err(wrong());
    }
    let [file, change, line] = [file, change, line.trim()].map(str::to_owned);
    Ok(Explanation { file, change, line, reason: reason.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# about the list\n\ncrates/manifest/src/a.rs: replace f::g -> bool with true\n    a < b\n    \
                        It is so\n    anyway.\n";

    fn mutant(line: &str) -> Mutant {
        Mutant {
            name: String::new(),
            file: "crates/manifest/src/a.rs".to_owned(),
            line_number: 1,
            change: "replace f::g -> bool with true".to_owned(),
            line: line.to_owned(),
        }
    }

    #[test]
    fn an_explanation_holds_for_its_line_of_code() {
        let explanations = parse(TEXT).unwrap();
        assert_eq!(explanations.0[0].reason, "It is so anyway.");
        assert!(explanations.has(&mutant("a < b")));
        assert!(!explanations.has(&mutant("a < c")));
    }

    #[test]
    fn an_explanation_of_nothing_is_stale() {
        let explanations = parse(TEXT).unwrap();
        let area = |name| super::super::AREAS.iter().find(|area| area.name == name).unwrap();
        assert_eq!(explanations.stale(area("manifest"), &[mutant("a < b")]), [""; 0]);
        assert_eq!(explanations.stale(area("manifest"), &[mutant("a < c")]).len(), 1);
        assert_eq!(explanations.stale(area("commitlog"), &[]), [""; 0]);
    }

    #[test]
    fn no_reason_is_no_explanation() {
        assert!(parse("crates/manifest/src/a.rs: change\n    line\n").is_err());
        assert!(Explanations::read().is_ok());
    }
}
