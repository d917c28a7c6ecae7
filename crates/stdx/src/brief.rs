//! Messages that quote what a client sent, of which there may be megabytes.

use std::fmt::{self, Write};

/// A message has at most so many bytes, and a mark where it was cut.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// As `format!`, of a message that ends with `…` where it would become too long for anybody to read.
#[macro_export]
macro_rules! brief {
    ($($argument:tt)*) => { $crate::brief::format(format_args!($($argument)*)) };
}

/// What [`brief!`] does. What is left out is not formatted either.
pub fn format(arguments: fmt::Arguments<'_>) -> String {
    let mut message = Brief(String::new());
    // The only thing that can go wrong is the message's being full, which it shows by its mark.
    _ = message.write_fmt(arguments);
    message.0
}

struct Brief(String);

impl Write for Brief {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Whoever goes on after an error is told again.
        let Some(room) = MESSAGE_BYTES_MAX.checked_sub(self.0.len()) else { return Err(fmt::Error) };
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_where_it_becomes_too_long() {
        assert_eq!(brief!("no {}, but {:?}", "seven", 'x'), "no seven, but 'x'");
        let long = brief!("'{}' is no {}", "é".repeat(MESSAGE_BYTES_MAX), "number");
        assert!(long.starts_with("'éé") && long.ends_with("é…"), "{} bytes", long.len());
        assert_eq!(long.len(), MESSAGE_BYTES_MAX - 1 + '…'.len_utf8(), "half an é is not shown");
        let full = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(brief!("{full}"), full);
        assert_eq!(brief!("{full}{}", ""), full);
    }

    #[test]
    fn what_goes_on_after_the_end_is_left_out() {
        struct Deaf;
        impl fmt::Display for Deaf {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                _ = f.write_str(&"x".repeat(MESSAGE_BYTES_MAX + 1));
                _ = f.write_str("y");
                Ok(())
            }
        }
        let message = brief!("{Deaf}");
        assert_eq!(message.len(), MESSAGE_BYTES_MAX + '…'.len_utf8());
        assert!(message.ends_with("x…"));
    }
}
