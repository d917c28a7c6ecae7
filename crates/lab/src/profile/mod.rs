//! Profiles: what published articles measured, each repeated by one command and scaled to the machine.
//!
//! ```text
//!   Profile --Scale (cores, memory, what the user wants otherwise)--> Repeated: subject, servers, parts --> study
//! ```
//!
//! A profile says what the article did, what is smaller here and why; nothing is made smaller silently. How to read
//! what comes out, and what came out on our machine, stands in `docs/lab/articles.md`.

mod chunk;
mod cloudera;
mod counters;
mod failover;
mod ladder;
mod netflix;
mod sberbank;
mod ycsb;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::error::LabError;
use crate::manifest::{DEFAULT_TIMEOUT_S, Machine, Pace, Plan};
use crate::process::machine;
use crate::servers::Servers;
use crate::session::check;
use crate::study::{Part, Subject};

/// A published measurement that can be repeated.
#[derive(Clone, Copy)]
pub struct Profile {
    /// As it is called for.
    pub name: &'static str,
    /// A line.
    pub about: &'static str,
    /// Its settings, with what they are if nobody changes them.
    settings: &'static [(&'static str, u64)],
    make: fn(&Scale<'_>) -> Repeated,
}

/// A profile fitted to a machine and to a user's wishes.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// What is studied.
    pub subject: Subject,
    /// The servers that it wants.
    pub servers: Servers,
    /// What is run.
    pub parts: Vec<Part>,
}

/// What a user wants otherwise than a profile has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Seconds of each measurement.
    pub measured_s: Option<f64>,
    /// Seconds before it.
    pub warmup_s: Option<f64>,
    /// How often each part is measured.
    pub repetition_count: Option<usize>,
    /// How many of the first are dropped.
    pub dropped_count: Option<usize>,
    /// Rows that are loaded.
    pub row_count: Option<u64>,
    /// What is chosen by chance follows from it.
    pub seed: Option<u64>,
    /// Connections.
    pub connection_count: Option<usize>,
    /// Threads of the client.
    pub thread_count: Option<usize>,
    /// Settings of the profile.
    pub settings: BTreeMap<String, u64>,
}

/// What a profile is scaled by.
struct Scale<'a> {
    machine: Machine,
    wishes: &'a Wishes,
    settings: &'static [(&'static str, u64)],
}

/// All of them.
pub static PROFILES: [Profile; 8] = [
    ycsb::PROFILE,
    netflix::PROFILE,
    chunk::PROFILE,
    ladder::PROFILE,
    sberbank::PROFILE,
    cloudera::PROFILE,
    counters::PROFILE,
    failover::PROFILE,
];

/// The profile of a name, if there is one.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Fits it to this machine.
    ///
    /// # Errors
    /// It has no such setting, or the wishes leave nothing to measure.
    pub fn repeated(&self, wishes: &Wishes) -> Result<Repeated, LabError> {
        let is_known = |name: &str| self.settings.iter().any(|(known, _)| *known == name);
        if let Some(name) = wishes.settings.keys().find(|name| !is_known(name)) {
            return Err(LabError::Plan(format!(
                "{} has no setting '{name}': {}",
                self.name,
                self.setting_words()
            )));
        }
        if wishes.settings.get(REPLICAS.0).is_some_and(|asked| replica_count(*asked).is_none()) {
            let (least, most) = REPLICA_COUNTS.into_inner();
            return Err(LabError::Plan(format!("{} is from {least} to {most}", REPLICAS.0)));
        }
        let mut repeated = (self.make)(&Scale { machine: machine(), wishes, settings: self.settings });
        if let Some(rows) = wishes.row_count
            && repeated.parts.iter().all(|part| part.plan.row_count != rows)
        {
            let words = self.setting_words();
            return Err(LabError::Plan(format!("{} has rows by its settings: {words}", self.name)));
        }
        for part in &mut repeated.parts {
            wishes.apply_to(&mut part.plan);
            part.plan = part.plan.clone().completed()?;
            check(&part.plan).map_err(|error| LabError::Plan(format!("{}: {error}", part.name)))?;
        }
        Ok(repeated)
    }

    /// Its settings, in words.
    pub fn setting_words(&self) -> String {
        match self.settings {
            [] => "it has none".to_owned(),
            some => some.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "),
        }
    }
}

impl Wishes {
    fn apply_to(&self, plan: &mut Plan) {
        plan.measured_s = self.measured_s.unwrap_or(plan.measured_s);
        plan.warmup_s = self.warmup_s.unwrap_or(plan.warmup_s);
        plan.repetition_count = self.repetition_count.unwrap_or(plan.repetition_count);
        // Who wants fewer repetitions than a profile drops wants those.
        let dropped_count = plan.dropped_count.min(plan.repetition_count.saturating_sub(1));
        plan.dropped_count = self.dropped_count.unwrap_or(dropped_count);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.connection_count = self.connection_count.unwrap_or(plan.connection_count);
        plan.thread_count = self.thread_count.unwrap_or(plan.thread_count);
    }
}

impl Scale<'_> {
    fn cores(&self) -> usize {
        self.machine.core_count
    }

    /// A setting in megabytes, in bytes: no more than a petabyte.
    fn megabytes(&self, name: &str) -> u64 {
        self.setting(name).min(1 << 30) << 20
    }

    /// A setting of the profile.
    fn setting(&self, name: &str) -> u64 {
        let default = self.settings.iter().find(|(known, _)| *known == name);
        let default = default.expect("a profile asks for settings that it has").1;
        self.wishes.settings.get(name).copied().unwrap_or(default)
    }

    /// The ring that the setting [`REPLICAS`] asks for: a node for each replica. With several of these a plan reads and
    /// writes at QUORUM.
    fn ring(&self) -> Ring {
        let replica_count = replica_count(self.setting(REPLICAS.0));
        Ring { replica_count: replica_count.expect("the wish was looked at before") }
    }

    /// Rows, unless the user wants other ones.
    fn rows(&self, count: u64) -> u64 {
        self.wishes.row_count.unwrap_or(count)
    }

    /// Seconds of each measurement, unless the user wants others.
    fn seconds(&self, seconds: f64) -> f64 {
        self.wishes.measured_s.unwrap_or(seconds)
    }

    /// A plan to begin with: a closed loop, three times 20 seconds, the nodes to be filled in.
    fn plan(&self, workload: &str) -> Plan {
        Plan {
            workload: workload.to_owned(),
            settings: BTreeMap::new(),
            nodes: Vec::new(),
            keyspace: "bench".to_owned(),
            replication: replicas(1),
            consistency: "ONE".to_owned(),
            row_count: self.wishes.row_count.unwrap_or(0),
            pace: Pace::Closed { in_flight: self.cores() * IN_FLIGHT_PER_CORE },
            connection_count: 8,
            thread_count: 1,
            warmup_s: WARMUP_S,
            measured_s: 20.0,
            repetition_count: 3,
            dropped_count: 0,
            seed: 1,
            error_part_max: 0.01,
            disturbances: Vec::new(),
            timeout_s: DEFAULT_TIMEOUT_S,
            script: None,
        }
    }
}

/// A node for each replica of every row.
#[derive(Clone, Copy)]
struct Ring {
    replica_count: u16,
}

impl Ring {
    fn apply_to(self, plan: &mut Plan) {
        plan.replication = replicas(self.replica_count);
        plan.consistency = self.level().to_owned();
    }

    fn level(self) -> &'static str {
        if self.replica_count > 1 { "QUORUM" } else { "ONE" }
    }

    fn servers(self) -> Servers {
        Servers::nodes(usize::from(self.replica_count))
    }

    /// Each node with so much memory, page cache and all.
    fn servers_within(self, node_bytes: u64) -> Servers {
        self.servers().within(node_bytes * u64::from(self.replica_count))
    }

    /// What is run on, for a reader.
    fn words(self) -> String {
        match self.replica_count {
            1 => "One node.".to_owned(),
            count => format!("{count} nodes, each with all rows, read and written at QUORUM."),
        }
    }
}

/// How many replicas each row has, in profiles whose articles had one node.
const REPLICAS: (&str, u64) = ("replicas", 1);
/// A node for each is started; more than that say nothing on one machine.
const REPLICA_COUNTS: RangeInclusive<u16> = 1..=9;

/// As many as are asked for, if that many can be.
fn replica_count(asked: u64) -> Option<u16> {
    u16::try_from(asked).ok().filter(|count| REPLICA_COUNTS.contains(count))
}

/// What a server needs that compiles its code while it runs.
const WARMUP_S: f64 = 10.0;
/// What keeps a core of a server busy, with room for answers on their way.
const IN_FLIGHT_PER_CORE: usize = 16;

/// So many replicas in each data centre.
fn replicas(count: u16) -> String {
    format!("{{'class': 'NetworkTopologyStrategy', 'replication_factor': {count}}}")
}

/// A setting of a workload.
fn set(plan: &mut Plan, name: &str, value: impl ToString) {
    plan.settings.insert(name.to_owned(), value.to_string());
}

/// Sentences.
fn sentences(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_profiles_have_parts_that_can_be_run() {
        for profile in &PROFILES {
            let repeated = profile.repeated(&Wishes::default()).unwrap();
            assert!(!repeated.parts.is_empty() && !repeated.subject.scaled.is_empty(), "{}", profile.name);
            assert_eq!(repeated.subject.name, profile.name);
            let mut names: Vec<&str> = repeated.parts.iter().map(|part| part.name.as_str()).collect();
            assert!(
                names
                    .iter()
                    .all(|name| name.chars().all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one)))
            );
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), repeated.parts.len(), "{} names its parts once", profile.name);
            for part in &repeated.parts {
                assert!(part.plan.row_count > 0, "{} {}", profile.name, part.name);
                crate::workload::workload_of(&part.plan).unwrap();
            }
        }
    }

    #[test]
    fn what_articles_did_on_one_node_is_done_on_a_ring_as_well() {
        for name in ["ycsb", "tlp-chunk", "cloudera-ycsb"] {
            let settings = BTreeMap::from([("replicas".to_owned(), 3)]);
            let wishes = Wishes { settings, ..Wishes::default() };
            let ring = profile(name).unwrap().repeated(&wishes).unwrap();
            assert_eq!(ring.servers.node_count, 3, "{name}");
            let is_replicated =
                |plan: &Plan| plan.consistency == "QUORUM" && plan.replication.contains(": 3}");
            assert!(ring.parts.iter().all(|part| is_replicated(&part.plan)), "{name}");
            for count in [0, 10, 1 << 40] {
                let settings = BTreeMap::from([("replicas".to_owned(), count)]);
                let refused = profile(name).unwrap().repeated(&Wishes { settings, ..Wishes::default() });
                assert_eq!(refused.unwrap_err().to_string(), "replicas is from 1 to 9");
            }
            let alone = profile(name).unwrap().repeated(&Wishes::default()).unwrap();
            assert_eq!(alone.servers.node_count, 1, "{name}");
            assert!(alone.parts.iter().all(|part| part.plan.consistency == "ONE"), "{name}");
        }
    }

    #[test]
    fn wishes_are_heard() {
        let mut wishes = Wishes { measured_s: Some(3.0), row_count: Some(5000), ..Wishes::default() };
        let parts = profile("ycsb").unwrap().repeated(&wishes).unwrap().parts;
        assert!(parts.iter().all(|part| part.plan.measured_s == 3.0 && part.plan.row_count == 5000));
        wishes.settings.insert("colour".to_owned(), 1);
        wishes.settings.insert("replicas".to_owned(), 3);
        let refused = profile("ycsb").unwrap().repeated(&wishes).unwrap_err().to_string();
        assert!(refused.contains("no setting 'colour'"), "{refused}");
        let wishes = Wishes { row_count: Some(1000), ..Wishes::default() };
        let refused = profile("cloudera-ycsb").unwrap().repeated(&wishes).unwrap_err().to_string();
        assert!(refused.contains("rows by its settings"), "{refused}");
    }
}
