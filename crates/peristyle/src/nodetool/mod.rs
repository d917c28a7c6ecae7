//! `peristyle nodetool`: Cassandra's words for looking after a node, in Cassandra's layout.
//!
//! Stock `nodetool` speaks JMX to a JVM; this one asks the management port for JSON
//! (`docs/internals/management.md`) and prints what scripts written for Cassandra expect.

mod absent;
mod cluster;
mod compactions;
#[cfg(test)]
mod end_to_end;
mod faults;
mod gossip;
mod handoff;
mod http;
mod info;
mod latencies;
mod moving;
mod netstats;
mod numbers;
mod removal;
mod repair;
mod rewrites;
mod ring;
mod services;
mod status;
mod tablestats;
mod timeouts;

use std::ffi::OsString;
use std::io::Write;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Subcommand};
use serde_json::json;
use server::ManagementToken;

use crate::cqlsh::with_causes;
pub(crate) use http::Management;

/// Where the node is.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct NodetoolArguments {
    /// Node hostname or ip address
    #[arg(short = 'h', long, global = true, default_value = "127.0.0.1")]
    host: String,
    /// Port of the management interface
    #[arg(short, long, global = true, default_value_t = 7199)]
    port: u16,
    /// Address of the management interface as one word, ADDR:PORT
    #[arg(long, global = true, value_name = "ADDR:PORT")]
    management: Option<String>,
    /// File with the token of a node that asks for one (its option management_token_file)
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    for_jmx: ForJmx,
    /// Print help
    #[arg(long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(subcommand)]
    command: NodetoolCommand,
}

/// What scripts for Cassandra give to reach its JVM. There is none here, and they go on as they are.
#[derive(Args, Debug)]
struct ForJmx {
    /// Remote jmx agent username (-u): taken and without effect, there is no JMX
    #[arg(short, long, global = true, value_name = "USER")]
    username: Option<String>,
    /// Remote jmx agent password (-pw): taken and without effect
    #[arg(long, global = true, value_name = "PASSWORD", allow_hyphen_values = true)]
    password: Option<String>,
    /// Path to the JMX password file (-pwf): taken and without effect
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A property of the JVM: taken and without effect
    #[arg(short = 'D', global = true, value_name = "name=value")]
    properties: Vec<String>,
}

#[derive(Subcommand, Debug)]
enum NodetoolCommand {
    /// Force a (major) compaction on one or more tables
    Compact(compactions::CompactArguments),
    /// Print history of compaction
    Compactionhistory {
        /// Output format (json)
        #[arg(short = 'F', long)]
        format: Option<String>,
    },
    /// Print statistics on compactions
    Compactionstats(compactions::StatsArguments),
    /// Print the name, snitch, partitioner and schema version of a cluster
    Describecluster,
    /// Shows the token ranges info of a given keyspace
    Describering {
        /// The keyspace name
        keyspace: String,
    },
    /// Disable autocompaction for the given keyspace and table
    Disableautocompaction {
        /// The keyspace followed by one or many tables
        names: Vec<String>,
    },
    /// Forcefully remove a dead node without re-replicating any data: refused, with what to do instead
    Assassinate {
        /// IP address of the endpoint to assassinate
        ip_address: String,
    },
    /// Remove the snapshot with the given name from the given keyspaces
    Clearsnapshot(moving::ClearArguments),
    /// Disable incremental backup
    Disablebackup,
    /// Disable native transport (binary protocol)
    Disablebinary,
    /// Disable gossip (effectively marking the node down)
    Disablegossip,
    /// Enable incremental backup
    Enablebackup,
    /// Reenable native transport (binary protocol)
    Enablebinary,
    /// Reenable gossip
    Enablegossip,
    /// Import new SSTables to the system
    Import(moving::ImportArguments),
    /// Lists all the snapshots along with the size on disk and true size
    Listsnapshots,
    /// Load newly placed SSTables to the system without restart
    Refresh {
        /// The keyspace
        keyspace: String,
        /// The table
        table: String,
    },
    /// Take a snapshot of specified keyspaces or a snapshot of the specified table
    Snapshot(moving::SnapshotArguments),
    /// Status of incremental backup
    Statusbackup,
    /// Status of native transport (binary protocol)
    Statusbinary,
    /// Status of gossip
    Statusgossip,
    /// Drain the node (stop accepting writes and flush all tables)
    Drain,
    /// Enable autocompaction for the given keyspace and table
    Enableautocompaction {
        /// The keyspace followed by one or many tables
        names: Vec<String>,
    },
    /// Shows the failure detector information for the cluster
    Failuredetector,
    /// Print what has failed, by which policy it is answered, and which table files were set aside
    Faults,
    /// Flush one or more tables
    Flush {
        /// The keyspace followed by one or many tables
        names: Vec<String>,
    },
    /// Print the MiB/s throughput cap for compaction in the system as a rounded number
    Getcompactionthroughput {
        /// Print the MiB/s throughput cap for compaction in the system as a precise number (double)
        #[arg(short = 'd', long)]
        precise_mib: bool,
    },
    /// Print the end points that owns the key
    Getendpoints {
        /// The keyspace
        keyspace: String,
        /// The table
        table: String,
        /// The partition key for which we need to find the endpoint
        #[arg(allow_hyphen_values = true)]
        key: String,
    },
    /// Get the currently in use seed node IP list excluding the node IP
    Getseeds,
    /// Shows the gossip information for the cluster
    Gossipinfo {
        /// Show node domain names instead of IPs, as far as /etc/hosts has them
        #[arg(short, long)]
        resolve_ip: bool,
    },
    /// Print the timeout of the given type in ms: read, range, write, counterwrite, truncate
    /// or cascontention
    Gettimeout {
        /// The timeout type
        timeout_type: String,
    },
    #[command(flatten)]
    Handoff(handoff::HandoffCommand),
    /// Print node information (uptime, load, ...)
    Info {
        /// Display all tokens
        #[arg(short = 'T', long)]
        tokens: bool,
    },
    /// Print network information on provided host (connecting node by default)
    Netstats {
        /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB: without effect, as nothing is streamed
        #[arg(short = 'H', long)]
        human_readable: bool,
    },
    /// Rewrite sstables (for the requested tables) that have compression configuration different from the current
    #[command(name = "recompress_sstables")]
    RecompressSstables(rewrites::RecompressArguments),
    /// Show status of current node removal, force completion of pending removal or remove provided ID: no node is
    /// removed yet, and the answer says what to do instead
    Removenode {
        /// Show status of current node removal, force completion of pending removal, or remove provided ID
        #[arg(value_name = "status|force|ID")]
        operation: String,
    },
    /// Repair one or more tables: their rows are compared on all replicas, and made equal
    Repair(repair::RepairArguments),
    /// Print information about the token ring
    Ring {
        /// Show node domain names instead of IPs, as far as /etc/hosts has them
        #[arg(short, long)]
        resolve_ip: bool,
        /// Specify a keyspace for accurate ownership information (topology awareness)
        keyspace: Option<String>,
    },
    /// Scrub (rebuild sstables for) one or more tables: damaged files are rewritten and set aside
    Scrub {
        /// The keyspace followed by one or many tables
        names: Vec<String>,
    },
    /// Set the MiB/s throughput cap for compaction in the system, or 0 to disable throttling
    Setcompactionthroughput {
        /// Value in MiB, 0 to disable throttling
        #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(0..))]
        compaction_throughput: i32,
    },
    /// Set the timeout of the given type in ms, until the node ends: read, range, write, counterwrite, truncate
    /// or cascontention
    Settimeout {
        /// The timeout type
        timeout_type: String,
        /// In milliseconds
        timeout_in_ms: u64,
    },
    /// Sets the probability for tracing any given request to value. 0 disables, 1 enables for all requests, 0 is the
    /// default
    Settraceprobability {
        /// Trace probability between 0 and 1 (ex: 0.2)
        #[arg(allow_negative_numbers = true)]
        trace_probability: f64,
    },
    /// Print cluster information (state, load, IDs, ...)
    Status {
        /// Show node domain names instead of IPs, as far as /etc/hosts has them
        #[arg(short, long)]
        resolve_ip: bool,
        /// The keyspace name
        keyspace: Option<String>,
    },
    /// Print the current trace probability value
    Gettraceprobability,
    /// Print statistics for read, write and range requests: what clients waited for in the last minutes
    Proxyhistograms,
    /// Print usage statistics of thread pools, as far as there are any
    Tpstats,
    /// Stop compaction
    Stop {
        /// Use -id to stop a compaction by the specified id
        #[arg(long = "compaction-id", visible_alias = "id", value_name = "compaction_id")]
        id: Option<String>,
        /// The kind to stop: COMPACTION, TOMBSTONE_COMPACTION, MAJOR_COMPACTION, UPGRADE_SSTABLES, ...
        #[arg(default_value = "COMPACTION")]
        kind: String,
    },
    /// Print statistics on tables
    #[command(alias = "cfstats")]
    Tablestats(tablestats::TablestatsArguments),
    /// Rewrite sstables (for the requested tables) that are not on the current version (thus upgrading them to said
    /// current version)
    Upgradesstables(rewrites::UpgradeArguments),
    /// Verify (check data checksum for) one or more tables
    Verify {
        /// The keyspace followed by one or many tables
        names: Vec<String>,
    },
    /// Print cassandra version
    Version {
        /// Include additional information
        #[arg(short, long)]
        verbose: bool,
    },
}

/// Options that may stand before the command, with a word of their own behind them.
const VALUED: [&str; 10] = [
    "-h",
    "--host",
    "-p",
    "--port",
    "--management",
    "--token-file",
    "-u",
    "--username",
    "--password",
    "--password-file",
];

/// Words as our parser takes them: Cassandra's options of two letters behind one dash as the long ones they stand
/// for, `help` and `help <command>` as the option.
pub(crate) fn with_long_options(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = with_long_names(words);
    if words.get(1).is_none_or(|word| word != "nodetool") {
        return words;
    }
    let mut command = 2;
    while let Some(word) =
        words.get(command).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        let takes_value = VALUED.contains(&word);
        command += 1 + usize::from(takes_value);
    }
    if words.get(command).is_some_and(|word| word == "help") {
        words.remove(command);
        words.push("--help".into());
    }
    words
}

fn with_long_names(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut is_nodetool, mut is_repair) = (false, false);
    words
        .map(|word| {
            is_nodetool |= word == "nodetool";
            is_repair |= is_nodetool && word == "repair";
            if is_repair && let Some(long) = word.to_str().and_then(repair::long_name) {
                return long.into();
            }
            match word.to_str() {
                Some("-st") if is_nodetool => "--start-token".into(),
                Some("-et") if is_nodetool => "--end-token".into(),
                Some("-id") if is_nodetool => "--compaction-id".into(),
                Some("-cf" | "--column-family") if is_nodetool => "--table".into(),
                Some("-kt" | "-kc" | "--kc.list") if is_nodetool => "--kt-list".into(),
                Some("-sf") if is_nodetool => "--skip-flush".into(),
                Some("-pw") if is_nodetool => "--password".into(),
                Some("-pwf") if is_nodetool => "--password-file".into(),
                _ => word,
            }
        })
        .collect()
}

/// What wrong arguments of `nodetool` end with, and its bare name: Cassandra's exit codes, and its hint.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help that was asked for. A reader that went away is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        match absent::is_absent(name) {
            true => eprintln!("nodetool: `{name}` of Cassandra's nodetool is not built yet."),
            false => eprintln!("nodetool: Found unexpected parameters: [{name}]"),
        }
        eprintln!("See 'nodetool help' or 'nodetool help <command>'.");
        return ExitCode::from(1);
    }
    let text = error.to_string();
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && text.contains("nodetool repair")
        && repair::is_absent(option)
    {
        eprintln!("nodetool: `{option}` of Cassandra's repair is not built yet.");
        eprintln!("See 'nodetool help' or 'nodetool help <command>'.");
        return ExitCode::from(1);
    }
    let what = text.strip_prefix("error: ").unwrap_or(&text);
    eprintln!("nodetool: {}", what.split("\n\nFor more information").next().unwrap_or(what));
    eprintln!("See 'nodetool help' or 'nodetool help <command>'.");
    ExitCode::from(1)
}

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodetoolError {
    /// The user asked in a wrong way.
    #[error("{0}")]
    BadUse(String),
    /// The user asked for something that is not there.
    #[error("{0}")]
    Absent(String),
    /// Nobody answers.
    #[error("Failed to connect to '{address}' - {reason}.")]
    Connect { address: String, reason: String },
    /// The node tried and failed.
    #[error("{0}")]
    Failed(String),
    /// The answer makes no sense to us.
    #[error("the answer to {path} is not understood")]
    Answer { path: String, source: serde_json::Error },
    #[error("write the output")]
    Output(#[from] std::io::Error),
}

/// Runs one command; exit codes are Cassandra's (1 for bad use, 2 for a failure).
pub(crate) fn run(arguments: &NodetoolArguments) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let outcome = execute(arguments, &mut out);
    // A reader that went away (`| head`) is no failure.
    let _ = out.flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(NodetoolError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(
            error @ (NodetoolError::BadUse(_) | NodetoolError::Absent(_) | NodetoolError::Connect { .. }),
        ) => {
            eprintln!("nodetool: {error}\nSee 'nodetool help' or 'nodetool help <command>'.");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

impl NodetoolArguments {
    /// Where the node is, as a part of a URL.
    fn address(&self) -> String {
        if let Some(address) = &self.management {
            return address.clone();
        }
        match self.host.parse::<Ipv6Addr>() {
            Ok(host) => format!("[{host}]:{}", self.port),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }
}

fn execute(arguments: &NodetoolArguments, out: &mut impl Write) -> Result<(), NodetoolError> {
    let token = arguments.token_file.as_deref().map(ManagementToken::read).transpose();
    let token = token.map_err(|error| NodetoolError::BadUse(with_causes(&error)))?;
    let management = Management::new(arguments.address(), token.as_ref());
    match &arguments.command {
        NodetoolCommand::Compact(options) => compactions::compact(&management, options),
        NodetoolCommand::Compactionhistory { format } => {
            compactions::history(&management, format.as_deref(), out)
        }
        NodetoolCommand::Compactionstats(options) => compactions::stats(&management, options, out),
        NodetoolCommand::Disableautocompaction { names } => compactions::set_auto(&management, names, false),
        NodetoolCommand::Enableautocompaction { names } => compactions::set_auto(&management, names, true),
        NodetoolCommand::Getcompactionthroughput { precise_mib } => {
            compactions::throughput(&management, *precise_mib, out)
        }
        NodetoolCommand::Setcompactionthroughput { compaction_throughput } => {
            compactions::set_throughput(&management, *compaction_throughput)
        }
        NodetoolCommand::Gettimeout { timeout_type } => timeouts::get(&management, timeout_type, out),
        NodetoolCommand::Settimeout { timeout_type, timeout_in_ms } => {
            timeouts::set(&management, timeout_type, *timeout_in_ms)
        }
        NodetoolCommand::Stop { id, kind } => compactions::stop(&management, id.as_deref(), kind),
        NodetoolCommand::Assassinate { ip_address } => removal::assassinate(&management, ip_address),
        NodetoolCommand::Removenode { operation } => removal::remove(&management, operation, out),
        NodetoolCommand::Clearsnapshot(wanted) => moving::clear(&management, wanted, out),
        NodetoolCommand::Disablebackup => moving::set_backups(&management, false),
        NodetoolCommand::Enablebackup => moving::set_backups(&management, true),
        NodetoolCommand::Disablebinary => services::set(&management, services::NATIVE_TRANSPORT, false),
        NodetoolCommand::Enablebinary => services::set(&management, services::NATIVE_TRANSPORT, true),
        NodetoolCommand::Disablegossip => services::set(&management, services::GOSSIP, false),
        NodetoolCommand::Enablegossip => services::set(&management, services::GOSSIP, true),
        NodetoolCommand::Statusbinary => {
            services::print(&management, |info| info.native_transport_active, out)
        }
        NodetoolCommand::Statusgossip => services::print(&management, |info| info.gossip_active, out),
        NodetoolCommand::Import(wanted) => moving::import(&management, wanted, out),
        NodetoolCommand::Listsnapshots => moving::list(&management, out),
        NodetoolCommand::Refresh { keyspace, table } => moving::refresh(&management, keyspace, table),
        NodetoolCommand::Snapshot(wanted) => moving::snapshot(&management, wanted, out),
        NodetoolCommand::Statusbackup => moving::backups(&management, out),
        NodetoolCommand::Drain => management.post("/v1/drain", &json!({})),
        NodetoolCommand::Flush { names } => management.post("/v1/flush", &target(names)),
        NodetoolCommand::Faults => faults::print(&management.get("/v1/faults", &[])?, out),
        NodetoolCommand::Scrub { names } => faults::scrub(&management, &target(names), out),
        NodetoolCommand::Verify { names } => faults::verify(&management, &target(names), out),
        NodetoolCommand::RecompressSstables(wanted) => rewrites::recompress(&management, wanted, out),
        NodetoolCommand::Upgradesstables(wanted) => rewrites::upgrade(&management, wanted, out),
        NodetoolCommand::Handoff(command) => handoff::run(&management, command, out),
        NodetoolCommand::Info { tokens } => info::print(&management.get("/v1/info", &[])?, *tokens, out),
        NodetoolCommand::Describecluster => cluster::describe(&management.get("/v1/cluster", &[])?, out),
        NodetoolCommand::Describering { keyspace } => {
            cluster::ranges(&management.get("/v1/ranges", &[("keyspace", keyspace)])?, out)
        }
        NodetoolCommand::Getendpoints { keyspace, table, key } => {
            let query = [("keyspace", keyspace.as_str()), ("table", table), ("key", key)];
            cluster::endpoints(&management.get("/v1/endpoints", &query)?, out)
        }
        NodetoolCommand::Getseeds => cluster::seeds(&management.get("/v1/cluster", &[])?, out),
        NodetoolCommand::Failuredetector => gossip::silences(&management.get("/v1/gossip", &[])?, out),
        NodetoolCommand::Gossipinfo { resolve_ip } => {
            gossip::info(&gossip::get(&management, *resolve_ip)?, out)
        }
        NodetoolCommand::Netstats { .. } => netstats::print(&management.get("/v1/network", &[])?, out),
        NodetoolCommand::Tpstats => {
            let (info, compactions) =
                (management.get("/v1/info", &[])?, management.get("/v1/compactions", &[])?);
            netstats::pools(&info, &compactions, &management.get("/v1/network", &[])?, out)
        }
        NodetoolCommand::Gettraceprobability => {
            let tracing: management::Tracing = management.get("/v1/tracing", &[])?;
            Ok(writeln!(out, "Current trace probability: {:?}", tracing.chance)?)
        }
        NodetoolCommand::Settraceprobability { trace_probability } => {
            management.post("/v1/tracing", &json!({ "chance": trace_probability }))
        }
        NodetoolCommand::Proxyhistograms => latencies::print(&management.get("/v1/latencies", &[])?, out),
        NodetoolCommand::Repair(wanted) => repair::run(&management, wanted, out),
        NodetoolCommand::Ring { resolve_ip, keyspace } => {
            ring::print(&status::get(&management, keyspace.as_deref(), *resolve_ip)?, out)
        }
        NodetoolCommand::Status { resolve_ip, keyspace } => {
            status::print(&status::get(&management, keyspace.as_deref(), *resolve_ip)?, out)
        }
        NodetoolCommand::Tablestats(options) => tablestats::run(&management, options, out),
        NodetoolCommand::Version { verbose } => {
            let version: management::Version = management.get("/v1/version", &[])?;
            writeln!(out, "ReleaseVersion: {}", version.release_version)?;
            if *verbose {
                writeln!(out, "GitSHA: {}", version.git_sha)?;
            }
            Ok(())
        }
    }
}

/// `[<keyspace> <tables>...]` as the body of a request.
fn target(names: &[String]) -> serde_json::Value {
    match names {
        [] => json!({}),
        [keyspace] => json!({ "keyspace": keyspace }),
        [keyspace, tables @ ..] => json!({ "keyspace": keyspace, "tables": tables }),
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
