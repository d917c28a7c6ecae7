//! `peristyle`: one binary for the people who run it.
//!
//! ```text
//!   serve      a node
//!   demo       a node with real data in it, for a first look
//!   cqlsh      the shell
//!   nodetool   looking after a node
//!   sstable    table files, offline
//!   cluster    a ring of nodes on this machine, to try it out
//!   bench      how fast is a server?
//!   ring       what a stopped node knows of its ring; a ring that has lost most voters goes on
//! ```
//!
//! Nothing is decided here: arguments go in, exit codes come out.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
#![allow(clippy::disallowed_methods, reason = "tools outside of the simulated world")]

mod bench;
mod cluster;
mod cqlsh;
mod csv;
mod demo;
mod memory_watch;
mod nodetool;
mod ring;
mod serve;
mod sstable;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// A wide-column database that speaks CQL
#[derive(Parser, Debug)]
#[command(name = "peristyle", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Start a node
    Serve(serve::ServeArguments),
    /// Start a node and fill it with the flights that left New York in 2013
    Demo(serve::ServeArguments),
    /// Talk CQL to a node
    #[command(version, display_name = "cqlsh of Peristyle")]
    Cqlsh(cqlsh::CqlshArguments),
    /// Look after a node
    Nodetool(nodetool::NodetoolArguments),
    /// Look at table files and mend them, offline
    Sstable(sstable::SstableArguments),
    /// Run several nodes on this machine, to try out a ring and what it bears
    Cluster(cluster::ClusterArguments),
    /// Measure a server that speaks CQL, this one or another, and write a report
    Bench(bench::BenchArguments),
    /// Look at the ring of a node that is stopped, and let one go on that has lost most voters
    Ring(ring::RingArguments),
}

fn main() -> ExitCode {
    let words = nodetool::with_long_options(std::env::args_os());
    let is_nodetool = words.get(1).is_some_and(|word| word == "nodetool");
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) if is_nodetool => return nodetool::refuse(&error),
        Err(error) => error.exit(),
    };
    match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments, |_| {}),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Cqlsh(arguments) => cqlsh::run(&arguments),
        Command::Nodetool(arguments) => nodetool::run(&arguments),
        Command::Sstable(arguments) => sstable::run(&arguments),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Ring(arguments) => ring::run(&arguments),
    }
}
