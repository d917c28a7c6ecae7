//! `cargo-mutants` on a copy of the tree.
//!
//! The copy has a build of its own that is never thrown away: a mutant costs the crates it is in and their tests, not
//! the world. Nothing is written to it that has not changed, so that cargo finds its work done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::areas::{Area, NOT_JUDGED, Stage};
use super::mutant::{Mutant, parse_list};
use super::verdicts::Verdict;
use crate::peers;
use crate::process::{cargo, root};
use crate::report::Failure;

const VERSION: &str = "27.1.0";
/// A mutant that never stops to grow meets this before the machine does.
const ADDRESS_SPACE_BYTES_MAX: u64 = 8 << 30;
/// Exit codes of a run that judged: all killed, some survived, some timed out.
const JUDGED_CODES: [i32; 3] = [0, 2, 3];

/// The tool, and the copy that it works on.
pub(super) struct Workshop {
    tool: PathBuf,
    tree_checksum: u32,
}

impl Workshop {
    /// Installs the tool unless it is, and brings the copy up to date.
    pub(super) fn open() -> Result<Workshop, Failure> {
        let folder = peers::home().join(format!("cargo-mutants-{VERSION}"));
        let tool = folder.join("bin/cargo-mutants");
        if !tool.exists() {
            println!("    cargo-mutants {VERSION} from crates.io");
            let words = ["install", "cargo-mutants", "--version", VERSION, "--locked", "--root"];
            peers::succeed(cargo().args(words).arg(&folder))?;
        }
        fs::create_dir_all(temporary())?;
        Ok(Workshop { tool, tree_checksum: copy_tree()? })
    }

    /// Of all that tests depend on.
    pub(super) fn tree_checksum(&self) -> u32 {
        self.tree_checksum
    }

    /// All mutants of an area.
    pub(super) fn list(&self, area: &Area) -> Result<Vec<Mutant>, Failure> {
        let mut command = self.tool(area);
        command.args(["--list", "--json"]);
        let json = peers::output(&mut command)?;
        parse_list(&json, |file| Ok(fs::read_to_string(tree().join(file))?))
    }

    /// Makes sure that the tests of a stage pass without a mutant, and builds what they need.
    pub(super) fn baseline(&self, area: &Area, stage: &Stage) -> Result<(), Failure> {
        let packages = area.packages(stage);
        println!("    tests of {} without a mutant", packages.join(", "));
        let mut command = cargo();
        command.current_dir(tree()).args(["test", "--quiet", "--tests"]);
        packages.iter().for_each(|package| _ = command.args(["--package", package]));
        command.arg("--");
        stage.skipped.iter().for_each(|name| _ = command.args(["--skip", name]));
        let log = home().join("baseline.log");
        let status = in_workshop(&mut command, &log)?.status()?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("tests fail without a mutant: see {}", log.display())))
    }

    /// Brings a few mutants before the tests of a stage: the verdicts, in their order.
    pub(super) fn judge(
        &self,
        area: &Area,
        stage: &Stage,
        mutants: &[&Mutant],
    ) -> Result<Vec<Verdict>, Failure> {
        clear(&temporary())?;
        let mut command = self.tool(area);
        command.args(["--in-place", "--baseline=skip", "--no-shuffle", "--colors=never"]);
        command.args(["--cargo-arg=--tests".to_owned(), format!("--timeout={}", stage.seconds_max)]);
        if !stage.is_own() {
            command.args(["--test-package", &area.packages(stage).join(",")]);
        }
        mutants.iter().for_each(|mutant| _ = command.args(["--re", &exactly(&mutant.name)]));
        // Fields that are left out of a struct are judged whatever the expressions say, unless another line is meant.
        let lines = home().join("lines.diff");
        fs::write(&lines, lines_as_diff(mutants, |file| Ok(fs::read_to_string(tree().join(file))?))?)?;
        command.arg("--in-diff").arg(&lines);
        command.arg("--output").arg(home());
        command.args(["--", "--"]);
        stage.skipped.iter().for_each(|name| _ = command.args(["--skip", name]));
        let log = home().join("tool.log");
        let status = in_workshop(&mut command, &log)?.status()?;
        if !status.code().is_some_and(|code| JUDGED_CODES.contains(&code)) {
            return Err(Failure::new(format!("cargo-mutants: {status}: see {}", log.display())));
        }
        let outcomes = parse_outcomes(&fs::read_to_string(home().join("mutants.out/outcomes.json"))?)?;
        let verdict = |mutant: &&Mutant| {
            let verdict = outcomes.get(&mutant.name).copied();
            verdict.ok_or_else(|| Failure::new(format!("cargo-mutants did not judge {}", mutant.name)))
        };
        mutants.iter().map(verdict).collect()
    }

    /// The tool, within limits, on the files of an area.
    fn tool(&self, area: &Area) -> Command {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={ADDRESS_SPACE_BYTES_MAX}")).arg(&self.tool);
        command.args(["mutants", "--workspace", "--dir"]).arg(tree());
        area.globs().for_each(|glob| _ = command.args(["--file", &glob]));
        NOT_JUDGED.iter().for_each(|glob| _ = command.args(["--exclude", glob]));
        command
    }
}

/// Where all of it is.
pub(super) fn home() -> PathBuf {
    root().join("target/mutants")
}

fn tree() -> PathBuf {
    home().join("tree")
}

/// For the files of tests, which a test that is killed leaves behind.
fn temporary() -> PathBuf {
    home().join("tmp")
}

fn clear(folder: &Path) -> Result<(), Failure> {
    fs::remove_dir_all(folder)?;
    Ok(fs::create_dir(folder)?)
}

/// Sets up a build that is made a hundred times: incremental, and nothing for a debugger.
fn in_workshop<'a>(command: &'a mut Command, log: &Path) -> Result<&'a mut Command, Failure> {
    let log = File::create(log)?;
    command.env("CARGO_TARGET_DIR", home().join("build")).env("TMPDIR", temporary());
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    Ok(command.stdout(log.try_clone()?).stderr(log))
}

/// Copies what git has or would have, and takes away what it has no more; the checksum of what tests depend on.
fn copy_tree() -> Result<u32, Failure> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = peers::output(&mut git)?;
    let files: BTreeSet<&str> = listed.lines().filter(|file| root().join(file).is_file()).collect();
    let mut hasher = crc32fast::Hasher::new();
    for file in &files {
        let content = fs::read(root().join(file))?;
        copy(file, &content)?;
        if is_judge(file) {
            hasher.update(file.as_bytes());
            hasher.update(&content);
        }
    }
    let copied = home().join("files.txt");
    let before = if copied.exists() { fs::read_to_string(&copied)? } else { String::new() };
    for gone in before.lines().filter(|file| !files.contains(file)) {
        _ = fs::remove_file(tree().join(gone));
    }
    fs::write(&copied, listed)?;
    Ok(hasher.finalize())
}

/// Writes a file of the copy if it differs: a mutant of a run that was stopped may be in it.
fn copy(file: &str, content: &[u8]) -> Result<(), Failure> {
    let (source, target) = (root().join(file), tree().join(file));
    if fs::read(&target).is_ok_and(|copied| copied == content) {
        return Ok(());
    }
    fs::create_dir_all(target.parent().unwrap_or(&target))?;
    fs::copy(source, target)?;
    Ok(())
}

/// Can a test depend on it?
fn is_judge(file: &str) -> bool {
    let is_code = ["crates/", "tests/", "Cargo."].iter().any(|start| file.starts_with(start));
    is_code && !file.starts_with("tests/mutants/")
}

/// A regular expression that matches this text alone.
fn exactly(text: &str) -> String {
    let escape = |c: char| if r"\.+*?()|[]{}^$".contains(c) { vec!['\\', c] } else { vec![c] };
    format!("^{}$", text.chars().flat_map(escape).collect::<String>())
}

/// The lines of these mutants as if a diff had added them.
fn lines_as_diff(
    mutants: &[&Mutant],
    read: impl Fn(&str) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut places: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    mutants.iter().for_each(|mutant| _ = places.entry(&mutant.file).or_default().insert(mutant.line_number));
    let mut diff = String::new();
    for (file, numbers) in places {
        let text = read(file)?;
        let lines: Vec<&str> = text.lines().collect();
        diff += &format!("--- a/{file}\n+++ b/{file}\n");
        for (added_count, number) in numbers.into_iter().enumerate() {
            let line =
                lines.get(number - 1).ok_or_else(|| Failure::new(format!("{file} has no line {number}")))?;
            // Without the lines added so far.
            let before = number - 1 - added_count;
            diff += &format!("@@ -{before},0 +{number},1 @@\n+{line}\n");
        }
    }
    Ok(diff)
}

/// Reads the tool's `outcomes.json`: verdicts by the mutants' names.
fn parse_outcomes(json: &str) -> Result<BTreeMap<String, Verdict>, Failure> {
    let outcomes: Value = serde_json::from_str(json)?;
    let mut verdicts = BTreeMap::new();
    for outcome in outcomes["outcomes"].as_array().into_iter().flatten() {
        let verdict = match outcome["summary"].as_str() {
            Some("CaughtMutant") => Verdict::Killed,
            Some("MissedMutant") => Verdict::Survived,
            Some("Timeout") => Verdict::TimedOut,
            Some("Unviable") => Verdict::Unviable,
            _ => return Err(Failure::new(format!("not an outcome: {}", outcome["summary"]))),
        };
        let name = outcome["scenario"]["Mutant"]["name"].as_str();
        verdicts.extend(name.map(|name| (name.to_owned(), verdict)));
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_matched_to_the_letter() {
        assert_eq!(exactly("a.rs:1:2: replace * in f"), r"^a\.rs:1:2: replace \* in f$");
    }

    #[test]
    fn lines_are_told_as_a_diff_that_adds_them() {
        let mutant = |file: &str, line_number: usize| Mutant {
            name: String::new(),
            file: file.to_owned(),
            line_number,
            change: String::new(),
            line: String::new(),
        };
        let mutants = [mutant("b.rs", 3), mutant("a.rs", 2), mutant("b.rs", 1), mutant("b.rs", 3)];
        let mutants: Vec<&Mutant> = mutants.iter().collect();
        let diff = lines_as_diff(&mutants, |file| Ok(format!("{file} one\n two\nthree\n"))).unwrap();
        let expected = "--- a/a.rs\n+++ b/a.rs\n@@ -1,0 +2,1 @@\n+ two\n\
                        --- a/b.rs\n+++ b/b.rs\n@@ -0,0 +1,1 @@\n+b.rs one\n@@ -1,0 +3,1 @@\n+three\n";
        assert_eq!(diff, expected);
        assert!(lines_as_diff(&[&mutant("a.rs", 4)], |_| Ok(String::new())).is_err());
    }

    #[test]
    fn outcomes_are_read_by_name() {
        let json = r#"{"outcomes": [
            {"scenario": {"Mutant": {"name": "one"}}, "summary": "CaughtMutant"},
            {"scenario": {"Mutant": {"name": "two"}}, "summary": "MissedMutant"}]}"#;
        let verdicts = parse_outcomes(json).unwrap();
        assert_eq!(verdicts["one"], Verdict::Killed);
        assert_eq!(verdicts["two"], Verdict::Survived);
    }
}
