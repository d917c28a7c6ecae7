//! What a new cluster consists of: nodes dealt to data centres and racks, cores and memory shared out.

use std::net::{IpAddr, Ipv4Addr};

use config::Config;

use super::description::{Description, Ports};
use super::error::ClusterError;
use super::node::Node;
use super::setting::{Setting, settings, shown};

/// What somebody may ask for of a cluster.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Wanted {
    /// How many nodes [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=NODE_COUNT_MAX))]
    pub(super) nodes: Option<u8>,
    /// How many data centres they are dealt to [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) dcs: Option<u8>,
    /// How many racks each data centre has [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) racks: Option<u8>,
    /// Port for CQL on each node's address [default: 9042]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: Option<u16>,
    /// Port for the other nodes [default: 7000]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) storage_port: Option<u16>,
    /// Port for `nodetool` [default: 7199]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) management_port: Option<u16>,
    /// Memory budget of all nodes together [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<String>,
    /// Shards of each node [default: its share of the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) shards: Option<u16>,
    /// An option of `serve` for every node, as in `commitlog_sync=periodic`; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) settings: Vec<Setting>,
}

/// As many as somebody could want on one machine.
const NODE_COUNT_MAX: i64 = 64;

/// What the nodes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) core_count: u16,
    /// `None` where the system does not tell.
    pub(super) memory_bytes: Option<u64>,
}

impl Machine {
    pub(super) fn of_this_process() -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Machine {
            core_count: u16::try_from(cores).unwrap_or(u16::MAX),
            memory_bytes: runtime::memory_limit_bytes(),
        }
    }

    /// Budget of all nodes, as it is asked for or as a single node would have it.
    ///
    /// # Errors
    /// That is no size, or more than the machine has.
    fn budget(self, memory: Option<&str>) -> Result<u64, ClusterError> {
        let mut config = Config { machine_bytes: self.memory_bytes, ..Config::default() };
        if let Some(memory) = memory {
            config.apply_flag("memory", memory)?;
            config.check()?;
        }
        Ok(config.memory_bytes())
    }
}

impl Wanted {
    /// The cluster that is asked for, with nothing running.
    ///
    /// # Errors
    /// There can not be such a one, or not on this machine.
    pub(super) fn lay_out(&self, machine: Machine) -> Result<Description, ClusterError> {
        let count = |given: Option<u8>, default: usize| given.map_or(default, usize::from);
        let (node_count, datacenter_count, rack_count) =
            (count(self.nodes, 3), count(self.dcs, 1), count(self.racks, 1));
        if datacenter_count * rack_count > node_count {
            return Err(ClusterError::TooFewNodes { node_count, datacenter_count, rack_count });
        }
        let shards = self.shards.unwrap_or((machine.core_count / node_count as u16).max(1));
        let budget = machine.budget(self.memory.as_deref())?;
        let memory_bytes = self.share(budget, node_count, shards)?;
        let node = |index: usize| Node {
            address: Ipv4Addr::new(127, 0, 0, index as u8 + 1),
            datacenter: datacenter(index, datacenter_count),
            rack: format!("rack{}", index / datacenter_count % rack_count + 1),
            shards,
            memory_bytes,
            process: None,
            is_killed: false,
            replaces_itself: false,
        };
        let config = Config::default();
        let ports = Ports {
            cql: self.port.unwrap_or(config.listen.port()),
            storage: self.storage_port.unwrap_or(config.storage_port),
            management: self.management_port.unwrap_or(config.management.port()),
        };
        let nodes = (0..node_count).map(node).collect();
        Ok(Description { ports, memory_bytes: budget, settings: settings(&self.settings), nodes })
    }

    /// What each node has of the budget, in whole MiB. One that nobody asked for is made to be enough.
    fn share(&self, budget: u64, node_count: usize, shard_count: u16) -> Result<u64, ClusterError> {
        let share = ((budget / node_count as u64) >> 20) << 20;
        let of_a_ring = Config { listen_address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), ..Config::default() };
        let least = of_a_ring.memory_bytes_min(shard_count);
        match &self.memory {
            Some(given) if share < least => {
                let least_bytes = least * node_count as u64;
                Err(ClusterError::TooLittleMemory { given: given.clone(), node_count, least_bytes })
            }
            _ => Ok(share.max(least)),
        }
    }

    /// What of a cluster that is there is other than asked for: the flag, its value, and how it is.
    ///
    /// # Errors
    /// A value makes no sense.
    pub(super) fn difference(
        &self,
        known: &Description,
        machine: Machine,
    ) -> Result<Option<(&'static str, String, String)>, ClusterError> {
        let counts = [
            ("nodes", self.nodes.map(usize::from), known.nodes.len()),
            ("dcs", self.dcs.map(usize::from), distinct(known, |node| &node.datacenter)),
            ("racks", self.racks.map(usize::from), distinct(known, |node| &node.rack)),
            ("port", self.port.map(usize::from), known.ports.cql.into()),
            ("storage-port", self.storage_port.map(usize::from), known.ports.storage.into()),
            ("management-port", self.management_port.map(usize::from), known.ports.management.into()),
            (
                "shards",
                self.shards.map(usize::from),
                known.nodes.first().map_or(0, |node| node.shards.into()),
            ),
        ];
        for (flag, given, known) in counts {
            if let Some(given) = given.filter(|given| *given != known) {
                return Ok(Some((flag, given.to_string(), known.to_string())));
            }
        }
        let given = settings(&self.settings);
        if !given.is_empty() && given != known.settings {
            return Ok(Some(("set", shown(&given), shown(&known.settings))));
        }
        match &self.memory {
            Some(given) if machine.budget(Some(given))? != known.memory_bytes => {
                Ok(Some(("memory", given.clone(), format!("{}MiB", known.memory_bytes >> 20))))
            }
            _ => Ok(None),
        }
    }
}

/// Nodes go to data centres in turn. A single one has the name that a node has by default.
fn datacenter(index: usize, count: usize) -> String {
    match count {
        1 => Config::default().datacenter,
        _ => format!("dc{}", index % count + 1),
    }
}

fn distinct(cluster: &Description, name: impl Fn(&Node) -> &String) -> usize {
    let names: std::collections::BTreeSet<&String> = cluster.nodes.iter().map(name).collect();
    names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine { core_count: 8, memory_bytes: Some(16 << 30) };

    fn places(wanted: &Wanted) -> Vec<(String, String)> {
        let cluster = wanted.lay_out(MACHINE).unwrap();
        cluster.nodes.into_iter().map(|node| (node.datacenter, node.rack)).collect()
    }

    #[track_caller]
    fn check_places(wanted: &Wanted, expected: &[(&str, &str)]) {
        let places = places(wanted);
        let places: Vec<(&str, &str)> =
            places.iter().map(|(dc, rack)| (dc.as_str(), rack.as_str())).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn nodes_are_dealt_to_data_centres_and_then_to_racks() {
        let wanted = |nodes, dcs, racks| Wanted { nodes: Some(nodes), dcs, racks, ..Wanted::default() };
        check_places(&Wanted::default(), &[("datacenter1", "rack1"); 3]);
        check_places(
            &wanted(4, None, Some(3)),
            &[
                ("datacenter1", "rack1"),
                ("datacenter1", "rack2"),
                ("datacenter1", "rack3"),
                ("datacenter1", "rack1"),
            ],
        );
        check_places(
            &wanted(4, Some(2), Some(2)),
            &[("dc1", "rack1"), ("dc2", "rack1"), ("dc1", "rack2"), ("dc2", "rack2")],
        );
        check_places(&wanted(3, Some(2), None), &[("dc1", "rack1"), ("dc2", "rack1"), ("dc1", "rack1")]);
        let error = wanted(3, Some(2), Some(2)).lay_out(MACHINE).unwrap_err().to_string();
        assert_eq!(error, "--dcs 2 --racks 2: that takes 4 nodes or more, not 3");
    }

    #[test]
    fn cores_and_memory_are_shared_out() {
        let shares = |nodes, memory: Option<&str>, machine| {
            let memory = memory.map(str::to_owned);
            let cluster = Wanted { nodes: Some(nodes), memory, ..Wanted::default() }.lay_out(machine)?;
            let node = &cluster.nodes[usize::from(nodes) - 1];
            Ok::<_, ClusterError>((cluster.memory_bytes >> 20, node.shards, node.memory_bytes >> 20))
        };
        assert_eq!(shares(3, None, MACHINE).unwrap(), (4096, 2, 1365));
        assert_eq!(shares(1, None, MACHINE).unwrap(), (4096, 8, 4096));
        assert_eq!(shares(10, Some("1GiB"), MACHINE).unwrap(), (1024, 1, 102));
        let one_shard = Wanted { nodes: Some(1), shards: Some(1), ..Wanted::default() };
        assert_eq!(one_shard.lay_out(MACHINE).unwrap().nodes[0].shards, 1);
        let small = Machine { core_count: 24, memory_bytes: Some(300 << 20) };
        assert_eq!(shares(2, None, small).unwrap(), (75, 12, 108), "not less than 12 shards need");
        let error = shares(2, Some("150MiB"), small).unwrap_err().to_string();
        assert_eq!(error, "--memory 150MiB: 2 nodes need 216MiB or more");
        let error = shares(2, Some("64GiB"), MACHINE).unwrap_err().to_string();
        assert!(error.starts_with("configuration: `memory` = 64GiB: more than the 16384MiB"), "{error}");
    }

    #[test]
    fn a_cluster_that_is_there_is_not_changed_by_flags() {
        let set = |text: &str| vec![text.parse().unwrap()];
        let asked = Wanted {
            nodes: Some(4),
            dcs: Some(2),
            racks: Some(2),
            settings: set("commitlog_sync=periodic"),
            ..Wanted::default()
        };
        let known = asked.lay_out(MACHINE).unwrap();
        let difference = |wanted: Wanted| wanted.difference(&known, MACHINE).unwrap();
        assert_eq!(difference(Wanted::default()), None);
        assert_eq!(
            difference(Wanted { port: Some(9042), memory: Some("4096MiB".into()), ..asked.clone() }),
            None
        );
        let told = |flag, given: &str, known: &str| Some((flag, given.to_owned(), known.to_owned()));
        assert_eq!(difference(Wanted { nodes: Some(5), ..asked.clone() }), told("nodes", "5", "4"));
        assert_eq!(difference(Wanted { racks: Some(1), ..asked.clone() }), told("racks", "1", "2"));
        assert_eq!(difference(Wanted { port: Some(1), ..asked.clone() }), told("port", "1", "9042"));
        assert_eq!(difference(Wanted { shards: Some(9), ..asked.clone() }), told("shards", "9", "2"));
        assert_eq!(
            difference(Wanted { settings: set("commitlog_sync=batch"), ..asked.clone() }),
            told("set", "commitlog_sync=batch", "commitlog_sync=periodic")
        );
        assert_eq!(
            difference(Wanted { memory: Some("1GiB".into()), ..asked }),
            told("memory", "1GiB", "4096MiB")
        );
    }
}
