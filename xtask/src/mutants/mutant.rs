//! One change of the code, and which are drawn.

use serde_json::Value;

use crate::crash::Dice;
use crate::report::Failure;

/// One change of the code.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// As `cargo-mutants` says it: `FILE:LINE:COLUMN: CHANGE`.
    pub(super) name: String,
    /// From the root.
    pub(super) file: String,
    /// From 1; where it begins.
    pub(super) line_number: usize,
    /// What is changed and in which function: `replace < with <= in Appender::push`.
    pub(super) change: String,
    /// The line of code where it is changed, without its indentation. It tells two changes of one function apart, and
    /// stays the same when lines above come and go.
    pub(super) line: String,
}

impl Mutant {
    /// Reads one entry of `cargo mutants --list --json`; `text` is that of its file.
    pub(super) fn of(entry: &Value, text: &str) -> Option<Mutant> {
        let (name, file) = (entry["name"].as_str()?, entry["file"].as_str()?);
        // `:LINE:COLUMN: CHANGE`; a change may have more colons.
        let (_, change) = name.strip_prefix(file)?.split_once(": ")?;
        let line_number = usize::try_from(entry["span"]["start"]["line"].as_u64()?).ok()?;
        let line = text.lines().nth(line_number.checked_sub(1)?)?.trim();
        let [name, file, change, line] = [name, file, change, line].map(str::to_owned);
        Some(Mutant { name, file, line_number, change, line })
    }

    /// Its place in the row that a seed draws from. Where it stands in its file does not count.
    fn rank(&self, seed: u64) -> u64 {
        let mut dice = Dice(seed);
        for text in [&self.file, &self.change, &self.line] {
            dice = Dice(dice.next() ^ u64::from(crc32fast::hash(text.as_bytes())));
        }
        dice.next()
    }
}

/// Reads the whole list; `read` gives the text of a file.
pub(super) fn parse_list(
    json: &str,
    mut read: impl FnMut(&str) -> Result<String, Failure>,
) -> Result<Vec<Mutant>, Failure> {
    let entries: Vec<Value> = serde_json::from_str(json)?;
    let mut mutants = Vec::with_capacity(entries.len());
    let (mut file, mut text) = (String::new(), String::new());
    for entry in &entries {
        let entry_file = entry["file"].as_str().unwrap_or_default();
        if entry_file != file {
            (file, text) = (entry_file.to_owned(), read(entry_file)?);
        }
        let mutant = Mutant::of(entry, &text);
        mutants.push(mutant.ok_or_else(|| Failure::new(format!("not a mutant: {entry}")))?);
    }
    Ok(mutants)
}

/// So many mutants, drawn by the seed, in the order they are drawn.
pub(super) fn sample(mut mutants: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    mutants.sort_by_cached_key(|mutant| (mutant.rank(seed), mutant.name.clone()));
    mutants.truncate(count);
    mutants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line_number: usize) -> Mutant {
        let name = format!("a.rs:{line_number}:5: replace < with <= in f");
        Mutant {
            name,
            file: "a.rs".to_owned(),
            line_number,
            change: "replace < with <= in f".to_owned(),
            line: line_number.to_string(),
        }
    }

    fn names(mutants: &[Mutant]) -> Vec<&str> {
        mutants.iter().map(|mutant| mutant.name.as_str()).collect()
    }

    #[test]
    fn an_entry_of_the_list_is_read_with_its_line_of_code() {
        let json = r#"[{"name": "a.rs:2:7: replace b: bool -> c with d in e::f", "file": "a.rs",
            "span": {"start": {"line": 2, "column": 7}, "end": {"line": 2, "column": 8}}}]"#;
        let mutants = parse_list(json, |_| Ok("one\n    two\n".to_owned())).unwrap();
        assert_eq!(mutants[0].change, "replace b: bool -> c with d in e::f");
        assert_eq!(mutants[0].line, "two");
    }

    #[test]
    fn a_larger_sample_begins_with_the_smaller_one_and_a_seed_decides() {
        let all: Vec<Mutant> = (0..50).map(mutant).collect();
        let (small, large) = (sample(all.clone(), 10, 1), sample(all.clone(), 30, 1));
        assert_eq!(names(&small), names(&large)[..10]);
        assert_ne!(names(&small), names(&sample(all, 10, 2)));
    }

    #[test]
    fn lines_that_come_and_go_above_leave_a_mutant_its_place() {
        let moved = Mutant { name: "a.rs:99:5: replace < with <= in f".to_owned(), ..mutant(3) };
        assert_eq!(moved.rank(7), mutant(3).rank(7));
    }
}
