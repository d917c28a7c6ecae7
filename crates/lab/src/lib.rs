//! The lab: workloads that measure CQL databases, Peristyle, Cassandra and ScyllaDB alike.
//!
//! A [`Plan`] says what is run: a workload, its settings, a pace. [`run`] makes the tables, loads the rows, measures as
//! often as was asked for and gives [`Results`], of which reports are made. What a user can rely on:
//!
//! - Time runs from the *intended* start of an operation. A server that stands still for a second is charged for all
//!   that was due in it, and not only for the one that it kept waiting.
//! - Latencies are kept as histograms, second by second. Nothing is a mean of percentiles.
//! - Answers are looked at while it is measured: values derive from their keys.
//! - A client that is the bottleneck says so.
//! - A manifest holds all that a run depends on, and is enough to repeat it.

#![allow(clippy::disallowed_methods, reason = "a client lives outside the simulated world")]

mod agreement;
mod comparison;
mod disturbance;
mod engine;
mod error;
mod figures;
pub mod generator;
mod latencies;
mod manifest;
mod process;
mod profile;
pub mod report;
mod results;
mod search;
mod servers;
mod session;
mod study;
mod target;
mod topology;
mod workload;

pub use agreement::{Agreement, agreement};
pub use comparison::{Comparison, Contender, compare};
pub use disturbance::{Act, Disturbance, Hand};
pub use engine::{Progress, Watch};
pub use error::LabError;
pub use latencies::Latencies;
pub use manifest::{DEFAULT_TIMEOUT_S, Machine, Manifest, Pace, Plan, Target};
pub use profile::{PROFILES, Profile, Repeated, Wishes, profile};
pub use results::{Audit, Event, KindResults, Repetition, Results, Second};
pub use search::{Limit, Trial, closed_loop_rate, find_max};
pub use servers::{CommitLogSync, Servers};
pub use session::{Preparation, run};
pub use study::{Offer, Part, Price, Study, StudyManifest, Subject, Tell, study, study_seconds};
pub use topology::NodesError;
pub use workload::{YCSB_SETTINGS, workloads};
