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
//! nothing is under way, so what is read then decides. What was written to live for a while may end in between
//! (`expiry.rs`).

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::expiry::{Seconds, WallClock};
use super::tables::{Place, Register, Table};

/// Units that are kept although nothing may be part of them any more.
const UNITS_KEPT: usize = 5_000;

/// Something that happens whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit(u64);

/// A moment of the run: what was acknowledged before it is known to whoever reads after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// What a write does to a register.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub(crate) register: Register,
    pub(crate) value: Option<Vec<u8>>,
    /// For how many seconds, if not for ever.
    pub(crate) ttl: Option<u32>,
}

/// What `WRITETIME` and `TTL` tell of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) timestamp: Option<i64>,
    pub(crate) seconds_left: Option<i32>,
}

/// When a read was under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// When it was sent.
    sent: Moment,
    /// By the node's clock; without one nothing ends.
    seconds: Option<Seconds>,
}

#[derive(Clone, Debug)]
struct Version {
    value: Option<Vec<u8>>,
    ttl: Option<u32>,
    unit: Unit,
}

/// What became of a unit.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// The second in which it was sent, by the node's clock.
    sent: i64,
    known: Option<Acknowledged>,
}

/// When a write was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    moment: Moment,
    at: Instant,
    /// By the node's clock.
    second: i64,
}

impl Course {
    /// When the node has taken it.
    fn taken(&self) -> Seconds {
        Seconds { first: self.sent, last: self.known.map_or(i64::MAX, |known| known.second) }
    }
}

/// All registers of one node.
#[derive(Debug, Default)]
pub(crate) struct Model {
    registers: BTreeMap<Register, BTreeMap<i64, Version>>,
    /// Units that any version is part of.
    units: BTreeMap<Unit, Course>,
    /// The node's clock, where it goes on from life to life: only there do clients write what ends.
    clock: Option<WallClock>,
    now: Moment,
    unit_count: u64,
}

impl Model {
    /// The node starts with that clock.
    pub(crate) fn start_clock(&mut self, clock: WallClock) {
        self.clock = Some(clock);
    }

    /// May clients write what ends?
    pub(crate) fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// The second that it is by the node's clock.
    fn second(&self) -> i64 {
        self.clock.map_or(0, |clock| clock.second())
    }

    /// A write was sent.
    pub(crate) fn begin(&mut self, effects: Vec<Effect>, timestamp: i64) -> Unit {
        self.unit_count += 1;
        let unit = Unit(self.unit_count);
        self.units.insert(unit, Course { sent: self.second(), known: None });
        for Effect { register, value, ttl } in effects {
            let version = Version { value, ttl, unit };
            self.registers.entry(register).or_default().insert(timestamp, version);
        }
        unit
    }

    /// They were refused: nothing of them was done or will be.
    pub(crate) fn withdraw(&mut self, units: &[Unit]) {
        self.registers.retain(|_, versions| {
            versions.retain(|_, version| !units.contains(&version.unit));
            !versions.is_empty()
        });
        units.iter().for_each(|unit| _ = self.units.remove(unit));
    }

    /// It was acknowledged.
    pub(crate) fn acknowledge(&mut self, unit: Unit) {
        self.now.0 += 1;
        let known = Acknowledged { moment: self.now, at: Instant::now(), second: self.second() };
        if let Some(course) = self.units.get_mut(&unit) {
            course.known = Some(known);
        }
    }

    /// A read is sent.
    pub(crate) fn look(&self) -> Look {
        let second = self.second();
        let seconds = self.clock.is_some().then_some(Seconds { first: second, last: second });
        Look { sent: self.now, seconds }
    }

    /// Its answer is there.
    pub(crate) fn received(&self, look: Look) -> Look {
        Look { seconds: look.seconds.map(|seconds| Seconds { last: self.second(), ..seconds }), ..look }
    }

    fn known(&self, unit: Unit) -> Option<Acknowledged> {
        self.units.get(&unit)?.known
    }

    /// Keys of which anything is known.
    pub(crate) fn rows(&self, table: Table, key: i32) -> BTreeSet<i32> {
        let places = self.partition(table, key).map(|(register, _)| register.place);
        places
            .filter_map(|place| match place {
                Place::Static => None,
                Place::Row(clustering, _) => Some(clustering),
            })
            .collect()
    }

    /// Is nothing of a partition in doubt?
    pub(crate) fn is_settled(&self, table: Table, key: i32) -> bool {
        self.versions(table, key).all(|version| self.known(version.unit).is_some())
    }

    /// Was nothing of a partition about to end?
    pub(crate) fn is_lasting(&self, table: Table, key: i32, look: Look) -> bool {
        let is_certain = |version| matches!(self.may_end(version, look), (true, false) | (false, true));
        self.versions(table, key).all(is_certain)
    }

    fn versions(&self, table: Table, key: i32) -> impl Iterator<Item = &Version> {
        self.partition(table, key).flat_map(|(_, versions)| versions.values())
    }

    /// The registers of a partition of which anything is known.
    fn partition(
        &self,
        table: Table,
        key: i32,
    ) -> impl Iterator<Item = (&Register, &BTreeMap<i64, Version>)> {
        let registers = self.registers.range(table.static_cell(key)..);
        registers.take_while(move |(at, _)| (at.table, at.key) == (table, key))
    }

    /// May a read show this?
    pub(crate) fn may_show(&self, register: Register, value: Option<&[u8]>, look: Look) -> bool {
        self.candidates(register, look).any(|(_, candidate)| candidate == value)
    }

    /// Does every read show something?
    pub(crate) fn surely_shows(&self, register: Register, look: Look) -> bool {
        self.candidates(register, look).all(|(_, candidate)| candidate.is_some())
    }

    /// May a read that shows this value tell that of it?
    pub(crate) fn may_tell(
        &self,
        register: Register,
        value: Option<&[u8]>,
        told: Metadata,
        look: Look,
    ) -> bool {
        let Some(value) = value else {
            return told == Metadata { timestamp: None, seconds_left: None };
        };
        let Some(timestamp) = told.timestamp else { return false };
        let Some(version) = self.registers.get(&register).and_then(|versions| versions.get(&timestamp))
        else {
            return false;
        };
        let may_leave = match (version.ttl, told.seconds_left, look.seconds) {
            (None, None, _) => true,
            (Some(ttl), Some(left), Some(seconds)) => {
                let taken = self.units.get(&version.unit).map(Course::taken);
                taken.is_some_and(|taken| taken.may_leave(ttl, seconds, i64::from(left)))
            }
            _ => false,
        };
        version.value.as_deref() == Some(value) && may_leave
    }

    /// What a read may show, with timestamps; that of what was never written is the least.
    fn candidates(&self, register: Register, look: Look) -> impl Iterator<Item = (i64, Option<&[u8]>)> {
        let versions = self.registers.get(&register);
        let floor = versions.and_then(|versions| self.floor(versions, look.sent));
        let never = floor.is_none().then_some((i64::MIN, None));
        let from = floor.unwrap_or(i64::MIN);
        let versions = versions.into_iter().flat_map(move |versions| versions.range(from..));
        let shown = versions.flat_map(move |(at, version)| {
            let (may_last, may_be_over) = self.may_end(version, look);
            let there = may_last.then_some((*at, version.value.as_deref()));
            there.into_iter().chain(may_be_over.then_some((*at, None)))
        });
        never.into_iter().chain(shown)
    }

    /// May a read find a version as it was written, and may it find it over?
    fn may_end(&self, version: &Version, look: Look) -> (bool, bool) {
        let taken = self.units.get(&version.unit).map(Course::taken);
        match (version.ttl, taken, look.seconds) {
            (Some(ttl), Some(taken), Some(seconds)) => {
                (taken.may_last(ttl, seconds), taken.may_be_over(ttl, seconds))
            }
            _ => (true, false),
        }
    }

    /// The last version that was acknowledged before then.
    fn floor(&self, versions: &BTreeMap<i64, Version>, sent: Moment) -> Option<i64> {
        let is_known = |version: &Version| self.known(version.unit).is_some_and(|known| known.moment <= sent);
        versions.iter().rev().find(|(_, version)| is_known(version)).map(|(at, _)| *at)
    }

    /// Forgets what no read can show any more, of keys that nobody reads now. What was acknowledged since then may be
    /// lost, so that an older version is shown again.
    pub(crate) fn forget_old(&mut self, keys: &[i32], since: Instant) {
        let known = self.units.values().filter_map(|course| course.known);
        let known = known.filter(|known| known.at < since);
        let then = known.map(|known| known.moment).max().unwrap_or_default();
        let mut registers = std::mem::take(&mut self.registers);
        for (_, versions) in registers.iter_mut().filter(|(register, _)| keys.contains(&register.key)) {
            if let Some(floor) = self.floor(versions, then) {
                *versions = versions.split_off(&floor);
            }
        }
        self.registers = registers;
        // Looking for them takes long, and does no good while there are few.
        if self.units.len() > UNITS_KEPT {
            self.forget_units();
        }
    }

    /// The node went without having to keep what was acknowledged since then. Gives how many writes that were.
    pub(crate) fn doubt_since(&mut self, then: Instant) -> u64 {
        let courses = self.units.values_mut();
        let doubtful = courses.filter(|course| course.known.is_some_and(|known| known.at >= then));
        doubtful.map(|course| course.known = None).count() as u64
    }

    /// The table was emptied. A write that was not acknowledged may happen after that: its connection broke, and the
    /// node is still at it.
    pub(crate) fn empty(&mut self, table: Table) {
        let mut registers = std::mem::take(&mut self.registers);
        for (_, versions) in registers.iter_mut().filter(|(register, _)| register.table == table) {
            versions.retain(|_, version| self.known(version.unit).is_none());
        }
        registers.retain(|_, versions| !versions.is_empty());
        self.registers = registers;
        self.set_apart(table);
        self.forget_units();
    }

    /// The table was emptied, or may have been. What a write did to other tables may be there although what it did to
    /// this one is not, and where it deleted something here that looks as if it was done: so each of its parts is a
    /// unit by itself.
    pub(crate) fn set_apart(&mut self, table: Table) {
        for (_, versions) in self.registers.iter_mut().filter(|(register, _)| register.table == table) {
            for version in versions.values_mut() {
                self.unit_count += 1;
                let (whole, part) = (version.unit, Unit(self.unit_count));
                version.unit = part;
                if let Some(course) = self.units.get(&whole).copied() {
                    self.units.insert(part, course);
                }
            }
        }
    }

    /// What a node shows after a start, where nothing is under way: decides of all that was doubtful.
    ///
    /// # Errors
    /// It shows what it can not have, or a part of a unit.
    pub(crate) fn decide(
        &mut self,
        shown: &BTreeMap<Register, Option<Vec<u8>>>,
        look: Look,
    ) -> Result<(), String> {
        let mut verdicts: BTreeMap<Unit, (Option<Register>, Option<Register>)> = BTreeMap::new();
        for (register, value) in shown {
            let value = value.as_deref();
            if !self.may_show(*register, value, look) {
                return Err(self.explain(*register, value));
            }
            let fits = self.candidates(*register, look).filter(|(_, candidate)| *candidate == value);
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
                let is_sure = self.known(version.unit).is_some();
                format!(
                    "{at} {} {}{}",
                    if is_sure { "sure" } else { "doubtful" },
                    brief(version.value.as_deref()),
                    version.ttl.map_or(String::new(), |ttl| format!(" for {ttl} s"))
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
