//! Text to tokens.
//!
//! A token is a kind and two offsets: nothing is copied. Cassandra's lexer decides what a token
//! will be as soon as only one kind is possible and complains if it is not; where that can be
//! seen (`12abc` is a broken UUID, `-now()` a broken `-NaN`) this one does the same.

pub(crate) mod keyword;
mod number;
mod token;

pub(crate) use token::{Token, TokenKind};

use crate::error::SyntaxError;

/// Why a text could not be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LexicalError {
    /// Where the offending character starts; the length of the text at its end.
    offset: usize,
    expected: Expected,
}

/// What the lexer would have liked to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// No token continues like this.
    Nothing,
    /// One character.
    Character(char),
    /// One of several.
    OneOf,
    /// At least one digit.
    Repetition,
}

impl LexicalError {
    fn nothing(offset: usize) -> Self {
        LexicalError { offset, expected: Expected::Nothing }
    }

    fn character(offset: usize, expected: char) -> Self {
        LexicalError { offset, expected: Expected::Character(expected) }
    }

    fn one_of(offset: usize) -> Self {
        LexicalError { offset, expected: Expected::OneOf }
    }

    fn repetition(offset: usize) -> Self {
        LexicalError { offset, expected: Expected::Repetition }
    }

    /// The message for the client.
    pub(crate) fn describe(&self, text: &str) -> SyntaxError {
        let (line, column) = crate::error::position(text, self.offset);
        let found = text[self.offset..].chars().next().map_or_else(|| "<EOF>".to_owned(), show_character);
        SyntaxError::new(match self.expected {
            Expected::Nothing => format!("line {line}:{column} no viable alternative at character '{found}'"),
            Expected::Character(expected) => {
                let expected = show_character(expected);
                format!("line {line}:{column} mismatched character '{found}' expecting '{expected}'")
            }
            Expected::Repetition => {
                let what = "required (...)+ loop did not match anything at character";
                format!("line {line}:{column} {what} '{found}'")
            }
            Expected::OneOf => {
                format!("line {line}:{column} mismatched character '{found}' expecting set null")
            }
        })
    }
}

fn show_character(character: char) -> String {
    match character {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        other => other.to_string(),
    }
}

/// Letters, digits and underscores.
static IS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// How many tokens stand in a text before its end, or before what is wrong in it.
pub(crate) fn count_tokens(text: &str) -> usize {
    let mut lexer = Lexer::new(text);
    let is_token = |kind| !matches!(kind, TokenKind::End | TokenKind::Invalid);
    std::iter::from_fn(|| Some(lexer.next_visible().kind).filter(|kind| is_token(*kind))).count()
}

/// Cuts a text from front to back.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Why the last token was [`TokenKind::Invalid`]. Kept here, not handed up with every token,
    /// because a bare kind travels in a register.
    error: Option<LexicalError>,
}

impl<'a> Lexer<'a> {
    /// The text must be shorter than 4 GiB, so that offsets fit.
    pub(crate) fn new(text: &'a str) -> Self {
        Lexer { text, bytes: text.as_bytes(), at: 0, error: None }
    }

    /// All tokens that the parser sees, closed by [`TokenKind::End`], or by
    /// [`TokenKind::Invalid`] and the reason.
    pub(crate) fn tokenize(mut self) -> (Vec<Token>, Option<LexicalError>) {
        // Statements average five to six bytes a token.
        let mut tokens = Vec::with_capacity(self.bytes.len() / 5 + 8);
        loop {
            let start = self.at;
            let kind = self.scan();
            if kind != TokenKind::Hidden {
                tokens.push(self.token(kind, start));
            }
            if matches!(kind, TokenKind::End | TokenKind::Invalid) {
                return (tokens, self.error);
            }
        }
    }

    /// The next token, blanks and comments included; [`TokenKind::End`] again and again at the end,
    /// nothing where the text is wrong.
    pub(crate) fn next_token(&mut self) -> Option<Token> {
        let start = self.at;
        let kind = self.scan();
        (kind != TokenKind::Invalid).then(|| self.token(kind, start))
    }

    /// The next token that is neither blank nor comment, [`TokenKind::Invalid`] where the text is wrong.
    pub(crate) fn next_visible(&mut self) -> Token {
        loop {
            let start = self.at;
            let kind = self.scan();
            if kind != TokenKind::Hidden {
                return self.token(kind, start);
            }
        }
    }

    /// Goes on elsewhere in the text, where a token begins.
    pub(crate) fn go_to(&mut self, offset: usize) {
        self.at = offset;
    }

    /// Steps over one token and tells its kind.
    #[inline]
    fn scan(&mut self) -> TokenKind {
        let start = self.at;
        let Some(&first) = self.bytes.get(start) else { return TokenKind::End };
        match first {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.at += 1;
                while matches!(self.peek(0), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at += 1;
                }
                TokenKind::Hidden
            }
            b'a'..=b'z' | b'A'..=b'Z' => self.word(),
            b'0'..=b'9' => self.number(),
            b'\'' => self.quoted(b'\'', TokenKind::StringLiteral),
            b'"' => self.quoted_name(),
            b'$' => self.dollar_string(),
            b'-' => self.minus(),
            b'/' => self.slash(),
            b',' => self.sign(TokenKind::Comma),
            b'(' => self.sign(TokenKind::OpenParenthesis),
            b')' => self.sign(TokenKind::CloseParenthesis),
            b'=' => self.sign(TokenKind::Equal),
            b'?' => self.sign(TokenKind::QuestionMark),
            b';' => self.sign(TokenKind::Semicolon),
            b':' => self.sign(TokenKind::Colon),
            b'{' => self.sign(TokenKind::OpenBrace),
            b'}' => self.sign(TokenKind::CloseBrace),
            b'[' => self.sign(TokenKind::OpenBracket),
            b']' => self.sign(TokenKind::CloseBracket),
            b'*' => self.sign(TokenKind::Star),
            b'%' => self.sign(TokenKind::Percent),
            b'.' => self.sign_pair(b'.', TokenKind::Range, TokenKind::Dot),
            b'+' => self.sign_pair(b'=', TokenKind::PlusEqual, TokenKind::Plus),
            b'<' => self.sign_pair(b'=', TokenKind::LessOrEqual, TokenKind::Less),
            b'>' => self.sign_pair(b'=', TokenKind::GreaterOrEqual, TokenKind::Greater),
            b'!' if self.peek(1) == Some(b'=') => {
                self.sign_pair(b'=', TokenKind::NotEqual, TokenKind::NotEqual)
            }
            b'!' => self.fail(LexicalError::character(start + 1, '=')),
            _ => self.fail(LexicalError::nothing(start)),
        }
    }

    /// Notes why there is no token here.
    #[cold]
    fn fail(&mut self, error: LexicalError) -> TokenKind {
        self.error = Some(error);
        TokenKind::Invalid
    }

    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start: start as u32, end: self.at as u32 }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn sign(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn sign_pair(&mut self, second: u8, pair: TokenKind, single: TokenKind) -> TokenKind {
        if self.peek(1) == Some(second) {
            self.at += 2;
            pair
        } else {
            self.at += 1;
            single
        }
    }

    /// An identifier, a keyword, and whatever else starts with a letter.
    fn word(&mut self) -> TokenKind {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|byte| !IS_WORD[usize::from(*byte)]).unwrap_or(rest.len());
        let word = &self.bytes[start..start + length];
        match self.bytes.get(start + length) {
            Some(b'-') if length == 8 && word.iter().all(u8::is_ascii_hexdigit) => return self.uuid(),
            Some(b'(') if word == b"expr" => {
                self.at += length + 1;
                return TokenKind::ExprParenthesis;
            }
            _ => {}
        }
        if word[0] == b'P'
            && let Some(kind) = self.iso_duration(start, length)
        {
            return kind;
        }
        self.at += length;
        match keyword::find(word) {
            Some(kind) => kind,
            None if word.eq_ignore_ascii_case(b"true") || word.eq_ignore_ascii_case(b"false") => {
                TokenKind::BooleanLiteral
            }
            None => TokenKind::Identifier,
        }
    }

    /// From an opening quote to its closing one; a doubled quote stands for itself.
    fn quoted(&mut self, quote: u8, kind: TokenKind) -> TokenKind {
        let mut at = self.at + 1;
        loop {
            match self.text[at..].find(char::from(quote)) {
                None => return self.fail(LexicalError::character(self.bytes.len(), char::from(quote))),
                Some(length) => at += length + 1,
            }
            if self.bytes.get(at) != Some(&quote) {
                self.at = at;
                return kind;
            }
            at += 1;
        }
    }

    fn quoted_name(&mut self) -> TokenKind {
        if self.peek(1) == Some(b'"') && self.peek(2) != Some(b'"') {
            self.at += 2;
            return TokenKind::EmptyQuotedName;
        }
        self.quoted(b'"', TokenKind::QuotedName)
    }

    fn dollar_string(&mut self) -> TokenKind {
        let start = self.at;
        if self.peek(1) != Some(b'$') {
            return self.fail(LexicalError::character(start + 1, '$'));
        }
        match self.text[start + 2..].find("$$") {
            Some(length) => {
                self.at = start + length + 4;
                TokenKind::DollarString
            }
            None => self.fail(LexicalError::character(self.unclosed_dollar_offset(start + 2), '$')),
        }
    }

    /// Cassandra does not read the last character into an open string: that one is in the way,
    /// unless it is half of the end.
    fn unclosed_dollar_offset(&self, content: usize) -> usize {
        match self.text[content..].char_indices().next_back() {
            Some((last, character)) if character != '$' => content + last,
            _ => self.bytes.len(),
        }
    }

    fn minus(&mut self) -> TokenKind {
        match self.peek(1) {
            Some(b'0'..=b'9') => self.number(),
            Some(b'-') => self.line_comment(),
            Some(b'=') => self.sign_pair(b'=', TokenKind::MinusEqual, TokenKind::Minus),
            Some(b'n' | b'N') => self.negative(b"nan", TokenKind::NegativeNan),
            Some(b'i' | b'I') => self.negative(b"infinity", TokenKind::NegativeInfinity),
            Some(b'P') => {
                let start = self.at + 1;
                let length = self.bytes[start..]
                    .iter()
                    .position(|byte| !byte.is_ascii_alphanumeric())
                    .unwrap_or(self.bytes.len() - start);
                match self.iso_duration(start, length) {
                    Some(kind) => kind,
                    None => self.fail(LexicalError::nothing(start + length.min(2))),
                }
            }
            _ => self.sign(TokenKind::Minus),
        }
    }

    /// `-NaN` or `-Infinity`, whose first letter has been seen.
    fn negative(&mut self, word: &[u8], kind: TokenKind) -> TokenKind {
        let start = self.at + 1;
        for (offset, letter) in word.iter().enumerate() {
            match self.bytes.get(start + offset) {
                Some(byte) if byte.eq_ignore_ascii_case(letter) => {}
                _ => return self.fail(LexicalError::one_of(self.boundary(start + offset))),
            }
        }
        self.at = start + word.len();
        kind
    }

    fn slash(&mut self) -> TokenKind {
        match self.peek(1) {
            Some(b'/') => self.line_comment(),
            Some(b'*') => match self.text[self.at + 2..].find("*/") {
                Some(length) => {
                    self.at += length + 4;
                    TokenKind::Hidden
                }
                None => self.fail(LexicalError::character(self.bytes.len(), '*')),
            },
            _ => self.sign(TokenKind::Slash),
        }
    }

    /// A comment must end with its line: at the end of the text it is an error, as in Cassandra.
    fn line_comment(&mut self) -> TokenKind {
        match self.bytes[self.at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(length) => {
                self.at += length + 1;
                TokenKind::Hidden
            }
            None => self.fail(LexicalError::one_of(self.bytes.len())),
        }
    }

    /// The offset itself or the end of the text.
    fn boundary(&self, offset: usize) -> usize {
        offset.min(self.bytes.len())
    }
}

#[cfg(test)]
mod tests;
