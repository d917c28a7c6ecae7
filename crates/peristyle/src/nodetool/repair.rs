//! `nodetool repair`: rows compared on all replicas and made equal, in Cassandra's words.

use std::io::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use management::{Cluster, Repaired};
use serde_json::{Value, json};

use super::compactions::local_date_time;
use super::http::Management;
use super::{NodetoolError, target};

/// `nodetool repair`.
#[derive(Args, Debug, Default)]
pub(super) struct RepairArguments {
    /// Use -full to issue a full repair; there is no other one here
    #[arg(long)]
    full: bool,
    /// Use -pr to repair only the first range returned by the partitioner
    #[arg(long)]
    partitioner_range: bool,
    /// Use -seq to carry out a sequential repair; there is no other one here
    #[arg(long)]
    sequential: bool,
    /// Use -st to specify a token at which the repair range starts (exclusive)
    #[arg(long, allow_hyphen_values = true, requires = "end_token", value_name = "start_token")]
    start_token: Option<String>,
    /// Use -et to specify a token at which repair range ends (inclusive)
    #[arg(long, allow_hyphen_values = true, requires = "start_token", value_name = "end_token")]
    end_token: Option<String>,
    /// Use -local to only repair against nodes in the same datacenter
    #[arg(long)]
    in_local_dc: bool,
    /// Use -dc to repair specific datacenters
    #[arg(long, value_delimiter = ',', value_name = "specific_dc")]
    in_dc: Vec<String>,
    /// Use -hosts to repair specific hosts
    #[arg(long, value_delimiter = ',', value_name = "specific_host")]
    in_hosts: Vec<String>,
    /// Use -force to filter out down endpoints
    #[arg(long)]
    force: bool,
    /// The keyspace followed by one or many tables
    names: Vec<String>,
}

/// Options of Cassandra of more than one letter, and what they are called when they are spelt out.
const LONG_NAMES: [(&str, &str); 19] = [
    ("-full", "--full"),
    ("-pr", "--partitioner-range"),
    ("-dc", "--in-dc"),
    ("-dcpar", "--dc-parallel"),
    ("-et", "--end-token"),
    ("-force", "--force"),
    ("-hosts", "--in-hosts"),
    ("-iuk", "--ignore-unreplicated-keyspaces"),
    ("-j", "--job-threads"),
    ("-local", "--in-local-dc"),
    ("-os", "--optimise-streams"),
    ("-paxos-only", "--paxos-only"),
    ("-pl", "--pull"),
    ("-prv", "--preview"),
    ("-seq", "--sequential"),
    ("-skip-paxos", "--skip-paxos"),
    ("-st", "--start-token"),
    ("-tr", "--trace"),
    ("-vd", "--validate"),
];

/// The option as our parser takes it: to that, `-hosts` would be the option `-h`.
pub(super) fn long_name(option: &str) -> Option<&'static str> {
    LONG_NAMES.iter().find(|(short, _)| *short == option).map(|(_, long)| *long)
}

/// Has Cassandra's repair an option of that name which ours has not? Asked of options that were not understood.
pub(super) fn is_absent(option: &str) -> bool {
    LONG_NAMES.iter().any(|(_, long)| *long == option)
}

pub(super) fn run(
    management: &Management,
    arguments: &RepairArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let keyspaces = wanted(arguments, management.get("/v1/cluster", &[])?)?;
    for (number, keyspace) in (1..).zip(keyspaces) {
        let mut log = Log { out, now: now_ms };
        let command = Command { number, keyspace, arguments };
        log.started(&command)?;
        let begun = Instant::now();
        let repaired = management.ask("/v1/repair", &command.body());
        let seconds = begun.elapsed().as_secs();
        log.ended(&command, repaired, seconds)?;
    }
    Ok(())
}

/// The keyspace that is named, or all on the ring.
fn wanted(arguments: &RepairArguments, cluster: Cluster) -> Result<Vec<String>, NodetoolError> {
    let Some(named) = arguments.names.first() else {
        let on_ring = cluster.keyspaces.into_iter().filter(|(_, of)| of.class != "LocalStrategy");
        return Ok(on_ring.map(|(name, _)| name).collect());
    };
    match cluster.keyspaces.contains_key(named) {
        true => Ok(vec![named.clone()]),
        false => Err(NodetoolError::Absent(format!("Keyspace [{named}] does not exist."))),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The repair of a keyspace.
struct Command<'a> {
    number: u32,
    keyspace: String,
    arguments: &'a RepairArguments,
}

impl Command<'_> {
    fn tables(&self) -> &[String] {
        self.arguments.names.get(1..).unwrap_or_default()
    }

    fn body(&self) -> Value {
        let names: Vec<String> = [&self.keyspace].into_iter().chain(self.tables()).cloned().collect();
        let mut body = target(&names);
        let RepairArguments { partitioner_range, start_token, end_token, .. } = self.arguments;
        let RepairArguments { in_local_dc, in_dc, in_hosts, force, .. } = self.arguments;
        body["primary_range"] = json!(partitioner_range);
        // As in Cassandra, the local data centre is said in place of others.
        let in_dc: &[String] = if *in_local_dc { &[] } else { in_dc };
        for (name, value) in [("data_centers", json!(in_dc)), ("hosts", json!(in_hosts))] {
            if value != json!([]) {
                body[name] = value;
            }
        }
        for (name, is_asked) in [("local_data_center", *in_local_dc), ("force", *force)] {
            if is_asked {
                body[name] = json!(true);
            }
        }
        for (name, token) in [("start_token", start_token), ("end_token", end_token)] {
            if let Some(token) = token {
                body[name] = json!(token);
            }
        }
        body
    }
}

/// Lines with their time in front.
struct Log<'a, Out> {
    out: &'a mut Out,
    now: fn() -> i64,
}

impl<Out: Write> Log<'_, Out> {
    fn line(&mut self, text: &str) -> Result<(), NodetoolError> {
        let time = local_date_time((self.now)()).replace('T', " ").replace('.', ",");
        writeln!(self.out, "[{time}] {text}")?;
        Ok(())
    }

    fn started(&mut self, command: &Command<'_>) -> Result<(), NodetoolError> {
        let Command { number, keyspace, arguments } = command;
        let mut of_command = [0; 10];
        of_command[6..].copy_from_slice(&number.to_be_bytes());
        let started = (self.now)().unsigned_abs();
        let id = uuid::Builder::from_unix_timestamp_millis(started, &of_command).into_uuid();
        let (is_primary, tables) = (arguments.partitioner_range, command.tables().join(", "));
        let centers =
            if arguments.in_local_dc { "the local one".to_owned() } else { arguments.in_dc.join(", ") };
        let (hosts, is_forced) = (arguments.in_hosts.join(", "), arguments.force);
        let range = match (&arguments.start_token, &arguments.end_token) {
            (Some(start), Some(end)) => format!("({start},{end}]"),
            _ => "all".to_owned(),
        };
        self.line(&format!(
            "Starting repair command #{number} ({id}), repairing keyspace {keyspace} with repair options \
             (parallelism: sequential, primary range: {is_primary}, incremental: false, job threads: 1, \
             ColumnFamilies: [{tables}], dataCenters: [{centers}], hosts: [{hosts}], range: {range}, force repair: {is_forced})"
        ))
    }

    fn ended(
        &mut self,
        command: &Command<'_>,
        repaired: Result<Repaired, NodetoolError>,
        seconds: u64,
    ) -> Result<(), NodetoolError> {
        let number = command.number;
        match repaired {
            Ok(Repaired { page_count, differing_count, mended_count, table_count, partial_count }) => {
                if partial_count > 0 {
                    self.line(&format!(
                        "Not all replicas were compared: {partial_count} parts of tables have others, which are away \
                         or left out"
                    ))?;
                }
                self.line(&format!(
                    "Pages compared: {page_count}, of them differing: {differing_count}; partitions mended: \
                     {mended_count}; tables: {table_count}"
                ))?;
                self.line("Repair completed successfully")?;
                self.line(&format!("Repair command #{number} finished in {}", in_words(seconds)))
            }
            Err(error) => {
                self.line(&format!("Repair command #{number} failed with error {error}"))?;
                Err(error)
            }
        }
    }
}

/// As in `1 hour 0 minutes 1 second`: what is larger than all there is, is left out.
fn in_words(seconds: u64) -> String {
    let counted = |count: u64, unit: &str| match count {
        1 => format!("1 {unit}"),
        count => format!("{count} {unit}s"),
    };
    let parts = [(seconds / 3_600, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(2);
    parts[first..].iter().map(|(count, unit)| counted(*count, unit)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use management::Replication;

    use super::*;

    fn arguments(names: &[&str], partitioner_range: bool) -> RepairArguments {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        RepairArguments { full: true, partitioner_range, names, ..RepairArguments::default() }
    }

    fn at(arguments: &RepairArguments) -> Command<'_> {
        Command { number: 1, keyspace: "k".to_owned(), arguments }
    }

    /// What is printed of a repair that ends so.
    fn printed(arguments: &RepairArguments, repaired: Result<Repaired, NodetoolError>) -> String {
        let mut out = Vec::new();
        let mut log = Log { out: &mut out, now: || 1_704_067_200_123 };
        let is_done = repaired.is_ok();
        log.started(&at(arguments)).unwrap();
        assert_eq!(log.ended(&at(arguments), repaired, 61).is_ok(), is_done);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_repair_is_told_in_cassandras_words() {
        let repaired =
            Repaired { page_count: 9, differing_count: 2, mended_count: 5, table_count: 1, partial_count: 0 };
        let out = printed(&arguments(&["k", "t", "u"], true), Ok(repaired));
        let lines: Vec<&str> = out.lines().collect();
        let time = "[2024-01-01 00:00:00,123]";
        assert_eq!(
            lines,
            [
                &format!(
                    "{time} Starting repair command #1 (018cc251-f47b-7000-8000-000000000001), repairing keyspace k \
                     with repair options (parallelism: sequential, primary range: true, incremental: false, job \
                     threads: 1, ColumnFamilies: [t, u], dataCenters: [], hosts: [], range: all, force repair: false)"
                ),
                &format!("{time} Pages compared: 9, of them differing: 2; partitions mended: 5; tables: 1"),
                &format!("{time} Repair completed successfully"),
                &format!("{time} Repair command #1 finished in 1 minute 1 second"),
            ]
        );
        let failed = printed(&arguments(&["k"], false), Err(NodetoolError::Failed("why".to_owned())));
        assert_eq!(failed.lines().last(), Some(&*format!("{time} Repair command #1 failed with error why")));
    }

    #[test]
    fn a_repair_is_of_a_keyspace_its_tables_or_all_on_the_ring() {
        let body = json!({"keyspace": "k", "tables": ["t"], "primary_range": true});
        assert_eq!(at(&arguments(&["k", "t"], true)).body(), body);
        assert_eq!(at(&arguments(&[], false)).body(), json!({"keyspace": "k", "primary_range": false}));
        let of = |class: &str| Replication { class: class.to_owned(), ..Replication::default() };
        let keyspaces = [("k", "SimpleStrategy"), ("system", "LocalStrategy")];
        let keyspaces = keyspaces.map(|(name, class)| (name.to_owned(), of(class))).into();
        let cluster = Cluster { keyspaces, ..Cluster::default() };
        let wanted = |names: &[&str]| wanted(&arguments(names, false), cluster.clone());
        assert_eq!(wanted(&[]).unwrap(), ["k"]);
        assert_eq!(wanted(&["system", "local"]).unwrap(), ["system"]);
        assert_eq!(wanted(&["nope"]).unwrap_err().to_string(), "Keyspace [nope] does not exist.");
    }

    #[test]
    fn a_repair_may_be_of_a_part_of_the_ring_and_of_some_replicas() {
        let part = RepairArguments {
            start_token: Some("-5".to_owned()),
            end_token: Some("7".to_owned()),
            in_hosts: vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()],
            force: true,
            ..arguments(&["k"], false)
        };
        let body = json!({
            "keyspace": "k", "primary_range": false, "start_token": "-5", "end_token": "7",
            "hosts": ["10.0.0.1", "10.0.0.2"], "force": true,
        });
        assert_eq!(at(&part).body(), body);
        let in_dc = vec!["dc2".to_owned()];
        let local = RepairArguments { in_local_dc: true, in_dc, ..arguments(&["k"], false) };
        let body = json!({"keyspace": "k", "primary_range": false, "local_data_center": true});
        assert_eq!(at(&local).body(), body);
    }

    #[test]
    fn durations_are_told_in_words() {
        let words = [0, 1, 60, 3_601].map(in_words);
        assert_eq!(words, ["0 seconds", "1 second", "1 minute 0 seconds", "1 hour 0 minutes 1 second"]);
    }
}
