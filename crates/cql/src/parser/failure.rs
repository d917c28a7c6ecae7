//! What went wrong, and Cassandra's words for it.
//!
//! The message of a parse error ends with a snippet of the text: ten tokens before the one where
//! the choice began, that one in brackets, and up to two more, as far as the parser had looked.
//! Blanks and comments count as tokens here.

use super::Parser;
use crate::error::{SyntaxError, position};
use crate::lexer::{Lexer, Token, TokenKind};

/// A result whose error is as small as a pointer.
pub(super) type Outcome<T> = Result<T, Box<Failure>>;

/// Tokens of the snippet before the offending one.
const TOKENS_BEFORE: usize = 10;
/// Tokens of the snippet after the offending one.
const TOKENS_AFTER: usize = 2;

/// Of longer texts no part is quoted: to find it, all of the text is looked at.
const QUOTED_TEXT_BYTES_MAX: usize = 1 << 20;

/// Why parsing stopped; places are indexes of tokens.
#[derive(Debug)]
pub(super) enum Failure {
    /// One kind of token was expected.
    Mismatched { at: usize, expected: TokenKind },
    /// A choice that began at `start` has no alternative for the token at `at`.
    NoViable { start: usize, at: usize },
    /// The grammar allows it, the language does not.
    Refused { message: String },
    /// More nesting than a tree may have.
    TooDeep { levels_max: u32 },
    /// More operators than a term may have.
    TooManyOperators { levels_max: u32 },
}

impl Failure {
    /// Whether the text breaks the grammar, rather than a limit or a rule beyond it.
    pub(super) fn is_grammatical(&self) -> bool {
        matches!(self, Failure::Mismatched { .. } | Failure::NoViable { .. })
    }
}

/// The message for the client: of the lexer if the parser had looked that far, else of the parser.
#[cold]
pub(super) fn describe(parser: &Parser<'_>, failure: &Failure) -> SyntaxError {
    let seen = seen_with(parser, failure);
    if let Some(error) = &parser.lexical_error
        && seen + 1 >= parser.tokens.len()
    {
        return error.describe(parser.text);
    }
    let (line, column) = position(parser.text, parser.tokens[parser.at].start as usize);
    SyntaxError::new(match failure {
        Failure::Mismatched { at, expected } => {
            let what =
                format!("mismatched input {} expecting {}", show(parser, *at), expected.display_name());
            message(parser, *at, &what, *at, seen)
        }
        Failure::NoViable { start, at } => {
            let what = format!("no viable alternative at input {}", show(parser, *at));
            message(parser, *at, &what, *start, seen)
        }
        Failure::Refused { message } => message.clone(),
        Failure::TooDeep { levels_max } => {
            format!("line {line}:{column} nested deeper than {levels_max} levels")
        }
        Failure::TooManyOperators { levels_max } => {
            format!("line {line}:{column} more than {levels_max} operators and levels in one term")
        }
    })
}

/// The furthest token that Cassandra has looked at by now.
fn seen_with(parser: &Parser<'_>, failure: &Failure) -> usize {
    let seen = parser.seen.max(parser.at);
    match failure {
        Failure::Mismatched { at, .. } => seen.max(*at),
        Failure::NoViable { at, .. } => seen.max(*at),
        _ => seen,
    }
}

fn message(parser: &Parser<'_>, at: usize, what: &str, offending: usize, seen: usize) -> String {
    let (line, column) = place(parser, at);
    let quoted = match parser.text.len() {
        0..=QUOTED_TEXT_BYTES_MAX => snippet(parser, offending, seen),
        _ => Ok(None),
    };
    match quoted {
        Ok(Some(snippet)) => format!("line {line}:{column} {what} ({snippet})"),
        Ok(None) => format!("line {line}:{column} {what}"),
        Err(unquotable) => {
            stdx::brief!("Failed parsing statement: [{}] reason: {unquotable}", parser.text)
        }
    }
}

/// Line and column; the end of the text has none.
fn place(parser: &Parser<'_>, at: usize) -> (usize, isize) {
    let token = parser.tokens[at];
    if token.kind == TokenKind::End {
        return (0, -1);
    }
    let (line, column) = position(parser.text, token.start as usize);
    (line, column as isize)
}

fn show(parser: &Parser<'_>, at: usize) -> String {
    let token = parser.tokens[at];
    if token.kind == TokenKind::End {
        return "'<EOF>'".to_owned();
    }
    let text = token_text(token.kind, &parser.text[token.start as usize..token.end as usize]);
    let text = stdx::brief!("{text}");
    format!("'{}'", text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"))
}

/// The text of a token as Cassandra keeps it: quotes removed.
fn token_text(kind: TokenKind, written: &str) -> String {
    match kind {
        TokenKind::StringLiteral => written[1..written.len() - 1].replace("''", "'"),
        TokenKind::DollarString => written[2..written.len() - 2].to_owned(),
        TokenKind::QuotedName => written[1..written.len() - 1].replace("\"\"", "\""),
        _ => written.to_owned(),
    }
}

/// A token with its place in a line, in UTF-16 units.
struct Placed {
    line_index: usize,
    column: usize,
    /// Of the text without quotes: what Cassandra takes for the end of the token.
    length: usize,
}

impl Placed {
    /// None for the end of the text, which has no place.
    fn new(text: &str, token: Token) -> Option<Self> {
        if token.kind == TokenKind::End {
            return None;
        }
        let (line, column) = position(text, token.start as usize);
        let written = &text[token.start as usize..token.end as usize];
        let length = token_text(token.kind, written).encode_utf16().count();
        Some(Placed { line_index: line - 1, column, length })
    }

    fn end(&self) -> usize {
        self.column + self.length
    }
}

/// What Cassandra fails to quote, and the words in which it says so.
#[derive(Debug, thiserror::Error)]
enum Unquotable {
    /// A token goes on in the next line.
    #[error("StringIndexOutOfBoundsException begin 0, end {end}, length {length}")]
    OutOfLine { end: usize, length: usize },
    /// A token, the end of a line as a rule, is in one of the last lines that are empty, which do not count.
    #[error("ArrayIndexOutOfBoundsException Index {line_index} out of bounds for length {line_count}")]
    OutOfText { line_index: usize, line_count: usize },
}

fn snippet(parser: &Parser<'_>, offending: usize, seen: usize) -> Result<Option<String>, Unquotable> {
    let (tokens, offending) = all_tokens(parser, offending, seen);
    let place = |index: usize| {
        tokens
            .get(index.min(tokens.len().saturating_sub(1)))
            .and_then(|token| Placed::new(parser.text, *token))
    };
    let (Some(from), Some(to), Some(offending)) =
        (place(offending.saturating_sub(TOKENS_BEFORE)), place(offending + TOKENS_AFTER), place(offending))
    else {
        return Ok(None);
    };
    let mut lines: Vec<Vec<u16>> =
        parser.text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    while lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    // Those before it are not behind the offending one, which is no blank.
    if to.line_index >= lines.len() {
        return Err(Unquotable::OutOfText { line_index: to.line_index, line_count: lines.len() });
    }
    let includes_start = from.line_index == 0 && from.column == 0;
    let includes_end =
        to.line_index + 1 == lines.len() && lines.last().is_some_and(|line| line.len() == to.end());

    lines[to.line_index].truncate(to.end());
    let line = &mut lines[offending.line_index];
    if offending.end() > line.len() {
        return Err(Unquotable::OutOfLine { end: offending.end(), length: line.len() });
    }
    line.insert(offending.end(), u16::from(b']'));
    line.insert(offending.column, u16::from(b'['));
    lines[from.line_index].drain(..from.column);

    let quoted = String::from_utf16_lossy(&lines[from.line_index..=to.line_index].concat());
    let before = if includes_start { "" } else { "..." };
    let after = if includes_end { "" } else { "..." };
    Ok(Some(format!("{before}{quoted}{after}")))
}

/// All tokens up to the last one seen, blanks and comments too, and the index of the offending one
/// among them.
fn all_tokens(parser: &Parser<'_>, offending: usize, seen: usize) -> (Vec<Token>, usize) {
    let last_start = parser.tokens[seen].start;
    let offending_start = parser.tokens[offending].start;
    let mut lexer = Lexer::new(parser.text);
    let (mut tokens, mut offending_index) = (Vec::new(), 0);
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
        if token.kind == TokenKind::Hidden {
            continue;
        }
        if token.start == offending_start {
            offending_index = tokens.len() - 1;
        }
        if token.kind == TokenKind::End || token.start >= last_start {
            break;
        }
    }
    (tokens, offending_index)
}
