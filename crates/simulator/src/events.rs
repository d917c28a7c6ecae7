//! What happened in a run, line by line: two runs of a seed must agree on every line.

use std::fmt::Write;

/// How many lines are kept; the digest covers all.
const LINES_KEPT: usize = 20_000;

/// The log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    lines: Vec<String>,
    digest: u64,
    count: u64,
}

impl Events {
    /// Adds a line.
    pub(crate) fn add(&mut self, line: impl std::fmt::Display) {
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = write!(text, "{line}");
        for byte in text.bytes().chain([b'\n']) {
            // FNV-1a: small, and the same everywhere.
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.count += 1;
        if self.lines.len() == LINES_KEPT {
            self.lines.drain(..LINES_KEPT / 2);
        }
        self.lines.push(text);
    }

    /// The latest lines.
    pub fn last(&self, count: usize) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(count)..]
    }

    /// All lines in one number.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How many lines there were.
    pub fn count(&self) -> u64 {
        self.count
    }
}
