//! What a run found, as plain data: the worker threads fill it, a file keeps it as JSON, reports are made of it.
//!
//! An *operation* is what a user of the database would call one: a read-modify-write is one operation of two requests,
//! a batch is one, whatever it holds. Each has two times:
//!
//! ```text
//!   intended start          begun                    answered
//!        |--- waits at the client ---|------ service time ------|
//!        |----------------- response time ----------------------|
//! ```
//!
//! In a closed loop the intended start is when it was begun, and both are the same. An operation belongs to a
//! measurement if its intended start does. It is counted in the second in which it ended, and that may be after the
//! measurement: a server that stalls at its end answers late, but is not forgiven.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;
use crate::manifest::Manifest;

/// All of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// What was run, so that it can be repeated.
    pub manifest: Manifest,
    /// In the order in which they were run, those that are dropped among them.
    pub repetitions: Vec<Repetition>,
    /// What a reader must know before he trusts the figures, in whole sentences.
    pub warnings: Vec<String>,
}

/// One measurement, warm-up excluded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Repetition {
    /// False of the first ones, if some are to be dropped.
    pub is_kept: bool,
    /// How long was measured.
    pub seconds: f64,
    /// By kind of operation.
    pub kinds: Vec<KindResults>,
    /// CPU seconds that the client's threads took.
    pub client_cpu_s: f64,
    /// Seconds for which they were ready to run and had no core.
    pub client_waited_s: f64,
    /// CPU seconds of the servers' processes, if these are known.
    pub server_cpu_s: Option<f64>,
    /// Memory of the servers' processes at the end, if these are known.
    pub server_resident_bytes: Option<u64>,
    /// Bytes that their processes have read from disks and written to them, if these are known.
    #[serde(default)]
    pub server_disk_bytes: Option<(u64, u64)>,
    /// Bytes of answers that the client has received.
    #[serde(default)]
    pub received_bytes: u64,
    /// Hits and requests of the servers' caches, by what they call these, if they tell.
    #[serde(default)]
    pub caches: BTreeMap<String, (u64, u64)>,
    /// Operations that were due and had no end when their time was over, some of them not even begun.
    pub endless_count: u64,
    /// Requests that were asked again, however they ended: of another node where one lacked replicas, and in a load
    /// where it was too busy.
    #[serde(default)]
    pub asked_again_count: u64,
    /// What errors said, and how often; only the first few that differ.
    pub errors: BTreeMap<String, u64>,
    /// What was wrong about answers, likewise.
    pub wrongs: BTreeMap<String, u64>,
    /// What happened meanwhile.
    pub events: Vec<Event>,
    /// What was counted, where the workload counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
}

/// Counters held against what was acknowledged, all since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Increments that were acknowledged.
    pub acknowledged_count: u64,
    /// Those that failed or had no end: they may have been counted, and may be later.
    pub doubtful_count: u64,
    /// By how much all counters together have grown.
    pub counted: i64,
}

impl Audit {
    /// What counters may have grown by: from what was acknowledged to that with all that is in doubt.
    pub(crate) fn range(&self) -> (i64, i64) {
        let most = self.acknowledged_count + self.doubtful_count;
        (self.acknowledged_count as i64, most as i64)
    }

    /// What is wrong with the counters, if anything is.
    pub fn fault(&self) -> Option<String> {
        let Audit { acknowledged_count, doubtful_count, counted } = *self;
        let (least, most) = self.range();
        (!(least..=most).contains(&counted)).then(|| {
            format!(
                "counters grew by {counted}, where {acknowledged_count} increments were acknowledged and \
                 {doubtful_count} are in doubt"
            )
        })
    }
}

/// Of one kind of operation, second by second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KindResults {
    /// `read`, `update`, ...
    pub kind: String,
    /// From the first second of the measurement to the last one in which an operation ended, none between left out;
    /// that may be behind the measurement.
    pub by_second: Vec<Second>,
    /// Operations that ended well within the measurement, whenever they were due: what makes the rate.
    pub done_count: u64,
}

/// Operations that ended within one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Response times of those that went well.
    pub response: Latencies,
    /// Their service times.
    pub service: Latencies,
    /// Those that ended with an error.
    pub error_count: u64,
    /// Those that were answered with something that can not be right.
    pub wrong_count: u64,
}

/// Something that happened to the servers or to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the measurement began.
    pub at_s: f64,
    /// What, in a few words.
    pub text: String,
}

impl KindResults {
    /// All seconds together.
    pub fn total(&self) -> Second {
        let mut total = Second::default();
        self.by_second.iter().for_each(|second| total.add(second));
        total
    }
}

impl Second {
    /// All of another one as well.
    pub fn add(&mut self, other: &Second) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.error_count += other.error_count;
        self.wrong_count += other.wrong_count;
    }
}

impl Repetition {
    /// All kinds together.
    pub fn total(&self) -> Second {
        let mut total = Second::default();
        self.kinds.iter().for_each(|kind| total.add(&kind.total()));
        total
    }

    /// Operations that ended well within the measurement, each second; 0 of no time.
    pub fn rate(&self) -> f64 {
        self.rate_of(|_| true)
    }

    /// The same of some kinds.
    pub fn rate_of(&self, is_wanted: impl Fn(&str) -> bool) -> f64 {
        let wanted = self.kinds.iter().filter(|kind| is_wanted(&kind.kind));
        let done = wanted.map(|kind| kind.done_count).sum::<u64>() as f64;
        if self.seconds > 0.0 { done / self.seconds } else { 0.0 }
    }
}

impl Results {
    /// Was all measured that was planned, was each answer right, and failed no more than was allowed?
    pub fn is_sound(&self) -> bool {
        let plan = &self.manifest.plan;
        let is_sound = |repetition: &Repetition| {
            let total = repetition.total();
            let (good, bad) = (total.response.count(), total.error_count + repetition.endless_count);
            let allowed = plan.error_part_max * (good + bad) as f64;
            good > 0 && bad as f64 <= allowed && repetition.wrongs.is_empty()
        };
        let kept_count = plan.repetition_count.saturating_sub(plan.dropped_count);
        self.kept().count() == kept_count && self.kept().all(is_sound)
    }

    /// Those that count.
    pub fn kept(&self) -> impl Iterator<Item = &Repetition> {
        self.repetitions.iter().filter(|repetition| repetition.is_kept)
    }
}
