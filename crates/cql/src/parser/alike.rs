//! Batches of INSERTs that are written alike.
//!
//! ```text
//!   INSERT INTO t (a, b) VALUES (1, 'x'); INSERT INTO t (a, b) VALUES (2, 'y'); …
//!   └──────────────────────────┘ └┘   └┘  └─ the same bytes once more ─┘ …
//! ```
//!
//! Who loads data by text repeats a statement a hundred times and changes the constants. The first is
//! parsed; of those that repeat it byte for byte only the constants are cut out. A run of bytes from one
//! token's start to another's gives the same tokens wherever it stands, if it ends with what no token goes
//! on behind: a blank, a comma or a parenthesis.
//!
//! This way only ever succeeds: a text with anything wrong in it is parsed from its start the usual way, which has
//! the words for what is wrong.

use std::sync::Arc;

use super::Parser;
use super::literal::literal;
use crate::ast::{
    Batch, BatchKind, Ident, Insert, InsertSource, Marker, Modification, QualifiedName, Statement,
    StatementKind, Term, Using,
};
use crate::lexer::{Lexer, Token, TokenKind};

/// So many ways of writing an INSERT are remembered: a batch may go from table to table and back.
const PATTERNS_MAX: usize = 4;

/// Parses a batch without USING; `None` if the text is anything else, or wrong.
pub(super) fn parse_batch(text: &str) -> Option<Statement> {
    if text.len() > super::TEXT_BYTES_MAX {
        return None;
    }
    let mut batch = AlikeBatch { text, lexer: Lexer::new(text), markers: Vec::new(), patterns: Vec::new() };
    let kind = batch.head()?;
    let mut statements = Vec::new();
    let mut token = batch.lexer.next_visible();
    while token.kind != TokenKind::Apply {
        let (statement, next) = batch.repeated(token).or_else(|| batch.other(token))?;
        statements.push(statement);
        token = if next.kind == TokenKind::Semicolon { batch.lexer.next_visible() } else { next };
    }
    batch.end()?;
    let kind = StatementKind::Batch(Batch { kind, using: Using::default(), statements });
    Some(Statement { kind, markers: batch.markers })
}

struct AlikeBatch<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    markers: Vec<Marker>,
    /// The latest is last.
    patterns: Vec<Pattern<'a>>,
}

/// How an INSERT of constants was written.
struct Pattern<'a> {
    /// What stands before each constant.
    before: Vec<&'a str>,
    /// What stands behind the last.
    behind: &'a str,
    table: Arc<QualifiedName>,
    columns: Arc<[Ident]>,
}

impl<'a> AlikeBatch<'a> {
    /// `BEGIN [UNLOGGED | COUNTER] BATCH`
    fn head(&mut self) -> Option<BatchKind> {
        (self.lexer.next_visible().kind == TokenKind::Begin).then_some(())?;
        let kind = match self.lexer.next_visible().kind {
            TokenKind::Batch => return Some(BatchKind::Logged),
            TokenKind::Unlogged => BatchKind::Unlogged,
            TokenKind::Counter => BatchKind::Counter,
            _ => return None,
        };
        (self.lexer.next_visible().kind == TokenKind::Batch).then_some(kind)
    }

    /// `BATCH` after `APPLY`, and the end of the text.
    fn end(&mut self) -> Option<()> {
        (self.lexer.next_visible().kind == TokenKind::Batch).then_some(())?;
        loop {
            match self.lexer.next_visible().kind {
                TokenKind::Semicolon => {}
                TokenKind::End => return Some(()),
                _ => return None,
            }
        }
    }

    /// An INSERT that begins with this token, if it is written as one before; and the token behind it.
    fn repeated(&mut self, first: Token) -> Option<(Modification, Token)> {
        for pattern in self.patterns.iter().rev() {
            if let Some(insert) = pattern.insert(self.text, first.start as usize, &mut self.lexer) {
                let next = self.lexer.next_visible();
                if ends_statement(next.kind) {
                    return Some((Modification::Insert(insert), next));
                }
            }
        }
        self.lexer.go_to(first.end as usize);
        None
    }

    /// Parses the statement that begins with this token; and the token behind it.
    fn other(&mut self, first: Token) -> Option<(Modification, Token)> {
        let mut tokens = vec![first];
        let next = loop {
            let token = self.lexer.next_visible();
            match token.kind {
                kind if ends_statement(kind) => break token,
                TokenKind::End | TokenKind::Invalid => return None,
                _ => tokens.push(token),
            }
        };
        let own_count = tokens.len();
        tokens.extend([next, Token { kind: TokenKind::End, ..next }]);
        let markers = std::mem::take(&mut self.markers);
        let mut parser = Parser { markers, ..Parser::over(self.text, tokens) };
        let statement = parser.modification().ok()??;
        (parser.at == own_count).then_some(())?;
        self.markers = parser.markers;
        if let Modification::Insert(insert) = &statement
            && let Some(pattern) = Pattern::of(self.text, &parser.tokens[..own_count], insert)
        {
            if self.patterns.len() == PATTERNS_MAX {
                self.patterns.remove(0);
            }
            self.patterns.push(pattern);
        }
        Some((statement, next))
    }
}

impl<'a> Pattern<'a> {
    /// That of an INSERT of these tokens; `None` when it inserts anything but constants, or when its bytes may
    /// mean something else before other constants.
    fn of(text: &'a str, tokens: &[Token], insert: &Insert) -> Option<Pattern<'a>> {
        let InsertSource::Values { columns, values } = &insert.source else { return None };
        let is_plain = !insert.if_not_exists
            && insert.using == Using::default()
            && values.iter().all(|value| matches!(value, Term::Literal(_)));
        // What is left when columns and table are named are constants, commas and a parenthesis.
        let values_at = tokens.iter().rposition(|token| token.kind == TokenKind::OpenParenthesis)?;
        let constants = tokens[values_at..].iter().filter(|token| {
            !matches!(token.kind, TokenKind::OpenParenthesis | TokenKind::Comma | TokenKind::CloseParenthesis)
        });
        let (mut at, mut before) = (tokens.first()?.start as usize, Vec::with_capacity(values.len()));
        for constant in constants {
            before.push(&text[at..constant.start as usize]);
            at = constant.end as usize;
        }
        let behind = &text[at..tokens.last()?.end as usize];
        let is_closed = |run: &&str| run.ends_with([' ', '\t', '\n', '\r', ',', '(']);
        let fits = is_plain && before.len() == values.len() && before.iter().all(is_closed);
        let (table, columns) = (Arc::clone(&insert.table), Arc::clone(columns));
        fits.then_some(Pattern { before, behind, table, columns })
    }

    /// The INSERT at that offset, if it is written so; the lexer is behind it then.
    fn insert(&self, text: &str, start: usize, lexer: &mut Lexer<'_>) -> Option<Insert> {
        let mut at = start;
        let mut values = Vec::with_capacity(self.before.len());
        for before in &self.before {
            at = behind(text, at, before)?;
            lexer.go_to(at);
            let token = lexer.next_visible();
            // A comment or blank may begin where a constant did; then it is not the same text.
            (token.start as usize == at).then_some(())?;
            at = token.end as usize;
            values.push(Term::Literal(literal(token.kind, text.get(token.start as usize..at)?)?));
        }
        lexer.go_to(behind(text, at, self.behind)?);
        Some(Insert {
            table: Arc::clone(&self.table),
            source: InsertSource::Values { columns: Arc::clone(&self.columns), values },
            if_not_exists: false,
            using: Using::default(),
        })
    }
}

/// Is that what may stand behind a statement of a batch? Words that are reserved, so that none has them inside.
fn ends_statement(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Insert | TokenKind::Update | TokenKind::Delete | TokenKind::Apply | TokenKind::Semicolon
    )
}

/// Where a run of bytes that is there ends.
fn behind(text: &str, at: usize, run: &str) -> Option<usize> {
    text.as_bytes()[at..].starts_with(run.as_bytes()).then_some(at + run.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is parsed here is what is parsed the usual way; and was it parsed here?
    fn is_as_usual(text: &str) -> bool {
        let usual = Parser::new(text).and_then(|mut parser| {
            let outcome = parser.statement();
            parser.finish(outcome)
        });
        let here = parse_batch(text);
        if let Some(here) = &here {
            assert_eq!(usual.as_ref(), Ok(here), "{text}");
        }
        here.is_some()
    }

    fn tables(text: &str) -> Vec<Arc<QualifiedName>> {
        let Some(StatementKind::Batch(batch)) = parse_batch(text).map(|statement| statement.kind) else {
            panic!("{text}")
        };
        let table = |statement| match statement {
            Modification::Insert(insert) => insert.table,
            other => panic!("{other}"),
        };
        batch.statements.into_iter().map(table).collect()
    }

    #[test]
    fn inserts_that_are_written_alike_share_their_names() {
        let text = "BEGIN UNLOGGED BATCH INSERT INTO k.t (a, b) VALUES (1,'x'); INSERT INTO k.t (a, b) VALUES (-22,'it''s'); \
                    INSERT INTO k.u (a) VALUES (1) INSERT INTO k.t (a, b) VALUES (0x12,$$y$$); APPLY BATCH;";
        assert!(is_as_usual(text));
        let tables = tables(text);
        let is_shared = |one: usize, other: usize| Arc::ptr_eq(&tables[one], &tables[other]);
        assert!(is_shared(0, 1) && is_shared(0, 3) && !is_shared(0, 2));
    }

    #[test]
    fn what_is_written_a_little_differently_is_parsed_as_ever() {
        let insert = "INSERT INTO t (a, b) VALUES (1, 'x')";
        for other in [
            "INSERT INTO t (a, b) VALUES (1, 'x') IF NOT EXISTS",
            "INSERT INTO t (a, b) VALUES (1, 'x') USING TTL 5",
            "INSERT INTO t (a, b) VALUES (1, 'x'/* no */)",
            "INSERT INTO t (a, b) VALUES (/**/1, 'x')",
            "INSERT INTO t (a, b) VALUES (?, :b)",
            "INSERT INTO t (a, b) VALUES (null, 'x')",
            "INSERT INTO t (a, b) VALUES (- 1, 'x')",
            "INSERT INTO t (a, b) VALUES (1 + 1, 'x')",
            "INSERT INTO t (a, b) VALUES (f(1), ('x'))",
            "INSERT INTO t (a, b) VALUES ([1], {'x'})",
            "INSERT INTO t (a, b) VALUES (1)",
            "INSERT INTO t (a, b) values (1, 'x')",
            "INSERT INTO t (a, b) VALUES (NaN, -Infinity)",
            "INSERT INTO t (a, b) VALUES (1h, 123e4567-e89b-12d3-a456-426614174000)",
            "INSERT INTO t JSON '{}'",
            "UPDATE t SET b = b + 1 WHERE a IN (1, 2) AND c = ?",
            "DELETE b FROM t WHERE a = 1",
        ] {
            assert!(
                is_as_usual(&format!("BEGIN BATCH {insert};{other};{insert} {other}; APPLY BATCH")),
                "{other}"
            );
        }
    }

    #[test]
    fn what_is_wrong_or_no_batch_is_left_to_the_usual_way() {
        let insert = "INSERT INTO t (a, b) VALUES (1, 'x')";
        for text in [
            insert,
            "",
            "BEGIN",
            "BEGIN BATCH USING TIMESTAMP 1 APPLY BATCH",
            "BEGIN BATCH INSERT INTO t (a, b) VALUES (1, 'x'); INSERT INTO t (a, b) VALUES (1, 'x APPLY BATCH",
            "BEGIN BATCH INSERT INTO t (a, b) VALUES (1, 'x'); INSERT INTO t (a, b) VALUES (1x, 'x'); APPLY BATCH",
            "BEGIN BATCH INSERT INTO t (a, b) VALUES (1, 'x'); INSERT INTO t (a, b) VALUES (1, 'x'; APPLY BATCH",
            "BEGIN BATCH INSERT INTO t (a, b) VALUES (1, 'x');; APPLY BATCH",
            "BEGIN BATCH INSERT INTO t (a, b) VALUES (1, 'x') APPLY",
            "BEGIN BATCH SELECT * FROM t APPLY BATCH",
        ] {
            assert!(!is_as_usual(text), "{text}");
        }
    }

    #[test]
    fn a_cut_or_changed_byte_anywhere_changes_no_meaning() {
        let text = "BEGIN BATCH INSERT INTO t(a,b)VALUES(1,'x');INSERT INTO t(a,b)VALUES(2,'y');INSERT INTO t(a,b)VALUES(3,'z')APPLY BATCH";
        let mut parsed_count = 0;
        for place in 0..text.len() {
            is_as_usual(&text[..place]);
            for byte in b"'(),;-/*$?. 0aeE\"" {
                let mut changed = text.as_bytes().to_vec();
                changed[place] = *byte;
                parsed_count += usize::from(is_as_usual(&String::from_utf8(changed).expect("ASCII")));
                let inserted = format!("{}{}{}", &text[..place], char::from(*byte), &text[place..]);
                parsed_count += usize::from(is_as_usual(&inserted));
            }
        }
        assert!(parsed_count > 300, "{parsed_count}");
    }
}
