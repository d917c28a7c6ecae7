//! Reading fixed pieces off the front of text.

/// A position in text. A piece that is not there leaves it where it was.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Scanner { rest: text }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Exactly this text.
    pub(crate) fn literal(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// The digits that follow, at most `most` of them, possibly none.
    pub(crate) fn digits(&mut self, most: usize) -> &'a str {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    /// A number of one to `most` digits that fits.
    pub(crate) fn number(&mut self, most: usize) -> Option<i64> {
        let start = self.rest;
        let number = self.digits(most).parse().ok();
        if number.is_none() {
            self.rest = start;
        }
        number
    }

    /// A number of exactly two digits.
    pub(crate) fn two_digits(&mut self) -> Option<i64> {
        let digits = self.rest.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_digit()))?;
        self.rest = &self.rest[2..];
        digits.parse().ok()
    }

    /// A year: four digits, or more behind a plus, or four to nine behind a minus.
    pub(crate) fn year_of_four_digits_or_signed(&mut self) -> Option<i64> {
        let start = self.rest;
        let sign = self.rest.bytes().next().filter(|byte| matches!(byte, b'+' | b'-'));
        if sign.is_some() {
            self.rest = &self.rest[1..];
        }
        let digits = self.digits(10);
        let right = match sign {
            None => digits.len() == 4,
            Some(b'+') => digits.len() > 4,
            Some(_) => digits.len() >= 4,
        };
        let year = digits.parse::<i64>().ok().filter(|year| {
            // Minus zero is refused, and so are years that the calendar does not have.
            right && *year <= 999_999_999 && (sign != Some(b'-') || *year != 0)
        });
        match (year, sign) {
            (Some(year), Some(b'-')) => Some(-year),
            (Some(year), _) => Some(year),
            (None, _) => {
                self.rest = start;
                None
            }
        }
    }
}
