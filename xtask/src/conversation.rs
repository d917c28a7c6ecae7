//! Conversations of raw frames, recorded from a real Cassandra: `tests/protocol/*.frames`.
//!
//! Drivers send good frames only; here are also the bad ones. A line is something done, the lines
//! beginning with `>` are what came back:
//!
//! ```text
//!   -- A comment.
//!   open                                    a new connection
//!   frame 04 00 0001 05                     version, flags, stream, opcode, body (its length is put in)
//!   > 84 00 0001 SUPPORTED …
//!   frame 04 00 0002 07 l"SELECT x" 0001 00
//!   > 84 00 0002 error 0x2200: …
//!   segments                                from here on frames travel in v5 segments
//!   send 00 01                              bytes as they are
//!   > closed
//! ```
//!
//! A body is hexadecimal digits, `s"text"` (a string with its 2-byte length) and `l"text"` (4 bytes).
//! `open`, `frame` and `send` wait for all frames that come within a moment: an answer that comes late
//! would be recorded as silence.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::report::Failure;
use crate::script::answer_lines;
use crate::wire::{answer, segment};

/// Longer than any of these answers takes.
const PATIENCE: Duration = Duration::from_millis(2000);
/// After the answer, what else belongs to it follows at once.
const PATIENCE_FOR_MORE: Duration = Duration::from_millis(100);
const OPCODE_EVENT: u8 = 0x0c;
const OPCODES: [(u8, &str); 16] = [
    (0x00, "ERROR"),
    (0x01, "STARTUP"),
    (0x02, "READY"),
    (0x03, "AUTHENTICATE"),
    (0x05, "OPTIONS"),
    (0x06, "SUPPORTED"),
    (0x07, "QUERY"),
    (0x08, "RESULT"),
    (0x09, "PREPARE"),
    (0x0a, "EXECUTE"),
    (0x0b, "REGISTER"),
    (0x0c, "EVENT"),
    (0x0d, "BATCH"),
    (0x0e, "AUTH_CHALLENGE"),
    (0x0f, "AUTH_RESPONSE"),
    (0x10, "AUTH_SUCCESS"),
];

/// One line that does something, with the recorded answer, or a line kept as it is.
pub(crate) struct Turn {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) answer: Vec<String>,
}

impl Turn {
    fn acts(&self) -> bool {
        !self.text.is_empty() && !self.text.starts_with("--")
    }
}

/// Reads a conversation.
pub(crate) fn read(path: &Path) -> Result<Vec<Turn>, Failure> {
    let mut turns: Vec<Turn> = Vec::new();
    for (index, line) in std::fs::read_to_string(path)?.lines().enumerate() {
        match (line.strip_prefix("> "), turns.last_mut()) {
            (Some(answer), Some(turn)) => turn.answer.push(answer.to_owned()),
            _ => turns.push(Turn { line: index + 1, text: line.to_owned(), answer: Vec::new() }),
        }
    }
    Ok(turns)
}

/// The conversation as text again.
pub(crate) fn print(turns: &[Turn]) -> String {
    let mut text = String::new();
    for turn in turns {
        text.push_str(&turn.text);
        text.push('\n');
        turn.answer.iter().for_each(|line| text.push_str(&format!("> {line}\n")));
    }
    text
}

/// Talks to a server; `heard` gets each turn with what came back now.
pub(crate) fn hold(
    address: &str,
    turns: &mut [Turn],
    mut heard: impl FnMut(&mut Turn, Vec<String>),
) -> Result<(), Failure> {
    let mut line: Option<Line> = None;
    for turn in turns.iter_mut().filter(|turn| turn.acts()) {
        let (act, rest) = turn.text.split_once(' ').unwrap_or((&turn.text, ""));
        let wrong = || Failure::new(format!("line {}: `{}` is no act", turn.line, turn.text));
        match (act, &mut line) {
            ("open", line) => *line = Some(Line::open(address)?),
            ("segments", Some(line)) => line.segmented = true,
            ("frame", Some(line)) => line.send(&frame(rest).ok_or_else(wrong)?, true),
            ("send", Some(line)) => line.send(&bytes(rest).ok_or_else(wrong)?, false),
            _ => return Err(wrong()),
        }
        if let ("frame" | "send", Some(line)) = (act, &mut line) {
            let answers = line.listen();
            heard(turn, answers);
        }
    }
    Ok(())
}

/// A raw connection.
struct Line {
    socket: TcpStream,
    segmented: bool,
    received: Vec<u8>,
    closed: bool,
}

impl Line {
    fn open(address: &str) -> Result<Line, Failure> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Line { socket, segmented: false, received: Vec::new(), closed: false })
    }

    /// A failed write shows as a closed connection when listening.
    fn send(&mut self, bytes: &[u8], is_frame: bool) {
        let wrapped = if self.segmented && is_frame { segment::wrap(bytes) } else { bytes.to_vec() };
        self.closed |= self.socket.write_all(&wrapped).is_err();
    }

    fn listen(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut patience = PATIENCE;
        loop {
            while let Some(frame) = self.next_frame() {
                lines.extend(describe(&frame));
                if opcode(&frame) != OPCODE_EVENT {
                    patience = PATIENCE_FOR_MORE;
                }
            }
            if self.closed || !self.receive(patience) {
                break;
            }
        }
        // Whether an event or the answer to its cause comes first is left to chance: events first.
        lines.sort_by_key(|line| !line.contains(" EVENT "));
        match (self.closed, lines.is_empty()) {
            (true, _) => lines.push("closed".to_owned()),
            (false, true) => lines.push("silence".to_owned()),
            _ => {}
        }
        lines
    }

    /// Takes what arrives in time; false when nothing does.
    fn receive(&mut self, patience: Duration) -> bool {
        if self.socket.set_read_timeout(Some(patience)).is_err() {
            return false;
        }
        let mut first = [0; 1];
        match self.socket.peek(&mut first) {
            Ok(0) => self.closed = true,
            Ok(_) if self.segmented => match segment::read(&mut self.socket) {
                Ok(payload) => self.received.extend_from_slice(&payload),
                Err(_) => self.closed = true,
            },
            Ok(_) => {
                let mut bytes = [0; 65536];
                match self.socket.read(&mut bytes) {
                    Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                    Err(_) => self.closed = true,
                }
            }
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                return false;
            }
            Err(_) => self.closed = true,
        }
        true
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let header_bytes = header_bytes(*self.received.first()?);
        let length = self.received.get(header_bytes - 4..header_bytes)?;
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + header_bytes;
        if self.received.len() < length {
            return None;
        }
        let rest = self.received.split_off(length);
        Some(std::mem::replace(&mut self.received, rest))
    }
}

/// A header of versions 1 and 2 has one byte less: its stream is one.
fn header_bytes(version: u8) -> usize {
    if matches!(version & 0x7f, 1 | 2) { 8 } else { 9 }
}

/// What stands before the four bytes of the length.
fn opcode(frame: &[u8]) -> u8 {
    frame[header_bytes(frame[0]) - 5]
}

/// A frame in words, or its body in hexadecimal when it is not an answer that we read.
fn describe(frame: &[u8]) -> Vec<String> {
    let (version, flags, opcode) = (frame[0], frame[1], opcode(frame));
    let (header, body) = frame.split_at(header_bytes(version));
    let name = OPCODES.iter().find(|(code, _)| *code == opcode).map_or("?", |(_, name)| name);
    let stream: String = header[2..header.len() - 5].iter().map(|byte| format!("{byte:02x}")).collect();
    let head = format!("{version:02x} {flags:02x} {stream} {name}");
    // Trace ids differ in every run, compressed bodies are read by drivers.
    let readable = matches!(opcode, 0x00 | 0x08) && flags & 0x01 == 0;
    match answer::parse(version & 0x7f, flags, opcode, body) {
        Ok(response) if readable => {
            let lines = answer_lines(&response, &[]);
            lines.iter().map(|line| format!("{head} {}", without_connection_id(line))).collect()
        }
        _ if body.is_empty() => vec![head],
        _ => vec![format!("{head} {}", readable_bytes(body))],
    }
}

/// Cassandra names its connection in this message.
fn without_connection_id(line: &str) -> String {
    match line.split_once(" invalid, unrecoverable") {
        Some((start, rest)) => {
            let kept = start.rfind(' ').map_or("", |end| &start[..=end]);
            format!("{kept}XXXXXXXX invalid, unrecoverable{rest}")
        }
        None => line.to_owned(),
    }
}

/// Text stays text, everything else is hexadecimal.
fn readable_bytes(bytes: &[u8]) -> String {
    let show = |byte: &u8| match byte {
        b' '..=b'~' if *byte != b'\\' => char::from(*byte).to_string(),
        _ => format!("\\{byte:02x}"),
    };
    bytes.iter().map(show).collect()
}

fn frame(text: &str) -> Option<Vec<u8>> {
    let mut words = bytes(text)?;
    let body = words.split_off(words.len().min(5));
    let length = u32::try_from(body.len()).ok()?;
    words.extend_from_slice(&length.to_be_bytes());
    words.extend_from_slice(&body);
    (words.len() >= 9).then_some(words)
}

fn bytes(mut text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !text.trim_start().is_empty() {
        text = text.trim_start();
        let length_bytes = match text.as_bytes() {
            [b's', b'"', ..] => 2,
            [b'l', b'"', ..] => 4,
            _ => 0,
        };
        if length_bytes > 0 {
            let (quoted, rest) = text[2..].split_once('"')?;
            let length = u32::try_from(quoted.len()).ok()?.to_be_bytes();
            bytes.extend_from_slice(&length[4 - length_bytes..]);
            bytes.extend_from_slice(quoted.as_bytes());
            text = rest;
        } else {
            bytes.push(u8::from_str_radix(text.get(..2)?, 16).ok()?);
            text = &text[2..];
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_gets_its_length_and_strings_get_theirs() {
        assert_eq!(frame("04 00 0001 05"), Some(vec![4, 0, 0, 1, 5, 0, 0, 0, 0]));
        assert_eq!(bytes(r#"s"a" l"b" ff"#), Some(vec![0, 1, b'a', 0, 0, 0, 1, b'b', 255]));
        assert_eq!(bytes("0"), None);
    }
}
