//! `peristyle ring`: what a node knows of its ring, while it is stopped; and how a ring goes on that has lost most of
//! its voters. `docs/ring/operating.md` says step by step how that is done.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use assembly::{AssemblyError, StoppedNode};
use clap::{Args, Subcommand};
use cluster::membership::{RecoveryError, StoppedMember};
use cluster::metadata::{Member, MemberState};
use runtime::{Runtime, RuntimeOptions};
use uuid::Uuid;

#[derive(Args, Debug)]
pub(crate) struct RingArguments {
    #[command(subcommand)]
    command: RingCommand,
}

#[derive(Subcommand, Debug)]
enum RingCommand {
    /// Print what a node that is stopped knows of its ring
    Show {
        /// Its data directory
        #[arg(long, value_name = "PATH")]
        data_dir: PathBuf,
    },
    /// Let a ring go on that has lost most of its voters for good: on one survivor, while all are stopped
    Recover {
        /// The data directory of this survivor, whose log is the longest
        #[arg(long, value_name = "PATH")]
        data_dir: PathBuf,
        /// All nodes that are left, by the addresses that `show` prints; without a port where one member is there
        #[arg(long, value_name = "ADDR,ADDR:PORT", value_delimiter = ',', required = true, value_parser = parse_address)]
        survivors: Vec<SocketAddr>,
        /// Do it: without this it is only said what would be done
        #[arg(long)]
        accept_loss: bool,
    },
}

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
enum RingError {
    #[error(transparent)]
    Node(#[from] AssemblyError),
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error("start: {0}")]
    Start(#[source] io::Error),
    #[error("write the output: {0}")]
    Output(#[from] io::Error),
}

/// Runs one command: 0 when it is done, 1 when it is not.
pub(crate) fn run(arguments: &RingArguments) -> ExitCode {
    let done = Runtime::real(RuntimeOptions::default()).map_err(RingError::Start).and_then(|runtime| {
        let mut out = io::stdout().lock();
        match &arguments.command {
            RingCommand::Show { data_dir } => {
                show(&StoppedNode::open(&runtime, data_dir)?.member, &mut out)?;
                Ok(true)
            }
            RingCommand::Recover { data_dir, survivors, accept_loss } => recover(
                &runtime,
                StoppedNode::open(&runtime, data_dir)?,
                (&survivors[..], *accept_loss),
                &mut out,
            ),
        }
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peristyle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    // Which port that is, the members say.
    let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    address
        .or_else(|_| text.parse())
        .map_err(|_| "not an address, as in 10.0.0.1 or 10.0.0.1:7000".to_owned())
}

/// The members at these addresses: by the address alone where no port is given, and it has one member.
fn with_ports(survivors: &[SocketAddr], members: &[SocketAddr]) -> Vec<SocketAddr> {
    let with_port = |survivor: &SocketAddr| {
        let mut there = members.iter().filter(|member| member.ip() == survivor.ip());
        match (survivor.port(), there.next(), there.next()) {
            (0, Some(member), None) => *member,
            (0, ..) => SocketAddr::new(survivor.ip(), config::Config::default().storage_port),
            _ => *survivor,
        }
    };
    survivors.iter().map(with_port).collect()
}

fn show(member: &StoppedMember, out: &mut impl Write) -> io::Result<()> {
    let (term, index) = member.last();
    let (members, voters) = (member.members(), member.voters());
    writeln!(out, "This node:   {}", member.host_id())?;
    writeln!(out, "Cluster:     {}", members.cluster_id())?;
    writeln!(out, "Last entry:  term {term}, index {index}")?;
    writeln!(out, "Ring epoch:  {}", members.epoch())?;
    writeln!(out, "Members:")?;
    for Member { candidate, state, .. } in members.list() {
        let votes = vote_of(candidate.host_id, voters);
        let state = match state {
            MemberState::Normal => "",
            MemberState::Joining => "gets its rows",
            MemberState::Lost => "given up",
        };
        let (address, host_id) = (candidate.address, candidate.host_id);
        let line =
            format!("  {address}  {host_id}  {} {}  {votes}  {state}", candidate.data_center, candidate.rack);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// How a member votes: in one set, or in two while their change is not over.
fn vote_of(host_id: Uuid, voters: &[BTreeSet<Uuid>]) -> &'static str {
    let votes = |voters: Option<&BTreeSet<Uuid>>| voters.is_some_and(|voters| voters.contains(&host_id));
    match (votes(voters.first()), votes(voters.last())) {
        (true, true) => "votes",
        (true, false) => "votes until others do",
        (false, true) => "is becoming a voter",
        (false, false) => "     ",
    }
}

/// Is it done?
fn recover(
    runtime: &Runtime,
    node: StoppedNode,
    (survivors, accept_loss): (&[SocketAddr], bool),
    out: &mut impl Write,
) -> Result<bool, RingError> {
    show(&node.member, out)?;
    let members = node.member.members().list().iter().map(|member| member.candidate.address);
    let survivors = &with_ports(survivors, &members.collect::<Vec<_>>());
    let lost = node.member.lost(survivors)?;
    writeln!(out, "\nGiven up, with what only they have:")?;
    for Member { candidate, .. } in lost {
        writeln!(out, "  {}  {}", candidate.address, candidate.host_id)?;
    }
    writeln!(
        out,
        "\nWARNING: what may be lost for good:\n  \
         - changes of the schema and of the members that this node has not heard of: of all survivors,\n    \
           this must be the one with the greatest term, and of these the greatest index, of its last entry;\n  \
         - writes that only nodes had which are given up; also such that were acknowledged at QUORUM.\n\
         WARNING: none of the nodes that are given up may ever be started again with its data: if most of them\n  \
         were, there would be two rings."
    )?;
    if !accept_loss {
        writeln!(out, "\nNothing was done. With --accept-loss it is.")?;
        return Ok(false);
    }
    node.recover(survivors, runtime)?;
    writeln!(
        out,
        "\nDone: the survivors are the only voters. Start this node first, then the others. Then start an empty node\n\
         with --replace-address for each that was given up, and repair all keyspaces."
    )?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survivors_are_addresses_with_a_port_or_without() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let members = ["10.0.0.1:7002", "10.0.0.2:7001", "10.0.0.2:7002", "[fd00::1]:7003"].map(address);
        let read = |text| with_ports(&[parse_address(text).expect("an address")], &members)[0];
        assert_eq!(read("10.0.0.1"), address("10.0.0.1:7002"), "the only one there");
        assert_eq!(read("10.0.0.1:7001"), address("10.0.0.1:7001"));
        assert_eq!(read("fd00::1"), address("[fd00::1]:7003"));
        assert_eq!(read("10.0.0.2"), address("10.0.0.2:7000"), "one of two");
        assert!(parse_address("node1").is_err());
    }
}
