//! Trees to text: `Display` for every node.
//!
//! What is printed parses to the same tree. Names are quoted only where they must be; a few
//! places need more care than others, since the language has keywords that are names in one place
//! and not in another.

mod describe;
mod modification;
mod name;
mod relation;
mod schema;
mod schema_object;
mod security;
mod select;
mod statement;
mod term;
mod types;

pub use name::maybe_quote;

use std::fmt::{self, Display, Formatter};

/// Prints items with a separator between them.
struct Separated<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(self.1)?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// `a, b, c`
fn commas<T>(items: &[T]) -> Separated<'_, T> {
    Separated(items, ", ")
}

/// `a AND b AND c`
fn ands<T>(items: &[T]) -> Separated<'_, T> {
    Separated(items, " AND ")
}

/// Prints a pair with a sign between: `a: b`.
struct Pairs<'a, A, B> {
    pairs: &'a [(A, B)],
    inside: &'static str,
    between: &'static str,
}

impl<A: Display, B: Display> Display for Pairs<'_, A, B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (left, right)) in self.pairs.iter().enumerate() {
            let between = if index > 0 { self.between } else { "" };
            write!(f, "{between}{left}{}{right}", self.inside)?;
        }
        Ok(())
    }
}

/// `a: b, c: d`
fn entries<A, B>(pairs: &[(A, B)]) -> Pairs<'_, A, B> {
    Pairs { pairs, inside: ": ", between: ", " }
}

/// Prints a word and a blank if a flag is set.
fn flag(f: &mut Formatter<'_>, is_set: bool, words: &str) -> fmt::Result {
    if is_set { write!(f, "{words} ") } else { Ok(()) }
}

#[cfg(test)]
mod tests;
