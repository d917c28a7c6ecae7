//! Nodes are hurt in turn, and a request that was lost is held against who was hurt when.
//!
//! A lost request was *in flight to the node that was hit* when all of this is so:
//!
//! - that very node had it, not another one that asked it for a replica;
//! - it was sent before the node was gone: one that is killed, until it takes no connection; one that is paused, until
//!   `resume` has returned; one that is cut off, until it must have noticed ([`NOTICE`]), because from then on it says
//!   that it can not serve, and another is asked;
//! - it was lost after the harm began.
//!
//! ```text
//!            kill, pause, cut            resume, heal, start
//!   ────────────┤begins    returned├──────────┤returned├────────
//!   killed   may be sent ────────►┊
//!   paused   may be sent ──────────────────────────────►┊
//!   cut off  may be sent ──────────── NOTICE ►┊
//!               ┊ may be lost ────────────────────────────────►
//! ```
//!
//! Any other lost request fails the run.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::Ring;
use super::client::{Lost, now_ms};
use crate::report::Failure;

/// How soon a node that is cut off must know that it is.
const NOTICE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ring) enum Kind {
    Kill,
    Pause,
    Cut,
}

const KINDS: [Kind; 3] = [Kind::Kill, Kind::Pause, Kind::Cut];

/// What was done to a node, and when.
#[derive(Debug)]
pub(in crate::ring) struct Harm {
    pub(in crate::ring) kind: Kind,
    pub(in crate::ring) node: usize,
    began_ms: u64,
    /// What is sent to it later must not be lost.
    excused_until_ms: u64,
    /// Requests that were answered from its beginning on until the next one.
    answered_count: u64,
    /// The longest time in which none was.
    still: Duration,
}

impl Harm {
    /// Was that request in flight to the node that was hit?
    pub(in crate::ring) fn excuses(&self, lost: &Lost) -> bool {
        lost.node == Some(self.node)
            && lost.sent_ms <= self.excused_until_ms
            && lost.ended_ms >= self.began_ms
    }

    /// The longest time in which no request was answered.
    pub(in crate::ring) fn still_ms(&self) -> u64 {
        self.still.as_millis() as u64
    }

    /// For whoever reads by program.
    pub(in crate::ring) fn summary(&self, lost: &[Lost]) -> Value {
        let lost_count = lost.iter().filter(|lost| self.excuses(lost)).count();
        json!({
            "kind": format!("{:?}", self.kind).to_lowercase(),
            "node": self.node,
            "answered": self.answered_count,
            "lost_in_flight": lost_count,
            "longest_still_ms": self.still_ms(),
        })
    }
}

/// Each kind of harm to each node in turn, over and over until the time is up, but each once at least, while clients
/// say how many requests were answered so far. `rest` is how long a node stays hurt, and how long it then has for
/// itself.
pub(in crate::ring) fn hurt_all(
    ring: &Ring,
    answered_count: &dyn Fn() -> u64,
    time: Duration,
    rest: Duration,
) -> Result<Vec<Harm>, Failure> {
    let began = Instant::now();
    let each = || [2, 3, 1].into_iter().flat_map(|node| KINDS.map(|kind| (node, kind)));
    let mut harms = Vec::new();
    for (index, (node, kind)) in each().cycle().enumerate() {
        if index >= each().count() && began.elapsed() >= time {
            break;
        }
        harms.push(hurt(ring, answered_count, kind, node, rest)?);
    }
    Ok(harms)
}

fn hurt(
    ring: &Ring,
    answered: &dyn Fn() -> u64,
    kind: Kind,
    node: usize,
    rest: Duration,
) -> Result<Harm, Failure> {
    let (began_ms, answered_before) = (now_ms(), answered());
    let number = node.to_string();
    match kind {
        Kind::Kill => {
            ring.order(&["kill", &number])?;
            until_gone(&ring.hosts()[node - 1].cql);
        }
        Kind::Pause => ring.order(&["pause", &number])?,
        Kind::Cut => cut_off(ring, node)?,
    }
    let hurt_ms = now_ms();
    let mut still = watch(answered, rest);
    match kind {
        Kind::Kill => ring.order(&["start", &number])?,
        Kind::Pause => ring.order(&["resume", &number])?,
        Kind::Cut => ring.order(&["heal"])?,
    }
    let excused_until_ms = match kind {
        Kind::Kill => hurt_ms,
        Kind::Pause => now_ms(),
        Kind::Cut => hurt_ms + NOTICE.as_millis() as u64,
    };
    still = still.max(watch(answered, rest));
    let answered_count = answered() - answered_before;
    println!("{kind:?} {node}: {answered_count} answered, {still:.1?} without one at most");
    if answered_count == 0 {
        return Err(Failure::new(format!("nothing was answered while node {node} was hurt ({kind:?})")));
    }
    Ok(Harm { kind, node, began_ms, excused_until_ms, answered_count, still })
}

/// A process may be said to have ended while its threads still do, and with them its sockets.
fn until_gone(address: &str) {
    while TcpStream::connect(address).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn cut_off(ring: &Ring, node: usize) -> Result<(), Failure> {
    let mut others = (1..=ring.node_count).filter(|other| *other != node);
    others.try_for_each(|other| ring.order(&["cut", &node.to_string(), &other.to_string()]))
}

/// Waits, and gives the longest time in which nothing was answered.
fn watch(answered: &dyn Fn() -> u64, time: Duration) -> Duration {
    let began = Instant::now();
    let (mut count, mut since, mut longest) = (answered(), Instant::now(), Duration::ZERO);
    while began.elapsed() < time {
        std::thread::sleep(POLL);
        let now = answered();
        longest = longest.max(since.elapsed());
        if now != count {
            (count, since) = (now, Instant::now());
        }
    }
    longest
}

/// Lost requests that no harm excuses, and how many are excused.
pub(in crate::ring) fn judge<'a>(harms: &[Harm], lost: &'a [Lost]) -> (Vec<&'a Lost>, usize) {
    let (excused, others): (Vec<&Lost>, Vec<&Lost>) =
        lost.iter().partition(|lost| harms.iter().any(|harm| harm.excuses(lost)));
    (others, excused.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_node_that_was_hit_had_before_it_was_gone_is_excused() {
        let harm = Harm {
            kind: Kind::Kill,
            node: 2,
            began_ms: 1_000,
            excused_until_ms: 1_010,
            answered_count: 1,
            still: Duration::ZERO,
        };
        let lost = |node, sent_ms, ended_ms| Lost { node, sent_ms, ended_ms, what: String::new() };
        assert!(harm.excuses(&lost(Some(2), 999, 1_005)) && harm.excuses(&lost(Some(2), 1_010, 9_000)));
        let others = [
            lost(Some(1), 999, 1_005),
            lost(Some(2), 1_011, 1_012),
            lost(Some(2), 900, 999),
            lost(None, 1_000, 1_005),
        ];
        assert_eq!(judge(&[harm], &others), (others.iter().collect(), 0));
    }
}
