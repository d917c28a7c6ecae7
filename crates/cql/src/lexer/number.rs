//! Tokens that start with a digit, and durations and UUIDs that start with a letter.

use super::{Lexer, LexicalError, TokenKind};

/// The length of a UUID in text.
const UUID_BYTES: usize = 36;

impl Lexer<'_> {
    /// An integer, float, duration, UUID or hexadecimal number; a minus sign may come first.
    pub(super) fn number(&mut self) -> TokenKind {
        let start = self.at;
        let is_negative = self.bytes[start] == b'-';
        let digits_start = start + usize::from(is_negative);
        let end = self.digits_end(digits_start);
        let digit_count = end - digits_start;
        let may_be_uuid = !is_negative && digit_count <= 8;
        match self.bytes.get(end) {
            Some(b'.') => self.fraction(end),
            Some(b'x' | b'X') if digit_count == 1 && self.bytes[start] == b'0' => {
                let digits = self.bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                self.at = end + 1 + digits;
                TokenKind::HexNumber
            }
            Some(b'-') if may_be_uuid && digit_count == 8 => self.uuid(),
            Some(b'a' | b'A' | b'b' | b'B' | b'c' | b'C' | b'f' | b'F') if may_be_uuid && digit_count < 8 => {
                self.uuid()
            }
            Some(b'd' | b'D' | b'e' | b'E')
                if may_be_uuid && digit_count < 8 && self.looks_like_uuid(start) =>
            {
                self.uuid()
            }
            Some(b'e' | b'E') => self.exponent(end, digit_count >= 8),
            Some(byte) if is_unit_start(*byte) => self.duration(end),
            _ => {
                self.at = end;
                TokenKind::Integer
            }
        }
    }

    fn digits_end(&self, start: usize) -> usize {
        start + self.bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// `.` after digits: `1..2` is a range, `1...2` a float and a range.
    fn fraction(&mut self, dot: usize) -> TokenKind {
        if self.bytes.get(dot + 1) == Some(&b'.') {
            let is_float = self.bytes.get(dot + 2) == Some(&b'.');
            self.at = dot + usize::from(is_float);
            return if is_float { TokenKind::FloatLiteral } else { TokenKind::Integer };
        }
        let end = self.digits_end(dot + 1);
        if matches!(self.bytes.get(end), Some(b'e' | b'E')) {
            return self.exponent(end, true);
        }
        self.at = end;
        TokenKind::FloatLiteral
    }

    /// An exponent, whose letter is here. The flag tells that nothing else can be meant.
    fn exponent(&mut self, letter: usize, is_certain: bool) -> TokenKind {
        let is_signed = matches!(self.bytes.get(letter + 1), Some(b'+' | b'-'));
        let digits = letter + 1 + usize::from(is_signed);
        let end = self.digits_end(digits);
        if end > digits {
            self.at = end;
            return TokenKind::FloatLiteral;
        }
        self.fail(if is_certain || is_signed {
            LexicalError::repetition(digits)
        } else {
            LexicalError::nothing(digits)
        })
    }

    /// Whether the letters and digits from here on can only be a UUID: eight hexadecimal digits
    /// and a minus, or a shorter mixture that is neither an exponent nor a duration.
    fn looks_like_uuid(&self, start: usize) -> bool {
        let hex_count = self.bytes[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if hex_count >= 8 {
            return hex_count == 8 && self.bytes.get(start + 8) == Some(&b'-');
        }
        let run = &self.bytes[start..start + hex_count];
        let letters = run.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
        let only_days = run.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'd' | b'D'));
        let doubled = run.windows(2).any(|pair| pair.iter().all(u8::is_ascii_alphabetic));
        !((letters == 1 || only_days) && !doubled)
    }

    /// `8-4-4-4-12` hexadecimal digits.
    pub(super) fn uuid(&mut self) -> TokenKind {
        let start = self.at;
        for place in 0..UUID_BYTES {
            let offset = start + place;
            let byte = self.bytes.get(offset);
            match place {
                8 | 13 | 18 | 23 if byte != Some(&b'-') => {
                    return self.fail(LexicalError::character(offset, '-'));
                }
                8 | 13 | 18 | 23 => {}
                _ if byte.is_some_and(u8::is_ascii_hexdigit) => {}
                _ => return self.fail(LexicalError::one_of(self.boundary(offset))),
            }
        }
        self.at = start + UUID_BYTES;
        TokenKind::UuidLiteral
    }

    /// `1y2mo3w4d5h6m7s8ms9us10ns`: digits and units, from the first unit on.
    fn duration(&mut self, first_unit: usize) -> TokenKind {
        let mut at = first_unit;
        loop {
            at = match self.unit_end(at) {
                Ok(end) => end,
                Err(error) => return self.fail(error),
            };
            let digits = self.digits_end(at);
            if digits == at {
                self.at = at;
                return TokenKind::DurationLiteral;
            }
            at = digits;
        }
    }

    fn unit_end(&self, at: usize) -> Result<usize, LexicalError> {
        let lower = |offset: usize| self.bytes.get(at + offset).map(u8::to_ascii_lowercase);
        match (lower(0), lower(1)) {
            (Some(b'm'), Some(b'o' | b's')) | (Some(b'u' | b'n'), Some(b's')) => Ok(at + 2),
            (Some(b'y' | b'w' | b'd' | b'h' | b'm' | b's'), _) => Ok(at + 1),
            // The micro sign takes two bytes.
            (Some(0xC2), Some(0xB5)) if lower(2) == Some(b's') => Ok(at + 3),
            (Some(b'u' | b'n'), _) => Err(LexicalError::one_of(self.boundary(at + 1))),
            (Some(0xC2), Some(0xB5)) => Err(LexicalError::one_of(self.boundary(at + 2))),
            _ => Err(LexicalError::nothing(self.boundary(at))),
        }
    }

    /// A duration in one of the ISO 8601 forms, if the word of this start and length is one.
    pub(super) fn iso_duration(&mut self, start: usize, length: usize) -> Option<TokenKind> {
        let word = &self.bytes[start..start + length];
        if length == 5 && word[1..].iter().all(u8::is_ascii_digit) && self.bytes.get(start + 5) == Some(&b'-')
        {
            return Some(self.alternative_duration(start));
        }
        is_iso_duration(word).then(|| {
            self.at = start + length;
            TokenKind::DurationLiteral
        })
    }

    /// `P0001-02-03T04:05:06`
    fn alternative_duration(&mut self, start: usize) -> TokenKind {
        const SHAPE: &[u8] = b"P0000-00-00T00:00:00";
        for (place, expected) in SHAPE.iter().enumerate() {
            let offset = start + place;
            match self.bytes.get(offset) {
                Some(byte) if *expected == b'0' && byte.is_ascii_digit() => {}
                Some(byte) if byte == expected => {}
                _ if *expected == b'0' => return self.fail(LexicalError::one_of(self.boundary(offset))),
                _ => return self.fail(LexicalError::character(self.boundary(offset), char::from(*expected))),
            }
        }
        self.at = start + SHAPE.len();
        TokenKind::DurationLiteral
    }
}

fn is_unit_start(byte: u8) -> bool {
    // 0xC2 is the first byte of the micro sign, and of other characters that are refused.
    matches!(byte.to_ascii_lowercase(), b'y' | b'm' | b'w' | b'd' | b'h' | b's' | b'u' | b'n' | 0xC2)
}

/// `P1Y2M3DT4H5M6S` with any part left out but not all, or `P1W`; upper case only.
fn is_iso_duration(word: &[u8]) -> bool {
    let Some(mut rest) = word.strip_prefix(b"P") else { return false };
    if let Some(weeks) = strip_amount(rest, b'W') {
        return weeks.is_empty();
    }
    let mut is_empty = true;
    for unit in [b'Y', b'M', b'D'] {
        if let Some(left) = strip_amount(rest, unit) {
            (rest, is_empty) = (left, false);
        }
    }
    if let Some(mut time) = rest.strip_prefix(b"T") {
        is_empty = true;
        for unit in [b'H', b'M', b'S'] {
            if let Some(left) = strip_amount(time, unit) {
                (time, is_empty) = (left, false);
            }
        }
        rest = time;
    }
    !is_empty && rest.is_empty()
}

fn strip_amount(word: &[u8], unit: u8) -> Option<&[u8]> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0 && word.get(digits) == Some(&unit)).then(|| &word[digits + 1..])
}
