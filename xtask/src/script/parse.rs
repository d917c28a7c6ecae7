//! From a script's text to its statements and back.

use std::path::Path;

use super::ScriptError;
use crate::wire::{BoundValue, Request};

/// A parsed script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) items: Vec<Item>,
}

/// A stretch of a script's text.
#[derive(Debug)]
pub(crate) enum Item {
    /// Comments and empty lines, kept as they are.
    Text(String),
    /// Everything after this speaks another protocol version.
    Protocol(String, u8),
    /// Something is done to nodes of the ring.
    Ring(String, Vec<String>),
    Statement(Box<Statement>),
}

/// A statement with its directives and the recorded answer.
#[derive(Debug)]
pub(crate) struct Statement {
    /// From 1.
    pub(crate) line: usize,
    /// Its directives' lines, as written.
    pub(crate) directives: Vec<String>,
    /// As written, with the `;`.
    pub(crate) text: String,
    pub(crate) request: Request,
    pub(crate) values: Values,
    pub(crate) mask: Vec<String>,
    /// Without the leading `> `.
    pub(crate) answer: Vec<String>,
}

/// How a statement travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// QUERY, with values or without.
    Query,
    /// PREPARE only.
    Prepare,
    /// PREPARE, then EXECUTE.
    Execute,
}

impl Script {
    /// Reads and parses a script's file.
    pub(crate) fn read(path: &Path) -> Result<Script, ScriptError> {
        let text = std::fs::read_to_string(path);
        Script::parse(&text.map_err(|source| ScriptError::Read { path: path.to_owned(), source })?)
    }

    /// Parses a script.
    pub(crate) fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut items = Vec::new();
        let mut pending = Pending::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if let Some(answer) = line.strip_prefix('>') {
                if let Some(Item::Statement(statement)) = items.last_mut() {
                    statement.answer.push(answer.strip_prefix(' ').unwrap_or(answer).to_owned());
                }
            } else if pending.text.is_empty()
                && (line.trim().is_empty() || line.starts_with("-- ") || line == "--")
            {
                items.push(Item::Text(line.to_owned()));
            } else if let Some(directive) = line.strip_prefix("--@ ").filter(|_| pending.text.is_empty()) {
                match directive.split_once(' ') {
                    Some(("protocol", version)) => {
                        let wrong = |_| ScriptError::Directive { line: number, text: line.to_owned() };
                        items.push(Item::Protocol(line.to_owned(), version.parse().map_err(wrong)?));
                    }
                    Some(("ring", words)) => {
                        let words = words.split_whitespace().map(str::to_owned).collect();
                        items.push(Item::Ring(line.to_owned(), words));
                    }
                    _ => pending.direct(number, directive)?,
                }
            } else {
                pending.add(number, line);
                if pending.is_complete() {
                    items.push(Item::Statement(Box::new(std::mem::take(&mut pending).finish())));
                }
            }
        }
        match pending.text.is_empty() {
            true => Ok(Script { items }),
            false => Err(ScriptError::Unfinished { line: pending.line }),
        }
    }

    /// The script as text again, with the answers it now holds.
    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for item in &self.items {
            match item {
                Item::Text(line) | Item::Protocol(line, _) | Item::Ring(line, _) => push_line(&mut out, line),
                Item::Statement(statement) => {
                    statement.directives.iter().for_each(|line| push_line(&mut out, line));
                    push_line(&mut out, &statement.text);
                    for line in &statement.answer {
                        push_line(&mut out, format!("> {line}").trim_end());
                    }
                }
            }
        }
        out
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

#[derive(Default)]
struct Pending {
    line: usize,
    text: String,
    directives: Vec<String>,
    request: Request,
    execute: Option<Values>,
    mask: Vec<String>,
}

impl Pending {
    fn add(&mut self, number: usize, line: &str) {
        if self.text.is_empty() {
            self.line = number;
        } else {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    /// A batch ends with APPLY BATCH, everything else with the first `;` at a line's end.
    fn is_complete(&self) -> bool {
        let batch = self.text.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("BEGIN "));
        let text = self.text.trim_end();
        match batch {
            true => text.to_ascii_uppercase().ends_with("APPLY BATCH;"),
            false => text.ends_with(';'),
        }
    }

    fn direct(&mut self, line: usize, directive: &str) -> Result<(), ScriptError> {
        let wrong = || ScriptError::Directive { line, text: directive.to_owned() };
        let (name, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let request = &mut self.request;
        match name {
            "prepare" => self.execute = Some(Values::Prepare),
            "values" => {
                self.execute = Some(Values::Execute);
                request.values = values(rest).ok_or_else(wrong)?;
            }
            "query-values" => request.values = values(rest).ok_or_else(wrong)?,
            "page" => request.page_size = Some(rest.parse().map_err(|_| wrong())?),
            "mask" => self.mask = rest.split_whitespace().map(str::to_owned).collect(),
            "consistency" => request.consistency = rest.parse().map_err(|_| wrong())?,
            "serial" => request.serial_consistency = Some(rest.parse().map_err(|_| wrong())?),
            "timestamp" => request.timestamp = Some(rest.parse().map_err(|_| wrong())?),
            "now" => request.now_in_seconds = Some(rest.parse().map_err(|_| wrong())?),
            "keyspace" => request.keyspace = Some(rest.to_owned()),
            _ => return Err(wrong()),
        }
        self.directives.push(format!("--@ {directive}"));
        Ok(())
    }

    fn finish(self) -> Statement {
        Statement {
            line: self.line,
            directives: self.directives,
            text: self.text,
            request: self.request,
            values: self.execute.unwrap_or(Values::Query),
            mask: self.mask,
            answer: Vec::new(),
        }
    }
}

fn values(text: &str) -> Option<Vec<(Option<String>, BoundValue)>> {
    text.split_whitespace().map(value).collect()
}

fn value(word: &str) -> Option<(Option<String>, BoundValue)> {
    let (name, word) = match word.split_once('=') {
        Some((name, word)) => (Some(name.to_owned()), word),
        None => (None, word),
    };
    let value = match word {
        "null" => BoundValue::Null,
        "unset" => BoundValue::Unset,
        _ => BoundValue::Bytes(hex(word.strip_prefix("0x")?)?),
    };
    Some((name, value))
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let starts = (0..digits.len()).step_by(2);
    starts.map(|start| u8::from_str_radix(digits.get(start..start + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_prints_as_it_was_written() {
        let text = "-- Head.\n\n--@ page 2\nSELECT *\n  FROM t;\n> s.t: k int\n> 1\n\nBEGIN BATCH\nINSERT INTO t (k) VALUES (1);\nAPPLY BATCH;\n> void\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.print(), text);
        let statements = script.items.iter().filter(|item| matches!(item, Item::Statement(_)));
        assert_eq!(statements.count(), 2);
    }

    #[test]
    fn values_come_as_bytes_null_or_unset() {
        let parsed = values("0x00ff null a=unset").unwrap();
        assert!(matches!(&parsed[0], (None, BoundValue::Bytes(bytes)) if bytes == &[0, 255]));
        assert!(matches!(&parsed[2], (Some(name), BoundValue::Unset) if name == "a"));
        assert!(values("0x0").is_none());
    }
}
