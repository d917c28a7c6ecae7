//! Cuts what was typed into statements.
//!
//! A CQL statement ends with a semicolon that stands in no quotes and in no comment; a batch ends
//! with the one after `APPLY BATCH`. A command of the shell also ends with its line. The semicolon stays
//! with its statement: the server's messages about syntax depend on it.

/// First words of commands that need no semicolon.
const SHELL_WORDS: &[&str] = &[
    "capture",
    "clear",
    "cls",
    "consistency",
    "copy",
    "desc",
    "describe",
    "exit",
    "expand",
    "help",
    "history",
    "login",
    "paging",
    "quit",
    "serial",
    "show",
    "source",
    "tracing",
    "unicode",
];

/// Gathers lines until statements are complete.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pending: String,
}

impl Statements {
    /// Adds a line and takes the statements that are complete.
    pub(crate) fn add(&mut self, line: &str) -> Vec<String> {
        self.pending.push_str(line);
        self.pending.push('\n');
        let mut complete = Vec::new();
        while let Some((length, terminator)) = first_end(&self.pending) {
            let rest = self.pending.split_off(length + terminator);
            let mut statement = std::mem::replace(&mut self.pending, rest);
            if is_blank(&statement[..length]) {
                continue;
            }
            let is_line_end = statement.ends_with('\n');
            statement.truncate(if is_line_end { length } else { length + terminator });
            let statement = statement.trim();
            if !statement.is_empty() {
                complete.push(statement.to_owned());
            }
        }
        if is_blank(&self.pending) {
            self.pending.clear();
        }
        complete
    }

    /// Is no statement begun?
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// What is left at the end of the input, or given up.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        let rest = rest.trim();
        (!is_blank(rest)).then(|| rest.to_owned())
    }
}

/// Length of the first statement, and of what ends it; `None` while it is not complete.
fn first_end(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut words = Words::default();
    let mut index = 0;
    while index < bytes.len() {
        let rest = &text[index..];
        match bytes[index] {
            b';' if words.is_inside_batch() => words.end_of_statement(),
            b';' => return Some((index, 1)),
            b'\n' if words.is_shell_command() => return Some((index, 1)),
            b'\'' => index += closed_by(rest, "'", 1)? - 1,
            b'"' => index += closed_by(rest, "\"", 1)? - 1,
            b'$' if rest.starts_with("$$") => index += closed_by(rest, "$$", 2)? - 1,
            b'-' if rest.starts_with("--") => index += line_length(rest) - 1,
            b'/' if rest.starts_with("//") => index += line_length(rest) - 1,
            b'/' if rest.starts_with("/*") => index += closed_by(rest, "*/", 2)? - 1,
            byte if byte.is_ascii_alphabetic() => {
                let length =
                    rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                words.add(&rest[..length]);
                index += length - 1;
            }
            _ => {}
        }
        index += 1;
    }
    None
}

/// Length of something quoted, both ends included; `None` while it is open. A doubled quote closes
/// and opens again, which comes to the same.
fn closed_by(text: &str, end: &str, begin_bytes: usize) -> Option<usize> {
    text.get(begin_bytes..)?.find(end).map(|at| begin_bytes + at + end.len())
}

/// Bytes before the line's end, at least one.
fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len()).max(1)
}

/// What the words so far say about where the statement ends.
#[derive(Debug, Default)]
struct Words {
    count: usize,
    is_shell: bool,
    begins: bool,
    is_batch: bool,
    applies: bool,
    is_applied: bool,
}

impl Words {
    fn add(&mut self, word: &str) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        match self.count {
            0 => {
                self.begins = is("begin");
                self.is_shell = SHELL_WORDS.iter().any(|other| is(other));
            }
            1 | 2 if self.begins && is("batch") => self.is_batch = true,
            _ => {}
        }
        self.is_applied |= self.applies && is("batch");
        self.applies = is("apply");
        self.count += 1;
    }

    fn is_inside_batch(&self) -> bool {
        self.is_batch && !self.is_applied
    }

    fn is_shell_command(&self) -> bool {
        self.is_shell
    }

    fn end_of_statement(&mut self) {
        self.applies = false;
    }
}

/// Nothing but space and comments.
fn is_blank(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if rest.is_empty() {
            return true;
        }
        let skipped = if rest.starts_with("--") || rest.starts_with("//") {
            Some(line_length(rest))
        } else if rest.starts_with("/*") {
            closed_by(rest, "*/", 2)
        } else {
            None
        };
        match skipped {
            Some(length) => rest = rest[length..].trim_start(),
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: &[&str], rest: Option<&str>) {
        let mut statements = Statements::default();
        let complete: Vec<String> = lines.iter().flat_map(|line| statements.add(line)).collect();
        assert_eq!(complete, expected);
        assert_eq!(statements.take_rest().as_deref(), rest);
    }

    #[test]
    fn a_semicolon_ends_a_statement() {
        check(&["SELECT 1; SELECT", "2;"], &["SELECT 1;", "SELECT\n2;"], None);
        check(&["SELECT 1"], &[], Some("SELECT 1"));
    }

    #[test]
    fn quotes_and_comments_hide_semicolons() {
        check(&["SELECT ';', \";\", $$;$$ FROM t; -- x; y"], &["SELECT ';', \";\", $$;$$ FROM t;"], None);
        check(&["/* a; */ SELECT 'it''s; ';"], &["/* a; */ SELECT 'it''s; ';"], None);
        check(&["SELECT 'open;", "still';"], &["SELECT 'open;\nstill';"], None);
        check(&["-- only a comment;", "// another;"], &[], None);
    }

    #[test]
    fn a_batch_ends_after_apply_batch() {
        let batch = "BEGIN UNLOGGED BATCH INSERT a; INSERT b; APPLY BATCH;";
        check(&[&format!("{batch} SELECT 1;")], &[batch, "SELECT 1;"], None);
    }

    #[test]
    fn a_shell_command_ends_with_its_line() {
        check(
            &["HELP", "DESCRIBE TABLES;", "SELECT", "1;"],
            &["HELP", "DESCRIBE TABLES;", "SELECT\n1;"],
            None,
        );
    }
}
