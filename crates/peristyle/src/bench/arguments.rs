//! Words of the command line, made a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab::{Contender, Disturbance, LabError, Pace, Plan, Preparation, Profile, Wishes};

use super::peer::PeerArguments;

/// Of a node that is named without one.
const DEFAULT_PORT: u16 = 9042;
/// Under way in the closed loop that finds out what a server bears.
pub(crate) const TRIAL_IN_FLIGHT: usize = 64;

/// A run of one server.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Search for the highest rate at which 99% of the operations are over within --p99, and measure there
    #[arg(long, conflicts_with_all = ["rate", "in_flight"])]
    pub(crate) find_max: bool,
    /// What --find-max keeps, with its unit: 10ms, 500us
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time, requires = "find_max")]
    pub(crate) p99: Duration,
    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,
}

/// Several servers.
#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// A server: its name in the report, and some of its nodes with commas between them; the others are compared with
    /// the first one
    #[arg(long = "target", value_name = "NAME=HOST:PORT", value_parser = setting)]
    targets: Vec<(String, String)>,
    /// Processes of a server on this machine, with commas between them: their CPU time and memory are taken
    #[arg(long = "server-pid", value_name = "NAME=PID", value_parser = setting)]
    server_pids: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) peers: PeerArguments,
    /// The rows are there already
    #[arg(long)]
    no_load: bool,
    /// Folder of the reports, which must not be there [default: bench-WORKLOAD-N]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
}

/// What is run, whoever is measured.
#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// A workload or a profile of `bench list`, or the path of a workload of one's own, which ends in .toml
    workload: String,
    /// Operations to begin each second, come what may (an open loop); without it and --in-flight a trial finds out
    /// what is borne, and half of that is offered
    #[arg(long, value_name = "N", conflicts_with = "in_flight")]
    rate: Option<f64>,
    /// Keep so many operations under way, over all connections (a closed loop: a slow server is asked less)
    #[arg(long, value_name = "N")]
    in_flight: Option<usize>,
    /// Rows that are loaded first [default: as many as the workload says, YCSB's 100000]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    rows: u64,
    /// Seconds to measure [default: 20]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seconds before each measurement that do not count [default: 5]
    #[arg(long, value_name = "S")]
    warmup: Option<f64>,
    /// How often it is measured [default: 3]
    #[arg(long, value_name = "N")]
    repetitions: Option<usize>,
    /// How many of the first measurements are dropped [default: 0]
    #[arg(long, value_name = "N")]
    drop: Option<usize>,
    /// Connections, over all nodes in turns [default: 8]
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Threads of the client [default: 1]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Consistency level of reads and writes [default: QUORUM]
    #[arg(long, value_name = "LEVEL")]
    consistency: Option<String>,
    /// Replicas of each row in each data centre, of a keyspace that is not there yet [default: 1]
    #[arg(long, value_name = "N")]
    replication_factor: Option<u16>,
    /// Keyspace of the workload's tables [default: bench]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
    /// A setting of the workload; YCSB's have fields=10, field-bytes=100, scan-rows=100,
    /// distribution=zipfian|true-zipfian|latest|uniform
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// All that is chosen by chance follows from it [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// End the run when a larger part of the operations fails [default: 0.01]
    #[arg(long, value_name = "PART")]
    errors_max: Option<f64>,
    /// An operation that is not answered so long has failed, with its unit: 5s, 500ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// What is done to servers that were started, in each repetition: 20:kill:2, 30:start:2, 40:pause:1, 45:resume:1,
    /// 60:cut:3, 70:heal
    #[arg(long = "at", value_name = "SECOND:ACT:NODE")]
    disturbances: Vec<Disturbance>,
}

/// A node's address with its port.
fn with_port(node: &str) -> String {
    if node.parse::<std::net::Ipv6Addr>().is_ok() {
        return format!("[{node}]:{DEFAULT_PORT}");
    }
    match node.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => node.to_owned(),
        _ => format!("{node}:{DEFAULT_PORT}"),
    }
}

/// What may differ between two runs of one plan.
#[derive(Args, Debug)]
pub(crate) struct Elsewhere {
    /// Nodes, with commas between them [default: 127.0.0.1:9042, or what the manifest says]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', conflicts_with = "kinds")]
    target: Vec<String>,
    #[command(flatten)]
    pub(crate) peers: PeerArguments,
    /// The rows are there already
    #[arg(long)]
    no_load: bool,
    /// Processes of the servers on this machine: their CPU time and memory are taken
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    server_pid: Vec<u32>,
    /// Folder of the report, which must not be there [default: bench-WORKLOAD-N]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "not NAME=VALUE".to_owned())
}

/// A time with its unit.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let found = units.iter().find_map(|(unit, us)| Some((text.strip_suffix(unit)?, us)));
    let number = found.and_then(|(number, us)| Some(number.parse::<f64>().ok()? * us));
    match number {
        Some(us) if us.is_finite() && us >= 1.0 => Ok(Duration::from_micros(us as u64)),
        _ => Err("not a time as 10ms, 500us or 1s".to_owned()),
    }
}

impl RunArguments {
    /// The plan; without a pace it is a closed loop for a start.
    pub(crate) fn plan(&self) -> Plan {
        self.elsewhere.applied_to(self.plan.plan())
    }
}

impl CompareArguments {
    /// Who takes part of those that run already.
    ///
    /// # Errors
    /// A process is no number, or of a server that is not named.
    pub(crate) fn contenders(&self) -> Result<Vec<Contender>, LabError> {
        let mut contenders: Vec<Contender> =
            self.targets.iter().map(|(name, nodes)| self.contender(name, nodes)).collect();
        let names = self.targets.iter().map(|(name, _)| name.as_str()).chain(self.peers.names());
        let names: Vec<&str> = names.collect();
        if names.len() < 2 {
            return Err(LabError::Plan("a comparison is of two servers or more".to_owned()));
        }
        for (place, name) in names.iter().enumerate() {
            let is_taken = names[..place].contains(name);
            if is_taken || name.is_empty() || name.contains(['/', '.']) {
                return Err(LabError::Plan(format!(
                    "'{name}' can not name a target: it names a folder, too"
                )));
            }
        }
        for (name, ids) in &self.server_pids {
            let contender = contenders.iter_mut().find(|contender| contender.name == *name);
            let contender =
                contender.ok_or_else(|| LabError::Plan(format!("no --target is called '{name}'")))?;
            for id in ids.split(',') {
                let refuse = |_| LabError::Plan(format!("'{id}' is no process"));
                contender.preparation.process_ids.push(id.parse().map_err(refuse)?);
            }
        }
        Ok(contenders)
    }

    fn contender(&self, name: &str, nodes: &str) -> Contender {
        Contender {
            name: name.to_owned(),
            nodes: nodes.split(',').map(with_port).collect(),
            preparation: self.preparation(),
        }
    }

    /// What is done first with each.
    pub(crate) fn preparation(&self) -> Preparation {
        Preparation { loads: !self.no_load, ..Preparation::default() }
    }
}

impl PlanArguments {
    /// The plan, on a node of this machine.
    pub(crate) fn plan(&self) -> Plan {
        let replication = format!(
            "{{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
            self.replication_factor.unwrap_or(1)
        );
        Plan {
            workload: self.workload.clone(),
            settings: self.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
            nodes: vec![format!("127.0.0.1:{DEFAULT_PORT}")],
            keyspace: self.keyspace.clone().unwrap_or_else(|| "bench".to_owned()),
            replication,
            consistency: self.consistency.as_deref().unwrap_or("QUORUM").to_uppercase(),
            row_count: self.rows,
            pace: match self.rate {
                Some(rate) => Pace::Open { rate },
                None => Pace::Closed { in_flight: self.in_flight.unwrap_or(TRIAL_IN_FLIGHT) },
            },
            connection_count: self.connections.unwrap_or(8),
            thread_count: self.threads.unwrap_or(1),
            warmup_s: self.warmup.unwrap_or(5.0),
            measured_s: self.seconds.unwrap_or(20.0),
            repetition_count: self.repetitions.unwrap_or(3),
            dropped_count: self.drop.unwrap_or(0),
            seed: self.seed.unwrap_or(1),
            error_part_max: self.errors_max.unwrap_or(0.01),
            disturbances: self.disturbances.clone(),
            timeout_s: self.timeout.map_or(lab::DEFAULT_TIMEOUT_S, |timeout| timeout.as_secs_f64()),
            script: None,
        }
    }

    /// The profile that is called for, if it is one, with what is wished otherwise.
    ///
    /// # Errors
    /// A setting is no whole number, or something was said that a profile says itself.
    pub(crate) fn profile(&self) -> Result<Option<(&'static Profile, Wishes)>, LabError> {
        let Some(profile) = lab::profile(&self.workload) else { return Ok(None) };
        if let Some(word) = self.of_plans_alone() {
            return Err(LabError::Plan(format!(
                "--{word} is not for profiles: {} says that itself; the workloads of `bench list` take it",
                profile.name
            )));
        }
        let number = |(name, value): &(String, String)| match value.parse::<u64>() {
            Ok(number) => Ok((name.clone(), number)),
            Err(_) => {
                Err(LabError::Plan(format!("{name} can not be '{value}': settings of profiles are numbers")))
            }
        };
        let wishes = Wishes {
            measured_s: self.seconds,
            warmup_s: self.warmup,
            repetition_count: self.repetitions,
            dropped_count: self.drop,
            row_count: Some(self.rows).filter(|rows| *rows > 0),
            seed: self.seed,
            connection_count: self.connections,
            thread_count: self.threads,
            settings: self.settings.iter().map(number).collect::<Result<_, _>>()?,
        };
        Ok(Some((profile, wishes)))
    }

    /// The first word that was said of what a profile says itself.
    fn of_plans_alone(&self) -> Option<&'static str> {
        let words = [
            ("rate", self.rate.is_some()),
            ("in-flight", self.in_flight.is_some()),
            ("consistency", self.consistency.is_some()),
            ("replication-factor", self.replication_factor.is_some()),
            ("keyspace", self.keyspace.is_some()),
            ("errors-max", self.errors_max.is_some()),
            ("timeout", self.timeout.is_some()),
            ("at", !self.disturbances.is_empty()),
        ];
        words.iter().find_map(|(word, is_said)| is_said.then_some(*word))
    }

    /// Was nothing said about how operations are begun?
    pub(crate) fn has_no_pace(&self) -> bool {
        self.rate.is_none() && self.in_flight.is_none()
    }
}

impl Elsewhere {
    /// The plan on the nodes that were named.
    pub(crate) fn applied_to(&self, plan: Plan) -> Plan {
        let nodes = Elsewhere::nodes(&self.target);
        if nodes.is_empty() { plan } else { Plan { nodes, ..plan } }
    }

    /// The servers that run already, as one of a study.
    pub(crate) fn contender(&self) -> Option<Contender> {
        let nodes = Elsewhere::nodes(&self.target);
        match (nodes.is_empty(), self.peers.kinds().is_empty()) {
            (true, false) => None,
            (true, true) => Some(vec![format!("127.0.0.1:{DEFAULT_PORT}")]),
            (false, _) => Some(nodes),
        }
        .map(|nodes| Contender { name: "server".to_owned(), nodes, preparation: self.preparation() })
    }

    /// The nodes that were named for a study of so many servers that ran already.
    ///
    /// # Errors
    /// Which of them they are of can not be told.
    pub(crate) fn nodes_instead(&self, server_count: usize) -> Result<Option<Vec<String>>, LabError> {
        let nodes = Elsewhere::nodes(&self.target);
        match (nodes.is_empty(), server_count) {
            (true, _) => Ok(None),
            (false, 1) => Ok(Some(nodes)),
            (false, 0) => Err(LabError::Plan("--target: all servers of this study are started".to_owned())),
            (false, _) => Err(LabError::Plan("--target: this study is of several servers".to_owned())),
        }
    }

    fn nodes(named: &[String]) -> Vec<String> {
        named.iter().map(|node| with_port(node)).collect()
    }

    /// What is done first.
    pub(crate) fn preparation(&self) -> Preparation {
        Preparation { loads: !self.no_load, process_ids: self.server_pid.clone(), ..Preparation::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("500us"), Ok(Duration::from_micros(500)));
        for wrong in ["10", "ms", "-1ms", "0us", "1h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
