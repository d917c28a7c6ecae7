//! Commands of the shell itself.

use std::path::PathBuf;

use protocol::Consistency;

use super::shell::{PAGE_SIZE, Settings};

/// A command that is not CQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Exit,
    Clear,
    /// Of one topic or of all.
    Help(Option<String>),
    /// `None` asks which.
    Consistency(Option<Consistency>),
    SerialConsistency(Option<Consistency>),
    /// `None` asks whether.
    Tracing(Option<bool>),
    Expand(Option<bool>),
    Paging(Option<Paging>),
    Source(PathBuf),
    /// `version` or `host`.
    Show(String),
    /// The trace of a session.
    ShowSession(uuid::Uuid),
    /// As typed.
    Describe(String),
    /// As typed.
    Copy(String),
    /// Known to cqlsh and not built here.
    NotYet(&'static str),
}

/// What `PAGING` is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    On,
    Off,
    Rows(i32),
}

const HELP: &str = "
Documented shell commands:
===========================
CLEAR        CLS          CONSISTENCY  COPY         DESCRIBE     EXIT
EXPAND       HELP         PAGING       SERIAL       SHOW         SOURCE
TRACING

Not built yet: CAPTURE, HISTORY, LOGIN, UNICODE.

CQL statements end with a semicolon and go to the server: SELECT, INSERT, UPDATE, DELETE,
BATCH, CREATE, ALTER, DROP, TRUNCATE, USE. HELP <command> tells more of a shell command.
";

/// Topic and what to know of it.
const TOPICS: &[(&str, &str)] = &[
    ("clear", "CLEAR | CLS\n  Clears the screen."),
    ("cls", "CLS | CLEAR\n  Clears the screen."),
    (
        "consistency",
        "CONSISTENCY [<level>]\n  Tells or sets the consistency level of the statements that follow:\n  ANY ONE TWO THREE QUORUM ALL LOCAL_QUORUM EACH_QUORUM LOCAL_ONE SERIAL LOCAL_SERIAL",
    ),
    (
        "copy",
        "COPY [<keyspace>.]<table> [(<columns>)] TO '<file>' | STDOUT [WITH <option> = <value> [AND ...]]\n\
         COPY [<keyspace>.]<table> [(<columns>)] FROM '<file>' | STDIN [WITH <option> = <value> [AND ...]]\n\
         \x20 Options: HEADER=false DELIMITER=',' QUOTE='\"' ESCAPE='\\' NULL='' BOOLSTYLE='True,False'\n\
         \x20 TO:      PAGESIZE=1000 BEGINTOKEN ENDTOKEN\n\
         \x20 FROM:    SKIPROWS=0 MAXROWS=-1 SKIPCOLS='' TTL MAXPARSEERRORS=-1 MAXINSERTERRORS=1000 ERRFILE\n\
         \x20          MAXREQUESTS=512",
    ),
    (
        "describe",
        "DESCRIBE CLUSTER | [FULL] SCHEMA | KEYSPACES | KEYSPACE <k> | TABLES | TABLE <t> | TYPES | <name>\n  Tells what is there, as the server knows it. DESC is short for it.",
    ),
    ("exit", "EXIT\n  Ends the shell. So do QUIT and Ctrl-D."),
    ("expand", "EXPAND [ON | OFF]\n  One line per column instead of one per row."),
    ("paging", "PAGING [ON | OFF | <rows>]\n  Fetches results page by page, and how many rows at a time."),
    (
        "serial",
        "SERIAL CONSISTENCY [SERIAL | LOCAL_SERIAL]\n  Tells or sets the level of conditional updates.",
    ),
    (
        "show",
        "SHOW VERSION | SHOW HOST\n  Tells what we are connected to.\nSHOW SESSION <id>\n  Prints the trace of a statement.",
    ),
    ("source", "SOURCE '<file>'\n  Runs the statements of a file."),
    ("tracing", "TRACING [ON | OFF]\n  Prints after each statement how the server worked on it."),
];

/// Reads a command; `None` when the statement is CQL.
///
/// # Errors
/// A shell command that makes no sense, in words for the user.
pub(crate) fn parse(statement: &str) -> Result<Option<Command>, String> {
    let statement = statement.trim().trim_end_matches(';').trim_end();
    let words: Vec<&str> = statement.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let improper = || Err(format!("Improper {} command.", lower[0]));
    Ok(Some(match lower.as_slice() {
        ["exit" | "quit"] => Command::Exit,
        ["clear" | "cls"] => Command::Clear,
        ["help" | "?"] => Command::Help(None),
        ["help" | "?", topic, ..] => Command::Help(Some((*topic).to_owned())),
        ["consistency"] => Command::Consistency(None),
        ["consistency", level] => Command::Consistency(Some(consistency(level)?)),
        ["serial", "consistency"] => Command::SerialConsistency(None),
        ["serial", "consistency", level] => match consistency(level)? {
            level @ (Consistency::Serial | Consistency::LocalSerial) => {
                Command::SerialConsistency(Some(level))
            }
            _ => return improper(),
        },
        ["tracing"] => Command::Tracing(None),
        ["tracing", switch] => Command::Tracing(Some(on_or_off(switch).ok_or("Improper tracing command.")?)),
        ["expand"] => Command::Expand(None),
        ["expand", switch] => Command::Expand(Some(on_or_off(switch).ok_or("Improper expand command.")?)),
        ["paging"] => Command::Paging(None),
        ["paging", "on"] => Command::Paging(Some(Paging::On)),
        ["paging", "off"] => Command::Paging(Some(Paging::Off)),
        ["paging", rows] => match rows.parse() {
            Ok(rows) if rows > 0 => Command::Paging(Some(Paging::Rows(rows))),
            _ => return improper(),
        },
        ["source", ..] => {
            let path = statement[words[0].len()..].trim();
            match path.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                Some(path) => Command::Source(PathBuf::from(path.replace("''", "'"))),
                None => return improper(),
            }
        }
        ["show", what @ ("version" | "host")] => Command::Show((*what).to_owned()),
        ["show", "session", id] => match uuid::Uuid::parse_str(id) {
            Ok(id) => Command::ShowSession(id),
            Err(_) => return Err(format!("Improper show command: {id} is no session.")),
        },
        ["show", ..] => return improper(),
        ["describe" | "desc", ..] => Command::Describe(statement.to_owned()),
        ["copy", ..] => Command::Copy(statement.to_owned()),
        ["capture", ..] => Command::NotYet("CAPTURE"),
        ["history", ..] => Command::NotYet("HISTORY"),
        ["unicode", ..] => Command::NotYet("UNICODE"),
        ["login", ..] => Command::NotYet("LOGIN"),
        ["consistency" | "serial" | "tracing" | "expand" | "paging", ..] => return improper(),
        _ => return Ok(None),
    }))
}

fn on_or_off(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn consistency(word: &str) -> Result<Consistency, String> {
    let level = Consistency::from_name(&word.to_uppercase());
    level.ok_or_else(|| format!("Improper consistency command: there is no level {}.", word.to_uppercase()))
}

/// Carries out a command that only changes or tells settings; gives what to print.
pub(crate) fn apply(command: &Command, settings: &mut Settings) -> String {
    match command {
        Command::Clear => "\x1b[2J\x1b[H".to_owned(),
        Command::Help(None) => HELP.to_owned(),
        Command::Help(Some(topic)) => match TOPICS.iter().find(|(name, _)| name == topic) {
            Some((_, text)) => format!("\n{text}\n"),
            None => format!("No help available on '{topic}'; it may be CQL."),
        },
        Command::Consistency(None) => format!("Current consistency level is {}.", settings.consistency),
        Command::Consistency(Some(level)) => {
            settings.consistency = *level;
            format!("Consistency level set to {level}.")
        }
        Command::SerialConsistency(None) => {
            format!("Current serial consistency level is {}.", settings.serial_consistency)
        }
        Command::SerialConsistency(Some(level)) => {
            settings.serial_consistency = *level;
            format!("Serial consistency level set to {level}.")
        }
        Command::Tracing(switch) => switched(&mut settings.is_tracing, *switch, "TRACING"),
        Command::Expand(switch) => switched(&mut settings.is_expanded, *switch, "EXPAND"),
        Command::Paging(paging) => apply_paging(*paging, settings),
        _ => String::new(),
    }
}

fn switched(setting: &mut bool, switch: Option<bool>, name: &str) -> String {
    let word = |on| if on { "ON" } else { "OFF" };
    match switch {
        None => format!("{name} is {}", word(*setting)),
        Some(on) => {
            *setting = on;
            format!("{name} set to {}", word(on))
        }
    }
}

fn apply_paging(paging: Option<Paging>, settings: &mut Settings) -> String {
    let (verb, page_size) = match paging {
        None => ("is", settings.page_size),
        Some(Paging::Off) => ("set to", None),
        Some(Paging::On) => ("set to", settings.page_size.or(Some(PAGE_SIZE))),
        Some(Paging::Rows(rows)) => ("set to", Some(rows)),
    };
    settings.page_size = page_size;
    match page_size {
        Some(rows) if matches!(paging, Some(Paging::Rows(_))) => format!("Page size: {rows}"),
        Some(rows) => format!("PAGING {verb} ON\nPage size: {rows}"),
        None => format!("PAGING {verb} OFF"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_cql() {
        assert_eq!(parse("SELECT * FROM t"), Ok(None));
        assert_eq!(parse("exit"), Ok(Some(Command::Exit)));
        assert_eq!(parse("CONSISTENCY quorum"), Ok(Some(Command::Consistency(Some(Consistency::Quorum)))));
        assert_eq!(parse("SOURCE 'a b.cql'"), Ok(Some(Command::Source("a b.cql".into()))));
        assert_eq!(parse("PAGING 50"), Ok(Some(Command::Paging(Some(Paging::Rows(50))))));
        assert!(parse("CONSISTENCY sometimes").is_err());
        assert!(parse("EXPAND maybe").is_err());
        assert_eq!(parse("CLS;"), Ok(Some(Command::Clear)));
        assert_eq!(parse("UNICODE"), Ok(Some(Command::NotYet("UNICODE"))));
        let id = uuid::Uuid::from_u128(7);
        assert_eq!(parse(&format!("SHOW SESSION {id};")), Ok(Some(Command::ShowSession(id))));
        assert!(parse("SHOW SESSION 7").is_err());
    }

    #[test]
    fn a_switch_tells_what_it_did() {
        let mut setting = false;
        assert_eq!(switched(&mut setting, Some(true), "TRACING"), "TRACING set to ON");
        assert!(setting);
        assert_eq!(switched(&mut setting, None, "TRACING"), "TRACING is ON");
    }
}
