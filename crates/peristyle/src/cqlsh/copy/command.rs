//! The text of a `COPY` command, taken apart.

use super::options::CopyOptions;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    To,
    From,
}

/// A `COPY` command. Names are as typed, quotes included.
#[derive(Debug, PartialEq)]
pub(super) struct CopyCommand {
    pub(super) keyspace: Option<String>,
    pub(super) table: String,
    /// `None`: all of them.
    pub(super) columns: Option<Vec<String>>,
    pub(super) direction: Direction,
    /// `None`: the standard stream.
    pub(super) path: Option<String>,
    pub(super) options: CopyOptions,
}

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// Between quotes, without them.
    Text(String),
    Mark(char),
}

/// Reads a command.
///
/// # Errors
/// It makes no sense, in words for the user.
pub(super) fn parse(text: &str) -> Result<CopyCommand, String> {
    let mut tokens = Tokens { tokens: tokenize(text)?, next: 0 };
    tokens.keyword("copy")?;
    let first = tokens.word("a table")?;
    let (keyspace, table) = match tokens.mark('.') {
        true => (Some(first), tokens.word("a table")?),
        false => (None, first),
    };
    let columns = if tokens.mark('(') { Some(tokens.names()?) } else { None };
    let direction = match tokens.word("TO or FROM")?.to_lowercase().as_str() {
        "to" => Direction::To,
        "from" => Direction::From,
        _ => return Err("Improper COPY command: expected TO or FROM.".to_owned()),
    };
    let path = match (tokens.take(), direction) {
        (Some(Token::Text(path)), _) => Some(path),
        (Some(Token::Word(word)), Direction::To) if word.eq_ignore_ascii_case("stdout") => None,
        (Some(Token::Word(word)), Direction::From) if word.eq_ignore_ascii_case("stdin") => None,
        _ => return Err("Improper COPY command: expected a file name in quotes, STDIN or STDOUT.".to_owned()),
    };
    let mut options = CopyOptions::default();
    if tokens.take_keyword("with") {
        loop {
            let name = tokens.word("an option")?;
            if !tokens.mark('=') {
                return Err(format!("Improper COPY command: expected = after {name}."));
            }
            let value = match tokens.take() {
                Some(Token::Text(value) | Token::Word(value)) => value,
                _ => return Err(format!("Improper COPY command: expected a value for {name}.")),
            };
            options.set(&name, &value)?;
            if !tokens.take_keyword("and") {
                break;
            }
        }
    }
    match tokens.take() {
        None => Ok(CopyCommand { keyspace, table, columns, direction, path, options }),
        Some(token) => Err(format!("Improper COPY command: {token:?} is not expected.")),
    }
}

struct Tokens {
    tokens: Vec<Token>,
    next: usize,
}

impl Tokens {
    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn mark(&mut self, mark: char) -> bool {
        let found = self.tokens.get(self.next) == Some(&Token::Mark(mark));
        self.next += usize::from(found);
        found
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.tokens.get(self.next), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), String> {
        if self.take_keyword(keyword) { Ok(()) } else { Err(format!("expected {keyword}")) }
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        match self.take() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(format!("Improper COPY command: expected {what}.")),
        }
    }

    /// Names up to the closing parenthesis.
    fn names(&mut self) -> Result<Vec<String>, String> {
        let mut names = vec![self.word("a column")?];
        while self.mark(',') {
            names.push(self.word("a column")?);
        }
        if self.mark(')') {
            Ok(names)
        } else {
            Err("Improper COPY command: expected ) after the columns.".to_owned())
        }
    }
}

fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => {
                let length =
                    quoted_length(rest, first).ok_or("Improper COPY command: a quote is not closed.")?;
                tokens.push(match first {
                    '\'' => Token::Text(rest[1..length - 1].replace("''", "'")),
                    _ => Token::Word(rest[..length].to_owned()),
                });
                length
            }
            '(' | ')' | ',' | '.' | '=' => {
                tokens.push(Token::Mark(first));
                1
            }
            _ => {
                let is_end = |c: char| c.is_whitespace() || "(),.='\"".contains(c);
                let length = rest.find(is_end).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Length with both quotes; a doubled quote stands for one.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((index, character)) = characters.next() {
        if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_taken_apart() {
        let command = parse(
            "COPY ks.\"T\" (a, \"B\") FROM 'it''s.csv' WITH header = true AND delimiter='|' AND null='NA'",
        )
        .unwrap();
        assert_eq!(command.keyspace.as_deref(), Some("ks"));
        assert_eq!(command.table, "\"T\"");
        assert_eq!(command.columns.as_deref(), Some(["a".to_owned(), "\"B\"".to_owned()].as_slice()));
        assert_eq!(command.direction, Direction::From);
        assert_eq!(command.path.as_deref(), Some("it's.csv"));
        assert!(command.options.header);
        assert_eq!(command.options.dialect.delimiter, b'|');
        assert_eq!(command.options.null, "NA");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in
            ["COPY", "COPY t", "COPY t TO", "COPY t TO 'x", "COPY t (a TO 'x'", "COPY t TO 'x' WITH what=1"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("COPY t TO STDOUT").unwrap().path, None);
    }
}
