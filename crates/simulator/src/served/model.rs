//! What reads may show: each register with the versions that it may have.
//!
//! ```text
//!   timestamp   10          20           30           40
//!   version     sure        doubtful     sure         doubtful
//!                                        └── floor ──┴────────── a read that was sent now may show one of these
//! ```
//!
//! A write is one *unit*: it happens whole or not at all, on however many registers. It is doubtful from when it is
//! sent until it is acknowledged; one whose connection broke stays doubtful, since it may still happen. After a start
//! nothing is under way, so what is read then decides.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::tables::{Register, Table};

/// Something that happens whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit(u64);

/// A moment of the run: what was acknowledged before it is known to whoever reads after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

#[derive(Clone, Debug)]
struct Version {
    value: Option<Vec<u8>>,
    unit: Unit,
}

/// When a write was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    moment: Moment,
    at: Instant,
}

/// All registers of one node.
#[derive(Debug, Default)]
pub(crate) struct Model {
    registers: BTreeMap<Register, BTreeMap<i64, Version>>,
    /// Units that any version is part of, and when they were acknowledged.
    units: BTreeMap<Unit, Option<Acknowledged>>,
    now: Moment,
    unit_count: u64,
}

impl Model {
    /// A write was sent.
    pub(crate) fn begin(&mut self, effects: Vec<(Register, Option<Vec<u8>>)>, timestamp: i64) -> Unit {
        self.unit_count += 1;
        let unit = Unit(self.unit_count);
        self.units.insert(unit, None);
        for (register, value) in effects {
            self.registers.entry(register).or_default().insert(timestamp, Version { value, unit });
        }
        unit
    }

    /// They were refused: nothing of them was done or will be.
    pub(crate) fn withdraw(&mut self, units: &[Unit]) {
        for versions in self.registers.values_mut() {
            versions.retain(|_, version| !units.contains(&version.unit));
        }
        self.registers.retain(|_, versions| !versions.is_empty());
        self.forget_units();
    }

    /// It was acknowledged.
    pub(crate) fn acknowledge(&mut self, unit: Unit) {
        self.now.0 += 1;
        self.units.insert(unit, Some(Acknowledged { moment: self.now, at: Instant::now() }));
    }

    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Keys of which anything is known.
    pub(crate) fn rows(&self, table: Table, key: i32) -> BTreeSet<i32> {
        let places = self.registers.keys().filter(|register| (register.table, register.key) == (table, key));
        places
            .filter_map(|register| match register.place {
                super::tables::Place::Static => None,
                super::tables::Place::Row(clustering, _) => Some(clustering),
            })
            .collect()
    }

    /// Is nothing of a partition in doubt?
    pub(crate) fn is_settled(&self, table: Table, key: i32) -> bool {
        let registers = self.registers.iter().filter(|(at, _)| (at.table, at.key) == (table, key));
        let mut units = registers.flat_map(|(_, versions)| versions.values()).map(|version| version.unit);
        units.all(|unit| self.units.get(&unit).copied().flatten().is_some())
    }

    /// May a read that was sent then show this?
    pub(crate) fn may_show(&self, register: Register, value: Option<&[u8]>, sent: Moment) -> bool {
        self.candidates(register, sent).any(|(_, candidate)| candidate == value)
    }

    /// Does every read that was sent then show something?
    pub(crate) fn surely_shows(&self, register: Register, sent: Moment) -> bool {
        self.candidates(register, sent).all(|(_, candidate)| candidate.is_some())
    }

    /// What a read that was sent then may show, with timestamps; that of what was never written is the least.
    fn candidates(&self, register: Register, sent: Moment) -> impl Iterator<Item = (i64, Option<&[u8]>)> {
        let versions = self.registers.get(&register);
        let floor = versions.and_then(|versions| self.floor(versions, sent));
        let never = floor.is_none().then_some((i64::MIN, None));
        let from = floor.unwrap_or(i64::MIN);
        let versions = versions.into_iter().flat_map(move |versions| versions.range(from..));
        never.into_iter().chain(versions.map(|(at, version)| (*at, version.value.as_deref())))
    }

    /// The last version that was acknowledged before then.
    fn floor(&self, versions: &BTreeMap<i64, Version>, sent: Moment) -> Option<i64> {
        let known = |version: &Version| {
            self.units.get(&version.unit).copied().flatten().is_some_and(|known| known.moment <= sent)
        };
        versions.iter().rev().find(|(_, version)| known(version)).map(|(at, _)| *at)
    }

    /// Forgets what no read can show any more, of keys that nobody reads now. What was acknowledged since then may be
    /// lost, so that an older version is shown again.
    pub(crate) fn forget_old(&mut self, keys: &[i32], since: Instant) {
        let known = |known: &&Acknowledged| known.at < since;
        let then =
            self.units.values().flatten().filter(known).map(|known| known.moment).max().unwrap_or_default();
        let mut registers = std::mem::take(&mut self.registers);
        for (_, versions) in registers.iter_mut().filter(|(register, _)| keys.contains(&register.key)) {
            if let Some(floor) = self.floor(versions, then) {
                *versions = versions.split_off(&floor);
            }
        }
        self.registers = registers;
        self.forget_units();
    }

    /// The node went without having to keep what was acknowledged since then. Gives how many writes that were.
    pub(crate) fn doubt_since(&mut self, then: Instant) -> u64 {
        let doubtful = self.units.values_mut().filter(|known| known.is_some_and(|known| known.at >= then));
        doubtful.map(|known| *known = None).count() as u64
    }

    /// The table was emptied.
    pub(crate) fn empty(&mut self, table: Table) {
        self.registers.retain(|register, _| register.table != table);
        self.forget_units();
    }

    /// What a node shows after a start, where nothing is under way: decides of all that was doubtful.
    ///
    /// # Errors
    /// It shows what it can not have, or a part of a unit.
    pub(crate) fn decide(&mut self, shown: &BTreeMap<Register, Option<Vec<u8>>>) -> Result<(), String> {
        let mut verdicts: BTreeMap<Unit, (Option<Register>, Option<Register>)> = BTreeMap::new();
        for (register, value) in shown {
            let value = value.as_deref();
            if !self.may_show(*register, value, self.now) {
                return Err(self.explain(*register, value));
            }
            let fits = self.candidates(*register, self.now).filter(|(_, candidate)| *candidate == value);
            let fitting: Vec<i64> = fits.map(|(at, _)| at).collect();
            let (Some(first), Some(last)) = (fitting.first().copied(), fitting.last().copied()) else {
                continue;
            };
            let Some(versions) = self.registers.get_mut(register) else { continue };
            for (at, version) in versions.iter() {
                let verdict = verdicts.entry(version.unit).or_default();
                if *at > last {
                    verdict.1 = Some(*register);
                } else if *at == last && first == last {
                    verdict.0 = Some(*register);
                }
            }
            versions.retain(|at, _| *at == last);
        }
        for (unit, verdict) in verdicts {
            if let (Some(there), Some(missing)) = verdict {
                return Err(format!("half of a write is there: {there:?} is, {missing:?} is not ({unit:?})"));
            }
            if verdict.0.is_some() {
                self.acknowledge(unit);
            }
        }
        self.forget_units();
        Ok(())
    }

    /// What is wrong with showing this.
    pub(crate) fn explain(&self, register: Register, value: Option<&[u8]>) -> String {
        let brief = |value: Option<&[u8]>| {
            let text = value.map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned());
            format!("{text:?}")
        };
        let versions = self.registers.get(&register).into_iter().flatten();
        let known: Vec<_> = versions
            .map(|(at, version)| {
                let is_sure = self.units.get(&version.unit).copied().flatten().is_some();
                format!(
                    "{at} {} {}",
                    if is_sure { "sure" } else { "doubtful" },
                    brief(version.value.as_deref())
                )
            })
            .collect();
        format!("{register:?} shows {}, and has {known:?}", brief(value))
    }

    fn forget_units(&mut self) {
        let used: BTreeSet<Unit> =
            self.registers.values().flatten().map(|(_, version)| version.unit).collect();
        self.units.retain(|unit, _| used.contains(unit));
    }
}
