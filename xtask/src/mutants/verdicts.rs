//! What became of mutants, kept from run to run in `target/mutants/verdicts.txt`.
//!
//! ```text
//!   killed    4f3a09c1  90d2b7e5  crates/…/log.rs:12:5: replace < with <= in …
//!   verdict   file      tree      the mutant's name
//! ```
//!
//! File and tree are checksums: of the changed file, and of all code. The last line about a mutant counts.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::mutant::Mutant;
use super::tool::home;
use crate::process::root;
use crate::report::Failure;

/// How a mutant came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Killed,
    TimedOut,
    Survived,
    Unviable,
}

impl Verdict {
    const ALL: [Verdict; 4] = [Verdict::Killed, Verdict::TimedOut, Verdict::Survived, Verdict::Unviable];

    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Killed => "killed",
            Verdict::TimedOut => "timed-out",
            Verdict::Survived => "survived",
            Verdict::Unviable => "unviable",
        }
    }
}

/// A line about a mutant.
struct Line {
    verdict: Verdict,
    file_checksum: u32,
    tree_checksum: u32,
}

/// All verdicts so far.
pub(super) struct Verdicts {
    lines: HashMap<String, Line>,
    /// Of all code as it is now.
    tree_checksum: u32,
    /// Open at its end.
    file: File,
}

impl Verdicts {
    /// Reads what was kept, or forgets it.
    pub(super) fn read(tree_checksum: u32, is_anew: bool) -> Result<Verdicts, Failure> {
        let path = path();
        if is_anew && path.exists() {
            fs::remove_file(&path)?;
        }
        let text = if path.exists() { fs::read_to_string(&path)? } else { String::new() };
        let lines = text.lines().filter_map(parse).collect();
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Verdicts { lines, tree_checksum, file })
    }

    /// What is known of a mutant, if it still holds.
    pub(super) fn of(&self, mutant: &Mutant) -> Option<Verdict> {
        let line = self.lines.get(&mutant.name)?;
        let is_same_tree = line.tree_checksum == self.tree_checksum;
        let is_same_file = || checksum_of(&mutant.file).is_ok_and(|now| now == line.file_checksum);
        (is_same_tree || (line.verdict != Verdict::Survived && is_same_file())).then_some(line.verdict)
    }

    /// Prints a verdict and keeps it, on the disk too.
    pub(super) fn tell(&mut self, mutant: &Mutant, verdict: Verdict) -> Result<(), Failure> {
        println!("    {:<9} {}", verdict.word(), mutant.name);
        self.append(&mutant.name, verdict, checksum_of(&mutant.file)?)
    }

    /// Did these tests pass, without a mutant, on the code as it is now?
    pub(super) fn has_passed(&self, baseline: &str) -> bool {
        self.lines.get(baseline).is_some_and(|line| line.tree_checksum == self.tree_checksum)
    }

    /// Keeps that they did.
    pub(super) fn keep_passed(&mut self, baseline: &str) -> Result<(), Failure> {
        self.append(baseline, Verdict::Survived, 0)
    }

    fn append(&mut self, name: &str, verdict: Verdict, file_checksum: u32) -> Result<(), Failure> {
        let tree_checksum = self.tree_checksum;
        writeln!(self.file, "{}\t{file_checksum:08x}\t{tree_checksum:08x}\t{name}", verdict.word())?;
        self.lines.insert(name.to_owned(), Line { verdict, file_checksum, tree_checksum });
        Ok(())
    }
}

fn path() -> PathBuf {
    home().join("verdicts.txt")
}

/// Of a file of the repository.
fn checksum_of(file: &str) -> Result<u32, Failure> {
    Ok(crc32fast::hash(&fs::read(root().join(file))?))
}

/// Reads one line; a torn one is none.
fn parse(line: &str) -> Option<(String, Line)> {
    let mut words = line.splitn(4, '\t');
    let word = words.next()?;
    let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word)?;
    let mut checksum = || u32::from_str_radix(words.next()?, 16).ok();
    let (file_checksum, tree_checksum) = (checksum()?, checksum()?);
    Some((words.next()?.to_owned(), Line { verdict, file_checksum, tree_checksum }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(line: &str, tree_checksum: u32, mutant: &Mutant) -> Option<Verdict> {
        let file = File::open("/dev/null").unwrap();
        Verdicts { lines: parse(line).into_iter().collect(), tree_checksum, file }.of(mutant)
    }

    #[test]
    fn a_survivor_is_judged_again_after_any_change_and_a_killed_one_after_a_change_of_its_file() {
        let file = "xtask/src/mutants/verdicts.rs".to_owned();
        let checksum = checksum_of(&file).unwrap();
        let mutant =
            Mutant { name: "m".to_owned(), file, line_number: 1, change: String::new(), line: String::new() };
        let killed = format!("killed\t{checksum:08x}\t00000001\tm");
        assert_eq!(verdict_of(&killed, 1, &mutant), Some(Verdict::Killed));
        assert_eq!(verdict_of(&killed, 2, &mutant), Some(Verdict::Killed));
        assert_eq!(verdict_of("killed\t00000000\t00000001\tm", 2, &mutant), None);
        let survived = format!("survived\t{checksum:08x}\t00000001\tm");
        assert_eq!(verdict_of(&survived, 1, &mutant), Some(Verdict::Survived));
        assert_eq!(verdict_of(&survived, 2, &mutant), None);
        assert_eq!(verdict_of("survived\t0000", 1, &mutant), None);
    }
}
