//! `peristyle cluster`: a ring of real nodes on this machine, to be tried out and to be hurt.
//!
//! Each node is a process of this very program, on an address of loopback and with a directory of its own. They go on
//! when the command has ended; what is known of them stands in one file:
//!
//! ```text
//!   setting       options that all nodes are given
//!   layout        how many, where, with which share of cores and memory
//!   description   cluster.json, and who may change it
//!   process       a process that is ours and no other, signals
//!   node          one node: its words, its start, does it serve?
//!   up, down      all nodes, and one of them again
//!   harm          kill, pause, resume; cut off, heal
//!   status, log   looking
//! ```

mod description;
mod down;
mod error;
mod harm;
mod layout;
mod log;
mod node;
mod process;
mod setting;
mod status;
mod up;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cqlsh::with_causes;
pub(crate) use error::ClusterError;
pub(crate) use process::{ProcessId, ProcessState};

/// Where a cluster is of which nobody says more.
const DEFAULT_DIRECTORY: &str = "./peristyle-cluster";

/// Where the nodes are, and what to do with them.
#[derive(Args, Debug)]
pub(crate) struct ClusterArguments {
    /// Directory of the cluster: a directory and a log of each node
    #[arg(long, global = true, value_name = "PATH", default_value = DEFAULT_DIRECTORY)]
    data_dir: PathBuf,
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Start the nodes, and wait until all of them serve
    Up(layout::Wanted),
    /// Stop all nodes in order
    Down {
        /// Delete all that the nodes have written, too
        #[arg(long)]
        remove: bool,
    },
    /// Print the nodes and how they are
    Status,
    /// End a node at once, as a crash does (SIGKILL)
    Kill(OneNode),
    /// Have a node do nothing, as one that hangs (SIGSTOP)
    Pause(OneNode),
    /// Have a paused node go on
    Resume(OneNode),
    /// Start a node that is down, and wait until it serves
    Start {
        #[command(flatten)]
        node: OneNode,
        /// Delete what it has written first: an empty node takes its place, and serves once it has its rows
        #[arg(long)]
        replace: bool,
        /// With so many shards from now on
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
        shards: Option<u16>,
    },
    /// Cut two nodes off from each other
    Cut {
        /// Number of the one
        one: usize,
        /// Number of the other
        other: usize,
    },
    /// Take all cuts back
    Heal,
    /// Print the end of a node's log
    Log {
        #[command(flatten)]
        node: OneNode,
        /// How many lines
        #[arg(long, default_value_t = 50)]
        lines: usize,
    },
    /// Become a program in a session of its own, which no terminal ends
    #[command(hide = true)]
    Detached {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

#[derive(Args, Debug)]
struct OneNode {
    /// Number of the node, from 1
    #[arg(value_name = "N")]
    number: usize,
}

/// Runs one command: 0 when it did what it was to do, else 1.
pub(crate) fn run(arguments: &ClusterArguments) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let outcome = execute(arguments, &mut out);
    let _ = out.flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that went away (`| head`) is no failure.
        Err(ClusterError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {}", with_causes(&error));
            ExitCode::from(1)
        }
    }
}

/// Where the nodes of a directory serve, in their order, and the process of each that was started.
pub(crate) fn members(directory: &Path) -> Result<Vec<(SocketAddr, Option<ProcessId>)>, ClusterError> {
    let cluster = description::look(directory)?;
    let nodes = cluster.nodes.iter();
    Ok(nodes.map(|node| (node.cql_address(cluster.ports), node.process.clone())).collect())
}

fn execute(arguments: &ClusterArguments, out: &mut impl Write) -> Result<(), ClusterError> {
    let directory: &Path = &std::path::absolute(&arguments.data_dir)
        .map_err(|source| ClusterError::file("find", &arguments.data_dir, source))?;
    match &arguments.command {
        ClusterCommand::Up(wanted) => up::up(directory, wanted, out),
        ClusterCommand::Start { node, replace: false, shards } => {
            up::start(directory, node.number, *shards, out)
        }
        ClusterCommand::Start { node, replace: true, shards } => {
            up::replace(directory, node.number, *shards, out)
        }
        ClusterCommand::Down { remove } => down::down(directory, *remove, out),
        ClusterCommand::Status => status::print(directory, out),
        ClusterCommand::Kill(node) => harm::kill(directory, node.number, out),
        ClusterCommand::Pause(node) => harm::pause(directory, node.number, out),
        ClusterCommand::Resume(node) => harm::resume(directory, node.number, out),
        ClusterCommand::Cut { one, other } => harm::cut(directory, [*one, *other], out),
        ClusterCommand::Heal => harm::heal(directory, out),
        ClusterCommand::Log { node, lines } => log::print(directory, node.number, *lines, out),
        ClusterCommand::Detached { words } => Err(process::become_detached(words)),
    }
}
