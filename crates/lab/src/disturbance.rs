//! What is done to servers while they are measured: killed, paused, cut off, brought back.
//!
//! A plan says what is done when; a [`Hand`] does it, since only whoever has started servers can. In words a
//! disturbance is a second of the measurement, an act, and the number of a node from 1:
//!
//! ```text
//!   20:kill:2     30:start:2     40:pause:1     45:resume:1     60:cut:3     70:heal
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Something that is done to a server at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Seconds since the measurement began.
    pub at_s: f64,
    /// What.
    pub act: Act,
}

/// What can be done to servers, whose numbers are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A node ends at once, as in a crash.
    Kill(usize),
    /// A node that was killed begins again, on what is on its disk.
    Start(usize),
    /// A node does nothing, as one that hangs.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    /// A node and the others do not hear each other; clients reach it.
    Cut(usize),
    /// All cuts are taken back.
    Heal,
}

/// Somebody who can do it to the servers of a run.
pub trait Hand: fmt::Debug + Send + Sync {
    /// Does it, and returns when it is done: a node that was started serves.
    ///
    /// # Errors
    /// It can not be done: why.
    fn act(&self, act: Act) -> Result<(), String>;

    /// The servers' processes as they are now.
    fn process_ids(&self) -> Vec<u32>;
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Kill(node) => write!(out, "kill:{node}"),
            Act::Start(node) => write!(out, "start:{node}"),
            Act::Pause(node) => write!(out, "pause:{node}"),
            Act::Resume(node) => write!(out, "resume:{node}"),
            Act::Cut(node) => write!(out, "cut:{node}"),
            Act::Heal => write!(out, "heal"),
        }
    }
}

impl Act {
    /// In the words of a report, once it is done.
    pub(crate) fn past(self) -> String {
        match self {
            Act::Kill(node) => format!("node {node} killed"),
            Act::Start(node) => format!("node {node} serves again"),
            Act::Pause(node) => format!("node {node} paused"),
            Act::Resume(node) => format!("node {node} goes on"),
            Act::Cut(node) => format!("node {node} cut off"),
            Act::Heal => "cuts taken back".to_owned(),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.at_s, self.act)
    }
}

impl FromStr for Disturbance {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Disturbance, LabError> {
        read(text).ok_or_else(|| {
            let wanted =
                "SECOND:ACT:NODE, as 20:kill:2; acts are kill, start, pause, resume, cut, and heal of all";
            LabError::Plan(format!("'{text}' is no disturbance: {wanted}"))
        })
    }
}

fn read(text: &str) -> Option<Disturbance> {
    let mut words = text.split(':');
    let at_s = words.next()?.parse::<f64>().ok().filter(|at_s| at_s.is_finite() && *at_s >= 0.0)?;
    let (name, node) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    let node = node.map(|node| node.parse::<usize>().ok().filter(|node| *node > 0));
    let act = match (name, node) {
        ("kill", Some(node)) => Act::Kill(node?),
        ("start", Some(node)) => Act::Start(node?),
        ("pause", Some(node)) => Act::Pause(node?),
        ("resume", Some(node)) => Act::Resume(node?),
        ("cut", Some(node)) => Act::Cut(node?),
        ("heal", None) => Act::Heal,
        _ => return None,
    };
    Some(Disturbance { at_s, act })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_reads_as_it_is_written() {
        for text in ["20:kill:2", "30.5:start:2", "0:pause:1", "45:resume:1", "60:cut:3", "70:heal"] {
            assert_eq!(text.parse::<Disturbance>().unwrap().to_string(), text);
        }
        for wrong in
            ["kill:2", "20:kill", "20:kill:0", "-1:heal", "nan:heal", "20:heal:1", "20:eat:1", "1:kill:2:3"]
        {
            assert!(wrong.parse::<Disturbance>().is_err(), "{wrong}");
        }
    }
}
