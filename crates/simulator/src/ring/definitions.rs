//! Which definitions there may be: what was asked for, what was acknowledged, and what lost against one of its name.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::Violation;

/// Definitions that operators ask for, by their names in what a node shows of its schema.
#[derive(Debug, Default)]
pub(crate) struct Definitions(BTreeMap<String, Fate>);

#[derive(Debug)]
struct Fate {
    /// What it shares with its rivals, of which one at most comes to be.
    contested: String,
    made: Word,
    dropped: Word,
}

/// How sure something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It was not done.
    No,
    /// It was asked for.
    Maybe,
    /// It was acknowledged.
    Yes,
}

impl Definitions {
    /// It is asked for.
    pub(crate) fn make(&mut self, name: &str, contested: &str) {
        let contested = contested.to_owned();
        let fate = Fate { contested, made: Word::Maybe, dropped: Word::No };
        let before = self.0.insert(name.to_owned(), fate);
        assert!(before.is_none(), "{name} is asked for once");
    }

    /// What came of it.
    ///
    /// # Errors
    /// It can not be: two of a name were acknowledged, or none where another one stands in the way.
    pub(crate) fn made(&mut self, name: &str, word: Word) -> Result<(), Violation> {
        let fate = self.0.get_mut(name).expect("it was asked for");
        fate.made = word;
        let contested = fate.contested.clone();
        let mut rivals = self.0.iter().filter(|(other, fate)| *other != name && fate.contested == contested);
        match word {
            Word::Yes => match rivals.find(|(_, fate)| fate.made == Word::Yes) {
                Some((rival, _)) => Err(Violation::new(format!("{name} and {rival} are both acknowledged"))),
                None => Ok(()),
            },
            Word::Maybe | Word::No => Ok(()),
        }
    }

    /// One of its name is there, it was told.
    ///
    /// # Errors
    /// Nobody else asked for one.
    pub(crate) fn lost(&mut self, name: &str) -> Result<(), Violation> {
        self.made(name, Word::No)?;
        let contested = &self.0[name].contested;
        match self.0.values().any(|fate| fate.contested == *contested && fate.made != Word::No) {
            true => Ok(()),
            false => Err(Violation::new(format!("{name} is said to be there, and nobody has made it"))),
        }
    }

    /// Is to be dropped, or was.
    pub(crate) fn drop(&mut self, name: &str, word: Word) {
        self.0.get_mut(name).expect("it was asked for").dropped = word;
    }

    /// Those that are acknowledged and not dropped, of this beginning.
    pub(crate) fn sure(&self, beginning: &str) -> Vec<String> {
        let is_sure = |(name, fate): &(&String, &Fate)| {
            name.starts_with(beginning) && fate.made == Word::Yes && fate.dropped == Word::No
        };
        self.0.iter().filter(is_sure).map(|(name, _)| name.clone()).collect()
    }

    /// May a node show these?
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn check(&self, shown: &BTreeSet<String>) -> Result<(), Violation> {
        let mut standing = BTreeMap::new();
        for (name, fate) in &self.0 {
            let is_there = shown.contains(name);
            let may_be = fate.made != Word::No && fate.dropped != Word::Yes;
            let must_be = fate.made == Word::Yes && fate.dropped == Word::No;
            if is_there && !may_be || !is_there && must_be {
                return Err(Violation::new(format!("{name} is there: {is_there}, and {fate:?}")));
            }
            if is_there && let Some(rival) = standing.insert(&fate.contested, name) {
                return Err(Violation::new(format!("{name} is there beside {rival}")));
            }
        }
        Ok(())
    }
}
