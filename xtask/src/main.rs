//! The project's own tooling: `cargo xtask COMMAND`.
//!
//! Every command is one module with `run(&Arguments) -> Result<Tally, Failure>` and one row in
//! [`COMMANDS`]. A command prints what it does as it goes; what it counted is printed here, last, in
//! one line that programs can read: `N passed, N failed`. The exit code is 0 only when nothing failed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]
#![allow(clippy::disallowed_methods, reason = "a tool lives outside the simulated world")]

mod agreement;
mod applications;
mod arguments;
mod attack;
mod bench;
mod bless;
mod check;
mod coldreads;
mod compaction_cost;
mod compare;
mod conversation;
mod crash;
mod crowd;
mod differ;
mod drivers;
mod durable;
mod faults;
mod flip;
mod formats;
mod fuzz;
mod instructions;
mod kernel;
mod lab;
mod languages;
mod limits;
mod measure;
mod mutants;
mod node;
mod overload;
mod peers;
mod plot;
mod process;
mod report;
mod ring;
mod script;
mod sim;
mod startup;
mod tail;
mod test;
mod tidy;
mod wide;
mod wire;

use std::process::ExitCode;

use arguments::Arguments;
use report::{Failure, Tally};

/// One subcommand.
struct Command {
    name: &'static str,
    /// For the usage text: its options.
    options: &'static str,
    /// For the usage text: what it is for.
    about: &'static str,
    run: fn(&Arguments) -> Result<Tally, Failure>,
}

/// All subcommands, in the order of the usage text.
const COMMANDS: &[Command] = &[
    Command {
        name: "check",
        options: "",
        about: "format, clippy, tidy, rustdoc and all unit and property tests",
        run: check::run,
    },
    Command {
        name: "test",
        options: "[--only STEP,STEP] [--skip STEP,STEP] [--list]",
        about: "everything that CI runs: check, a release build, and the short form of every ladder",
        run: test::run,
    },
    Command {
        name: "tidy",
        options: "[--bless]",
        about: "the house rules: floors, docs, file lengths, dependencies",
        run: tidy::run,
    },
    Command {
        name: "bless",
        options: "--cassandra [--address ADDRESS:PORT] [SCRIPT…]",
        about: "record the answers of a real Cassandra 5 into tests/cql",
        run: bless::run,
    },
    Command {
        name: "cql",
        options: "[--address ADDRESS:PORT] [--quiet] [SCRIPT…]",
        about: "replay tests/cql against Peristyle and show every difference from Cassandra",
        run: bless::replay,
    },
    Command {
        name: "bench",
        options: "[--seconds N] [--rows N]",
        about: "`peristyle bench` with each of its workloads against a node, and one of them once more",
        run: bench::run,
    },
    Command {
        name: "drivers",
        options: "[python] [java3] [java4] [rust] [cqlsh] [prepared] [--statements N] [--install] [--cassandra | --address ADDRESS:PORT]",
        about: "stock drivers and cqlsh do a round of work against Peristyle",
        run: drivers::run,
    },
    Command {
        name: "applications",
        options: "[mapper] [liquibase] [spring] [migration] [stress] [--ring] [--install]",
        about: "known Java applications that change rows by conditions and add to counters, as they are, against Peristyle",
        run: applications::run,
    },
    Command {
        name: "ring",
        options: "[--rounds N] [--rest SECONDS]",
        about: "three nodes are killed, paused and cut off while a stock driver works; every row is checked",
        run: ring::harm::run,
    },
    Command {
        name: "ring-drivers",
        options: "[java3] [java4] [go] [node] [rust] [--rest SECONDS] [--install]",
        about: "a node of three is lost while the driver of each language works; tokens, replicas and rows are checked",
        run: ring::loss::run,
    },
    Command {
        name: "ring-faults",
        options: "[ycsb] [datacenters] [disk] [away] [replace] [recover] [--minutes N] [--rest SECONDS] [--rows N] [--seed S] [--short] [--out FILE]",
        about: "YCSB and writers who keep count while nodes are killed, paused, cut off: every replica is checked by itself",
        run: ring::faults::run,
    },
    Command {
        name: "ring-history",
        options: "[--runs N] [--minutes N] [--rest SECONDS] [--rows N] [--readers N] [--contended N] [--contenders N] [--seed S] [--short] [--install]",
        about: "is what clients at QUORUM and by conditions saw, while nodes are hurt, linearizable? porcupine judges",
        run: ring::history::run,
    },
    Command {
        name: "ring-operations",
        options: "[python] [java4] [go] [node] [--seconds N] [--every SECONDS] [--short] [--install]",
        about: "stock drivers ask again under operation ids while nodes are killed: all must be done once",
        run: ring::operations::run,
    },
    Command {
        name: "ring-cql",
        options: "[SCRIPT…] [--cassandra] [--quiet]",
        about: "what a ring answers of which nodes are lost, as tests/cql/ring has it from Cassandra; --cassandra records it",
        run: ring::answers::run,
    },
    Command {
        name: "ring-counters",
        options: "[--minutes N] [--every SECONDS] [--seed S] [--short] [--install]",
        about: "counters are exact through kills, other numbers of shards, snapshots, and by way of Cassandra",
        run: ring::counters::run,
    },
    Command {
        name: "ring-ddl",
        options: "[--tables N] [--count N] [--changes N] [--short] [--out FILE]",
        about: "CREATE TABLE with few and many tables, and changes of the schema from all nodes at once",
        run: ring::ddl::run,
    },
    Command {
        name: "ring-pulse",
        options: "[--rows N] [--rate N] [--short] [--out FOLDER]",
        about: "plots of an open loop at half of saturation while a node of three is killed, or hangs",
        run: ring::pulse::run,
    },
    Command {
        name: "ring-cost",
        options: "[--short] [--only beside,alone] [--without-cassandra] [--rounds N] [--seconds N] [--warmup N] [--jvm-seconds N] [--rows N] [--in-flight N] [--memory SIZE] [--heap SIZE] [--profile latest|default] [--out FILE]",
        about: "server CPU of a ring for each operation, beside Cassandra's ring, and by levels beside a lone node",
        run: ring::cost::run,
    },
    Command {
        name: "formats",
        options: "[write] [serve] [--bless] [--cassandra]",
        about: "our table files before Cassandra's tools, and a Cassandra node on a copy of them",
        run: formats::run,
    },
    Command {
        name: "compare",
        options: "[--short] [--rounds N] [--rows N] [--seconds N] [--workloads load,c,…] [--in-flight N] [--profiles default,latest|none] [--against BINARY] [--out FILE]",
        about: "YCSB and batches against Peristyle and Cassandra in one run: CPU per operation, throughput, p99, memory",
        run: compare::run,
    },
    Command {
        name: "differ",
        options: "[--seed S] [--seeds N] [--steps N] [--address ADDRESS:PORT]",
        about: "random statements to Peristyle and to a real Cassandra: the same answers",
        run: differ::run,
    },
    Command {
        name: "attack",
        options: "[--memory 64MiB,…] [--shards 1,…] [--only SCENARIO,…] [--seconds N] [--minutes N] [--seed S] [--short] [--ring]",
        about: "hostile clients beside one who asks for a row at a time: resident memory, waits, turns, nothing lost",
        run: attack::run,
    },
    Command {
        name: "peers",
        options: "install | oracle",
        about: "install Cassandra and YCSB; start the Cassandra that answers are recorded from",
        run: peers::run,
    },
    Command {
        name: "crash",
        options: "[--rounds N] [--sync group|periodic|batch] [--seed S] [--shards N|vary] [--keep]",
        about: "load, SIGKILL, restart, check that what was acknowledged is there",
        run: crash::run,
    },
    Command {
        name: "flip",
        options: "[--positions N] [--seed S] [--only POSITION] [--jobs N] [--folder PATH] [--keep]",
        about: "change a byte of any file, start, read everything: reported with file and offset, never an answer",
        run: flip::run,
    },
    Command {
        name: "faults",
        options: "[--rounds N] [--size MIB] [--seed S] [--no-tests] [--keep]",
        about: "a full disk and a failing one below real processes: refused with the right code, recovered from, no loss",
        run: faults::run,
    },
    Command {
        name: "wide",
        options: "[--short] [--gigabytes N]",
        about: "a partition far larger than memory: slices either way by its row index, and all of it page by page",
        run: wide::run,
    },
    Command {
        name: "coldreads",
        options: "[--chunks KB,auto] [--rows N] [--memory SIZE] [--access HOW] [--window N] [--seconds N] [--turns N] [--short]",
        about: "random rows of data larger than memory, beside a plain io_uring program on the same file",
        run: coldreads::run,
    },
    Command {
        name: "agreement",
        options: "[--blocks N] [--seconds N] [--only a,c]",
        about: "stock YCSB and the lab in turns on one Cassandra: do they find the same?",
        run: agreement::run,
    },
    Command {
        name: "limits",
        options: "[--short] [--rounds N] [--rows N] [--seconds N] [--statements small,read]",
        about: "operations per core-second beside a proxy that replays an answer, with the same client",
        run: limits::run,
    },
    Command {
        name: "instructions",
        options: "[--statements read,small,update,insert] [--against BINARY] [--rows N] [--seconds N] [--memory SIZE]",
        about: "instructions of the server for each request, counted by valgrind; at most 1% more than another binary's",
        run: instructions::run,
    },
    Command {
        name: "startup",
        options: "[--short] [--tables 0,100,10000] [--gigabytes N] [--turns N] [--memory SIZE]",
        about: "the first query after a start, idle memory, and what a table costs",
        run: startup::run,
    },
    Command {
        name: "overload",
        options: "[--short] [--only curve,crowd] [--statements mixed,insert] [--seconds N] [--connections N] [--out FOLDER]",
        about: "an open loop at 1x, 2x and 4x of saturation, plotted; and thousands of connections beside the memory budget",
        run: overload::run,
    },
    Command {
        name: "tail",
        options: "[--short] [--functions read,mixed,write] [--seconds N] [--rows N]",
        about: "latencies at 70% of Cassandra's best rate, beside Cassandra's",
        run: tail::run,
    },
    Command {
        name: "durable",
        options: "[--turns N] [--rows N] [--seconds N] [--warmup N] [--profile latest|default] [--memory SIZE] [--heap SIZE]",
        about: "durable writes by 64 connections, beside Cassandra's periodic ones",
        run: durable::run,
    },
    Command {
        name: "compaction-cost",
        options: "[--short] [--gigabytes N] [--small-rows N] [--strategies stcs,lcs,twcs,ucs] [--shapes 1k,40b] [--profiles latest|none]",
        about: "write and space amplification, MB/s and rows/s per core of each strategy, beside Cassandra's",
        run: compaction_cost::run,
    },
    Command {
        name: "sim",
        options: "[--only coordinator|served|peers|replicated|raft|ring|rivals|failover] [--seeds N] [--from S] [--seed S] [--events N] [--once | --processes] [--plants | --plant NAME] [--log FILTER] [--release]",
        about: "the whole node under seeds, with power cuts: every answer checked, every run repeated",
        run: sim::run,
    },
    Command {
        name: "mutants",
        options: "[--only AREA,…] [--sample N] [--seed S] [--minutes N] [--anew]",
        about: "change the code here and there: a test fails each time, or a list says why none can",
        run: mutants::run,
    },
    Command {
        name: "fuzz",
        options: "[--seconds N] [--target NAME]",
        about: "run the fuzz targets, each for so long (10 s by default)",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next().filter(|name| !matches!(name.as_str(), "help" | "-h" | "--help")) else {
        usage();
        return ExitCode::SUCCESS;
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: no command '{name}'");
        usage();
        return ExitCode::from(2);
    };
    let outcome = Arguments::parse(words).and_then(|arguments| (command.run)(&arguments));
    match outcome {
        Ok(tally) => {
            println!("{tally}");
            if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            eprintln!("xtask {name}: {failure}");
            println!("{}", Tally { passed: 0, failed: 1 });
            ExitCode::FAILURE
        }
    }
}

fn usage() {
    println!("cargo xtask COMMAND [OPTIONS]\n");
    for command in COMMANDS {
        println!("  {:<8} {}", command.name, command.about);
        if !command.options.is_empty() {
            println!("  {:<8} {}", "", command.options);
        }
    }
}
