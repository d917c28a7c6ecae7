//! Starts a node on a changed directory, asks everything, and judges what came of it.

use std::path::Path;

use super::files::Flip;
use crate::node::{Node, NodeOptions};
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

const PAGE_SIZE: i32 = 500;

/// What a question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Rows(Vec<Vec<Option<Vec<u8>>>>),
    Refused(String),
}

/// What came of a changed byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The node does not start, and says which file is damaged.
    Start,
    /// The node starts; reads that need the file are refused, naming file and offset.
    Read,
    /// All answers are right, and the node's log names file and offset.
    Log,
    /// All answers are right and nothing is said: the byte counts for nothing, and this is why.
    Nothing(&'static str),
    /// What must not be.
    Wrong(String),
}

/// Asks everything; every page of it.
pub(super) fn ask(node: &Node, questions: &[String]) -> Result<Vec<Reply>, Failure> {
    let mut connection = Connection::open(&node.address(), 5)?;
    questions.iter().map(|question| ask_one(&mut connection, question)).collect()
}

fn ask_one(connection: &mut Connection, question: &str) -> Result<Reply, Failure> {
    let (mut rows, mut paging_state) = (Vec::new(), None);
    loop {
        let request = Request { page_size: Some(PAGE_SIZE), paging_state, ..Request::default() };
        match connection.query(question, &request)?.answer {
            Answer::Rows(page) => {
                rows.extend(page.rows);
                paging_state = page.metadata.paging_state;
            }
            Answer::Error { message, .. } => return Ok(Reply::Refused(message)),
            other => return Err(Failure::new(format!("{question}: {other:?}"))),
        }
        if paging_state.is_none() {
            return Ok(Reply::Rows(rows));
        }
    }
}

/// Starts a node in the directory and judges it against what is known.
pub(super) fn judge(options: &NodeOptions, flip: &Flip, questions: &[String], known: &[Reply]) -> Outcome {
    let outcome = match Node::start(options) {
        Err(failure) => judge_refusal(&options.data, flip, &failure.to_string()),
        Ok(node) => match ask(&node, questions) {
            Err(failure) => Outcome::Wrong(format!("the node ended while it was asked: {failure}")),
            Ok(replies) => judge_replies(&options.data, flip, questions, known, &replies),
        },
    };
    let log = read_log(&options.data);
    match log.lines().find(|line| line.contains("panicked at") || line.contains("overflow")) {
        Some(line) => Outcome::Wrong(format!("panic: {line}")),
        None => outcome,
    }
}

fn judge_refusal(data: &Path, flip: &Flip, failure: &str) -> Outcome {
    if !failure.contains("ended while starting, exit status: 1") {
        return Outcome::Wrong(format!("neither starts nor refuses: {failure}"));
    }
    match names(&read_log(data), flip) {
        Ok(()) => Outcome::Start,
        Err(what) => Outcome::Wrong(format!("refuses to start, but {what}: {failure}")),
    }
}

fn judge_replies(data: &Path, flip: &Flip, questions: &[String], known: &[Reply], got: &[Reply]) -> Outcome {
    let mut refused = 0;
    for ((question, known), got) in questions.iter().zip(known).zip(got) {
        match got {
            got if got == known => {}
            Reply::Refused(message) => {
                if let Err(what) = names(message, flip) {
                    return Outcome::Wrong(format!("{question}: refused, but {what}: {message}"));
                }
                refused += 1;
            }
            Reply::Rows(rows) => {
                let known = if let Reply::Rows(rows) = known { rows.len() } else { 0 };
                return Outcome::Wrong(format!(
                    "{question}: {} rows that differ from the {known} known ones",
                    rows.len()
                ));
            }
        }
    }
    if refused > 0 {
        return Outcome::Read;
    }
    match names(&read_log(data), flip) {
        Ok(()) => Outcome::Log,
        Err(_) if flip.is_behind && flip.kind == "commit log segment" => {
            Outcome::Nothing("reserved bytes behind the end of the log")
        }
        Err(_) => Outcome::Wrong("all answers are right, but nobody reports the damage".to_owned()),
    }
}

/// Does a text name the file, and where in it? State files are checked, and named, as a whole.
fn names(text: &str, flip: &Flip) -> Result<(), &'static str> {
    let name = flip.file_name();
    let Some(line) = text.lines().find(|line| line.contains(&name)) else {
        return Err("the file is not named");
    };
    let is_whole = matches!(flip.kind.as_str(), "node.json" | "schema.head" | "manifest");
    match is_whole || line.contains("at byte") || line.contains("offset") {
        true => Ok(()),
        false => Err("the offset is not named"),
    }
}

fn read_log(data: &Path) -> String {
    // A log that can not be read names nothing, and is found wanting by that.
    std::fs::read_to_string(data.with_extension("log")).unwrap_or_default()
}
