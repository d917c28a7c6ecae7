//! Words of the command line about servers that are started.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::{Act, CommitLogSync, Contender, Disturbance, LabError, Plan, Preparation, Servers};

use super::kind::PeerKind;
use super::ports::{NODE_COUNT_MAX, first_port_of_this_process};
use super::{Peer, PeerWish};

/// Which servers are started, and how.
#[derive(Args, Clone, Debug)]
pub(in crate::bench) struct PeerArguments {
    /// Start servers to measure, and stop them afterwards: peristyle, cassandra, or NAME=PATH of an adapter; in
    /// comparisons once for each
    #[arg(long = "start-peer", value_name = "KIND")]
    kinds: Vec<PeerKind>,
    /// How many nodes of each are started, on 127.0.0.1, .2 and so on [default: 1, or as many as a profile wants]
    #[arg(long = "nodes", value_name = "N", requires = "kinds",
        value_parser = clap::value_parser!(u8).range(1..=NODE_COUNT_MAX as i64))]
    node_count: Option<u8>,
    /// What the nodes of each may have together, page cache and all, as in 4GiB [default: no limit, or what a profile
    /// wants]
    #[arg(long = "peer-memory", value_name = "SIZE", value_parser = size, requires = "kinds")]
    memory_bytes: Option<u64>,
    /// When servers that are started acknowledge a write: periodic is at once, and a power cut may lose the last
    /// seconds; batch is when it is on disk [default: periodic]
    #[arg(long = "peer-sync", value_name = "WHEN", value_parser = sync_parser(), requires = "kinds")]
    commit_log_sync: Option<CommitLogSync>,
}

/// A size with its unit.
fn size(text: &str) -> Result<u64, String> {
    let mut config = config::Config::default();
    config.apply_flag("memory", text).map_err(|error| error.to_string())?;
    Ok(config.memory_bytes())
}

/// Takes what servers call it.
fn sync_parser() -> impl TypedValueParser<Value = CommitLogSync> {
    PossibleValuesParser::new(CommitLogSync::ALL.map(CommitLogSync::name)).map(|name| {
        let named = CommitLogSync::ALL.into_iter().find(|sync| sync.name() == name);
        named.expect("only their names are possible")
    })
}

impl PeerArguments {
    /// As a profile wants the servers, where nobody has said otherwise.
    pub(in crate::bench) fn fitted_to(&self, servers: Servers) -> PeerArguments {
        let node_count = u8::try_from(servers.node_count).unwrap_or(NODE_COUNT_MAX as u8);
        PeerArguments {
            node_count: self.node_count.or(Some(node_count)),
            memory_bytes: self.memory_bytes.or(servers.memory_bytes),
            commit_log_sync: self.commit_log_sync.or(servers.commit_log_sync),
            ..self.clone()
        }
    }

    /// What is started of each kind.
    pub(in crate::bench) fn servers(&self) -> Servers {
        Servers {
            node_count: self.node_count(),
            memory_bytes: self.memory_bytes,
            commit_log_sync: self.commit_log_sync,
        }
    }

    /// Servers of these kinds.
    ///
    /// # Errors
    /// A kind is none.
    pub(in crate::bench) fn of_kinds(&self, kinds: &[String]) -> Result<PeerArguments, LabError> {
        let kinds: Result<Vec<PeerKind>, String> = kinds.iter().map(|kind| kind.parse()).collect();
        Ok(PeerArguments { kinds: kinds.map_err(LabError::Plan)?, ..self.clone() })
    }

    /// The kinds, as they are read.
    pub(in crate::bench) fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(PeerKind::to_string).collect()
    }

    /// What the servers are called in a report.
    pub(in crate::bench) fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(PeerKind::name)
    }

    /// Starts the servers of a run, if it is to have some: the plan is theirs then, and who prepares knows them.
    ///
    /// # Errors
    /// They can not be started, or are not all that is wanted.
    pub(in crate::bench) fn start_for(
        &self,
        plan: &mut Plan,
        preparation: &mut Preparation,
    ) -> Result<Option<Peer>, LabError> {
        check_disturbances(plan, self.started_node_count())?;
        let kind = match self.kinds.as_slice() {
            [] => return Ok(None),
            [kind] => kind,
            _ => {
                return Err(LabError::Plan(
                    "a run has one --start-peer; `bench compare` has more".to_owned(),
                ));
            }
        };
        let peer = self.start(kind, preparation)?;
        plan.nodes = peer.nodes();
        Ok(Some(peer))
    }

    /// Starts servers that are compared with others, in their order.
    ///
    /// # Errors
    /// As [`start_for`](Self::start_for).
    pub(in crate::bench) fn start_beside(
        &self,
        contenders: &mut Vec<Contender>,
        plans: &[&Plan],
        preparation: &Preparation,
    ) -> Result<Vec<Peer>, LabError> {
        let node_count = if contenders.is_empty() { self.started_node_count() } else { 0 };
        plans.iter().try_for_each(|plan| check_disturbances(plan, node_count))?;
        let start = |kind: &PeerKind| {
            let mut preparation = preparation.clone();
            let peer = self.start(kind, &mut preparation)?;
            contenders.push(Contender { name: kind.name().to_owned(), nodes: peer.nodes(), preparation });
            Ok(peer)
        };
        self.kinds.iter().map(start).collect()
    }

    fn started_node_count(&self) -> usize {
        if self.kinds.is_empty() { 0 } else { self.node_count() }
    }

    fn node_count(&self) -> usize {
        usize::from(self.node_count.unwrap_or(1))
    }

    fn start(&self, kind: &PeerKind, preparation: &mut Preparation) -> Result<Peer, LabError> {
        if !preparation.loads {
            return Err(LabError::Plan("--no-load: servers that are started have no rows".to_owned()));
        }
        let wanted = PeerWish {
            node_count: self.node_count(),
            memory_bytes: self.memory_bytes,
            commit_log_sync: self.commit_log_sync.unwrap_or_default(),
            first_port: first_port_of_this_process(),
        };
        let folder = PathBuf::from(format!("bench-peer-{}-{}", std::process::id(), kind.name()));
        println!("starting {} of {}", counted(wanted.node_count), kind.name());
        let peer = Peer::start(kind, &wanted, &folder)?;
        println!("  it serves on {}", peer.nodes().join(" "));
        preparation.process_ids.extend(peer.process_ids());
        preparation.hand = Some(peer.hand());
        Ok(peer)
    }
}

fn counted(node_count: usize) -> String {
    if node_count == 1 { "a node".to_owned() } else { format!("{node_count} nodes") }
}

/// Is there somebody to whom all can be done that a plan says?
///
/// # Errors
/// There is not, or not enough of them.
fn check_disturbances(plan: &Plan, started_node_count: usize) -> Result<(), LabError> {
    let node = |act: Act| match act {
        Act::Kill(node) | Act::Start(node) | Act::Pause(node) | Act::Resume(node) | Act::Cut(node) => node,
        Act::Heal => 1,
    };
    let too_many = |one: &&Disturbance| node(one.act) > started_node_count;
    match plan.disturbances.iter().find(too_many) {
        Some(one) if started_node_count == 0 => {
            Err(LabError::Plan(format!("{one} is done to servers that are started: --start-peer")))
        }
        Some(one) => {
            Err(LabError::Plan(format!("{one}: there are only the nodes 1 to {started_node_count}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Words {
        #[command(flatten)]
        peers: PeerArguments,
    }

    fn read(words: &str) -> Result<PeerArguments, clap::Error> {
        Words::try_parse_from(words.split(' ')).map(|words| words.peers)
    }

    #[test]
    fn servers_are_named_in_their_order() {
        let peers = read("bench --start-peer cassandra --start-peer peristyle --nodes 3 --peer-memory 3GiB");
        let peers = peers.unwrap();
        assert_eq!(peers.names().collect::<Vec<_>>(), ["cassandra", "peristyle"]);
        assert_eq!((peers.started_node_count(), peers.memory_bytes), (3, Some(3 << 30)));
        assert_eq!(read("bench").unwrap().started_node_count(), 0);
    }

    #[test]
    fn what_is_said_of_servers_that_are_not_started_is_refused() {
        for wrong in ["bench --nodes 3", "bench --peer-memory 1GiB", "bench --start-peer peristyle --nodes 0"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
