//! Command-line words, read the same way by every command: `--name value`, `--name=value`, `--flag`,
//! and positional words. (No parser crate: xtask must build in a moment.)

use std::str::FromStr;

use crate::report::Failure;

/// The words after the command's name.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Options in the order given; a flag has no value.
    options: Vec<(String, Option<String>)>,
    /// Words that belong to no option.
    pub(crate) positional: Vec<String>,
}

impl Arguments {
    /// Sorts words into options and positional ones. A word after `--name` is its value unless it
    /// starts with `--` itself.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
        let mut arguments = Arguments::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                arguments.positional.push(word);
                continue;
            };
            if option.is_empty() {
                arguments.positional.extend(words);
                break;
            }
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (option.to_owned(), words.next_if(|next| !next.starts_with("--"))),
            };
            arguments.options.push((name, value));
        }
        Ok(arguments)
    }

    /// Was the flag given? A flag takes no value, so a word that followed it is an error.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| option == name)
    }

    /// The text of an option, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(option, _)| option == name).and_then(|(_, value)| value.as_deref())
    }

    /// The value of an option, or a default.
    pub(crate) fn value<T: FromStr>(&self, name: &str, default: T) -> Result<T, Failure> {
        match self.text(name) {
            None if self.flag(name) => Err(Failure::new(format!("--{name} needs a value"))),
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| Failure::new(format!("--{name} does not take the value '{text}'")))
            }
        }
    }

    /// The comma-separated words of an option; none when it was not given.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let words = self.text(name).unwrap_or_default().split(',');
        words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Whether a list option names this word; one that was not given names all.
    pub(crate) fn picks(&self, name: &str, word: &str) -> bool {
        let words = self.list(name);
        words.is_empty() || words.iter().any(|named| named == word)
    }

    /// Refuses options other than these.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), Failure> {
        match self.options.iter().find(|(option, _)| !names.contains(&option.as_str())) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::new(format!("there is no option --{option}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Arguments {
        Arguments::parse(words.split_whitespace().map(str::to_owned)).unwrap()
    }

    #[test]
    fn options_take_their_value_from_the_next_word_or_after_an_equals_sign() {
        let arguments = parse("--rounds 5 --seed=7 --keep --only a,b word");
        assert_eq!(arguments.value("rounds", 0u32).unwrap(), 5);
        assert_eq!(arguments.value("seed", 0u64).unwrap(), 7);
        assert!(arguments.flag("keep"));
        assert_eq!(arguments.list("only"), ["a", "b"]);
        assert_eq!(arguments.positional, ["word"]);
        assert!(arguments.picks("only", "b") && !arguments.picks("only", "c"));
        assert!(arguments.picks("statements", "any"));
        assert!(arguments.value::<u32>("only", 1).is_err());
        assert!(arguments.only(&["rounds"]).is_err());
    }
}
