//! Why servers can not be started, or something can not be done to them.

use std::io;
use std::path::{Path, PathBuf};

use lab::LabError;

use crate::cluster::ClusterError;
use crate::cqlsh::with_causes;

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerError {
    /// A program was run and failed; the last line of what it complained about.
    #[error("{0}")]
    Failed(String),
    /// A program took longer than anybody waits.
    #[error("{program} does not end after {seconds} s")]
    Endless { program: String, seconds: u64 },
    #[error("the run was ended")]
    Interrupted,
    #[error("an adapter tells `HOST:PORT PID` of each node, not '{0}'")]
    Line(String),
    #[error("{told} nodes were started, not {wanted}")]
    Count { told: usize, wanted: usize },
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("there is no node {number}, only 1 to {count}")]
    NoNode { number: usize, count: usize },
    #[error("node {0} runs")]
    Running(usize),
    #[error("node {0} does not run")]
    NotRunning(usize),
    #[error("node {number} does not end")]
    NotEnding { number: usize },
    #[error("node {number} serves on {now} now, no more on {before}")]
    Moved { number: usize, before: String, now: String },
    #[error("no ports are free on 127.0.0.1 to 127.0.0.{0}")]
    NoPorts(usize),
    #[error("all were stopped")]
    Stopped,
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("send a signal to node {number}")]
    Signal { number: usize, source: io::Error },
    #[error("run {program}")]
    Run { program: String, source: io::Error },
    #[error("{act} {}", .path.display())]
    File { act: &'static str, path: PathBuf, source: io::Error },
}

impl PeerError {
    /// For use with `map_err`.
    pub(super) fn file(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PeerError {
        let path = path.to_owned();
        move |source| PeerError::File { act, path, source }
    }

    /// What kept somebody from doing that, as the lab tells it.
    pub(super) fn of(&self, act: &str) -> LabError {
        LabError::Plan(format!("{act}: {}", with_causes(self)))
    }
}
