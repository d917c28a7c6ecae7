//! `cargo xtask bless --cassandra`: records the answers of a real Cassandra 5 into `tests/cql`
//! and `tests/protocol`.
//! `cargo xtask cql`: replays the scripts against Peristyle and shows every difference.
//!
//! A difference is a bug, or it stands with its reason in `docs/compatibility.md`, in a table row
//! of this form (the statement as written, or its beginning and `…`):
//!
//! ```text
//!   | `types.cql` | `SELECT …` | reason |
//!   | everywhere | `Cassandra's words` | `ours` | reason |
//! ```

use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::conversation;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers;
use crate::process::root;
use crate::report::{Failure, Tally, complain};
use crate::script::{Player, Script, Statement};

/// Records: `--cassandra` asks the oracle; `--address A:P` a Cassandra that runs already.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["cassandra", "address"])?;
    let address = match arguments.text("address") {
        Some(address) => address.to_owned(),
        None if arguments.flag("cassandra") => peers::oracle_address()?,
        None => {
            return Err(Failure::new("bless --cassandra [SCRIPT…]: answers come from a real Cassandra only"));
        }
    };
    let player = Player::new(&address);
    let mut tally = Tally::default();
    for path in scripts(&arguments.positional)? {
        tally += record(&player, &path)?;
    }
    for path in conversations(&arguments.positional)? {
        let mut turns = conversation::read(&path)?;
        let (mut changed, mut count) = (0, 0);
        conversation::hold(&address, &mut turns, |turn, lines| {
            changed += u64::from(turn.answer != lines);
            count += 1;
            turn.answer = lines;
        })?;
        std::fs::write(&path, conversation::print(&turns))?;
        println!("{}: {count} frames, {changed} answers changed", name(&path));
        tally.passed += count;
    }
    Ok(tally)
}

/// Records what a script's statements are answered.
pub(crate) fn record(player: &Player, path: &Path) -> Result<Tally, Failure> {
    let mut script = Script::read(path)?;
    let (mut changed, mut count) = (0, 0);
    player.play(&keyspace(path), &mut script, |statement, lines| {
        changed += u64::from(statement.answer != lines);
        count += 1;
        statement.answer = lines;
    })?;
    std::fs::write(path, script.print())?;
    println!("{}: {count} statements, {changed} answers changed", name(path));
    Ok(Tally { passed: count, failed: 0 })
}

/// Replays: against `--address A:P`, or a node started for it.
pub(crate) fn replay(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["address", "quiet"])?;
    let known = Known::read()?;
    let started = match arguments.text("address") {
        Some(_) => None,
        None => Some(Node::start(&NodeOptions::new(fresh_folder("cql")?.join("data"), &[]))?),
    };
    let address = match (&started, arguments.text("address")) {
        (Some(node), _) => node.address(),
        (None, address) => address.unwrap_or("127.0.0.1:9042").to_owned(),
    };
    let player = Player::new(&address);
    let mut tally = Tally::default();
    let mut excused = 0;
    for path in scripts(&arguments.positional)? {
        let compared = known.compare(&player, &path, arguments.flag("quiet"))?;
        excused += compared.excused;
        tally += compared.tally;
    }
    for path in conversations(&arguments.positional)? {
        let mut turns = conversation::read(&path)?;
        let (mut same, mut different) = (0, 0);
        conversation::hold(&address, &mut turns, |turn, lines| {
            if known.is_same(&turn.answer, &lines) {
                same += 1;
            } else if known.covers(&name(&path), &turn.text) {
                excused += 1;
            } else {
                different += 1;
                if !arguments.flag("quiet") {
                    println!("{}:{}\n    {}", path.display(), turn.line, turn.text);
                    show_lines(&turn.answer, &lines);
                }
            }
        })?;
        println!("{}: {same} as Cassandra, {different} not", name(&path));
        tally += Tally { passed: same, failed: different };
    }
    println!("{excused} known differences");
    Ok(tally)
}

/// The text of a syntax error is the parser generator's own (`no viable alternative at input …`); the
/// code is what a client can use, so only that is compared.
fn comparable(line: &str) -> &str {
    const SYNTAX_ERROR: &str = "error 0x2000: line ";
    line.find(SYNTAX_ERROR).map_or(line, |start| &line[..start + SYNTAX_ERROR.len()])
}

fn show(path: &Path, statement: &Statement, lines: &[String]) {
    println!("{}:{}", path.display(), statement.line);
    statement.directives.iter().for_each(|line| println!("    {line}"));
    statement.text.lines().for_each(|line| println!("    {line}"));
    show_lines(&statement.answer, lines);
}

fn show_lines(recorded: &[String], got: &[String]) {
    recorded.iter().filter(|line| !got.contains(line)).for_each(|line| println!("  - {line}"));
    got.iter().filter(|line| !recorded.contains(line)).for_each(|line| println!("  + {line}"));
    if recorded.iter().all(|line| got.contains(line)) && got.iter().all(|line| recorded.contains(line)) {
        println!("  the same lines in another order or number: {got:?}");
    }
}

/// The scripts named, or all, in the order of their names.
fn scripts(names: &[String]) -> Result<Vec<PathBuf>, Failure> {
    files("cql", "cql", names)
}

fn conversations(names: &[String]) -> Result<Vec<PathBuf>, Failure> {
    files("protocol", "frames", names)
}

pub(crate) fn files(folder: &str, extension: &str, names: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(root().join("tests").join(folder))?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let is_named =
        |path: &PathBuf| names.is_empty() || names.iter().any(|name| path.file_stem() == Some(name.as_ref()));
    paths.retain(|path| path.extension().is_some_and(|found| found == extension) && is_named(path));
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn keyspace(path: &Path) -> String {
    format!("cql_{}", path.file_stem().unwrap_or_default().to_string_lossy())
}

/// One row of the table of known differences.
struct Difference {
    file: String,
    statement: String,
}

impl Difference {
    fn covers(&self, file: &str, text: &str) -> bool {
        let text = words(text);
        let same = match self.statement.strip_suffix('…') {
            Some(start) => text.starts_with(&words(start)),
            None => text.trim_end_matches(';') == words(&self.statement).trim_end_matches(';'),
        };
        same && self.file == file
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Words that stand in many answers and are ours in all of them.
struct Words {
    theirs: String,
    ours: String,
}

impl Words {
    /// As they are, and within a text literal, where quotes are doubled.
    fn put(&self, line: &str) -> String {
        let quoted = |text: &str| text.replace('\'', "''");
        line.replace(&self.theirs, &self.ours).replace(&quoted(&self.theirs), &quoted(&self.ours))
    }
}

/// What docs/compatibility.md accepts.
#[derive(Default)]
pub(crate) struct Known {
    differences: Vec<Difference>,
    words: Vec<Words>,
}

/// What came of a script that was replayed.
pub(crate) struct Compared {
    pub(crate) tally: Tally,
    /// Differences that are known.
    excused: u64,
}

impl Known {
    /// Reads it.
    pub(crate) fn read() -> Result<Known, Failure> {
        let path = root().join("docs/compatibility.md");
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Known::default()),
            text => text?,
        };
        let differences = text.lines().filter_map(difference).collect();
        let mut words = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("| everywhere |")) {
            words.push(
                everywhere(line)
                    .ok_or_else(|| Failure::new(format!("docs/compatibility.md: not understood: {line}")))?,
            );
        }
        Ok(Known { differences, words })
    }

    /// Plays a script, and shows every difference that is not known.
    pub(crate) fn compare(&self, player: &Player, path: &Path, is_quiet: bool) -> Result<Compared, Failure> {
        let mut script = Script::read(path)?;
        let (mut tally, mut excused) = (Tally::default(), 0);
        let played = player.play(&keyspace(path), &mut script, |statement, lines| {
            if self.is_same(&statement.answer, &lines) {
                tally.passed += 1;
            } else if self.covers(&name(path), &statement.text) {
                excused += 1;
            } else {
                tally.failed += 1;
                if !is_quiet {
                    show(path, statement, &lines);
                }
            }
        });
        println!("{}: {} as Cassandra, {} not", name(path), tally.passed, tally.failed);
        if let Err(error) = played {
            complain!("{}: {}", name(path), Failure::from(error));
            tally.failed += 1;
        }
        Ok(Compared { tally, excused })
    }

    fn covers(&self, file: &str, text: &str) -> bool {
        self.differences.iter().any(|difference| difference.covers(file, text))
    }

    fn is_same(&self, recorded: &[String], got: &[String]) -> bool {
        let ours = |line: &String| self.words.iter().fold(line.clone(), |line, words| words.put(&line));
        let expected = recorded.iter().map(ours);
        expected.len() == got.len()
            && expected.zip(got).all(|(expected, got)| comparable(&expected) == comparable(got))
    }
}

/// A row of words: theirs, ours, and why.
fn everywhere(line: &str) -> Option<Words> {
    let (theirs, rest) = line.trim().strip_prefix("| everywhere | `")?.split_once("` | `")?;
    let (ours, reason) = rest.split_once("` |")?;
    let reasoned = !reason.trim_matches([' ', '|']).is_empty();
    reasoned.then(|| Words { theirs: theirs.to_owned(), ours: ours.to_owned() })
}

fn difference(line: &str) -> Option<Difference> {
    let line = line.trim().strip_prefix("| `")?;
    let (file, rest) = line.split_once("` | `")?;
    let (statement, reason) = rest.split_once("` |")?;
    let reasoned = !reason.trim_matches([' ', '|']).is_empty();
    ((file.ends_with(".cql") || file.ends_with(".frames")) && reasoned)
        .then(|| Difference { file: file.to_owned(), statement: statement.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_everywhere_are_put_in_quoted_or_not() {
        let words = everywhere("| everywhere | `{'a': 'b'}` | `{}` | because |").unwrap();
        assert_eq!(words.put("x {'a': 'b'} y ''{''a'': ''b''}''"), "x {} y ''{}''");
        assert!(everywhere("| everywhere | `a` | `b` | |").is_none());
    }

    #[test]
    fn a_difference_needs_a_reason_and_may_name_a_beginning() {
        assert!(difference("| `a.cql` | `SELECT 1` | |").is_none());
        let known = difference("| `a.cql` | `SELECT …` | because |").unwrap();
        let script = Script::parse("SELECT  1;\n").unwrap();
        let Some(crate::script::Item::Statement(statement)) = script.items.first() else { unreachable!() };
        assert!(known.covers("a.cql", &statement.text));
        assert!(!known.covers("b.cql", &statement.text));
    }
}
