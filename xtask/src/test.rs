//! `cargo xtask test`: everything that CI runs, on a fresh machine, in one go.
//!
//! Steps are independent commands in their short form; each has a long form of its own (more rounds,
//! more seeds, more minutes). A step that fails does not stop the others; what failed is told again at
//! the end, where the last line counts all. Left out are `tail`, most of whose minutes are Cassandra's
//! starts, and `sim`, whose short form is a test of its crate.

use std::time::Instant;

use crate::arguments::Arguments;
use crate::peers::stop_oracle;
use crate::process::{cargo, cargo_tests, step};
use crate::report::{Failure, Tally, complain, complaints};
use crate::{
    attack, bench, bless, check, coldreads, compaction_cost, compare, crash, differ, drivers, faults, flip,
    formats, fuzz, limits, overload, ring, startup, wide,
};

/// One rung of the ladder.
struct Step {
    name: &'static str,
    run: fn() -> Result<Tally, Failure>,
}

/// In the order of running: cheap before dear, and what others need first.
const STEPS: &[Step] = &[
    Step { name: "check", run: || check::run(&Arguments::default()) },
    Step {
        name: "build",
        run: || step("release build", cargo().args(["run", "--release", "--quiet", "--", "--version"])),
    },
    Step { name: "packages", run: test_packages },
    Step { name: "cql", run: || bless::replay(&Arguments::default()) },
    Step { name: "drivers", run: || drivers::run(&Arguments::default()) },
    Step { name: "ring", run: || ring::harm::run(&Arguments::default()) },
    Step { name: "ring-cql", run: || ring::answers::run(&Arguments::default()) },
    Step { name: "ring-drivers", run: || ring::loss::run(&Arguments::default()) },
    Step { name: "ring-faults", run: || ring::faults::run(&words("--short")?) },
    Step { name: "ring-history", run: || ring::history::run(&words("--short")?) },
    Step { name: "ring-operations", run: || ring::operations::run(&words("--short")?) },
    Step { name: "ring-counters", run: || ring::counters::run(&words("--short")?) },
    Step { name: "ring-ddl", run: || ring::ddl::run(&words("--short")?) },
    Step { name: "formats", run: || formats::run(&Arguments::default()) },
    Step { name: "crash-group", run: || crash::run(&words("--rounds 6 --sync group")?) },
    Step { name: "crash-shards", run: || crash::run(&words("--rounds 4 --sync group --shards 1,2,3,2")?) },
    Step { name: "crash-batch", run: || crash::run(&words("--rounds 2 --sync batch")?) },
    Step { name: "crash-periodic", run: || crash::run(&words("--rounds 2 --sync periodic")?) },
    Step { name: "flip", run: || flip::run(&words("--positions 40")?) },
    // Their tests are part of `check`.
    Step { name: "faults", run: || faults::run(&words("--rounds 1 --no-tests")?) },
    Step { name: "attack", run: || attack::run(&words("--short")?) },
    Step {
        name: "attack-ring",
        run: || attack::run(&words("--short --ring --only untaken,strangers,silent,impostors")?),
    },
    Step { name: "floor", run: test_floor },
    Step { name: "bench", run: || bench::run(&Arguments::default()) },
    Step { name: "limits", run: || limits::run(&words("--short")?) },
    Step { name: "startup", run: || startup::run(&words("--short")?) },
    Step { name: "wide", run: || wide::run(&words("--short")?) },
    Step { name: "compaction", run: || compaction_cost::run(&words("--short")?) },
    Step { name: "overload", run: || overload::run(&words("--short")?) },
    Step { name: "coldreads", run: || coldreads::run(&words("--short")?) },
    Step { name: "differ", run: test_differ },
    Step { name: "compare", run: || compare::run(&words("--short")?) },
    Step { name: "fuzz", run: || fuzz::run(&words("--seconds 10")?) },
];

/// Runs all steps, or those named.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["only", "skip", "list"])?;
    if arguments.flag("list") {
        STEPS.iter().for_each(|step| println!("{}", step.name));
        return Ok(Tally::default());
    }
    let (only, skip) = (arguments.list("only"), arguments.list("skip"));
    for name in only.iter().chain(&skip) {
        if !STEPS.iter().any(|step| step.name == name) {
            return Err(Failure::new(format!("there is no step '{name}' (see --list)")));
        }
    }
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for step in STEPS {
        if !arguments.picks("only", step.name) || skip.iter().any(|name| name == step.name) {
            continue;
        }
        println!("\n=== {}", step.name);
        let start = Instant::now();
        let tally = (step.run)().unwrap_or_else(|failure| {
            complain!("{}: {failure}", step.name);
            Tally::FAIL
        });
        lines.push(format!("{:<16} {tally} in {:.0} s", step.name, start.elapsed().as_secs_f64()));
        total += tally;
    }
    println!("\n=== summary");
    lines.iter().for_each(|line| println!("{line}"));
    complaints().iter().for_each(|complaint| println!("*** {complaint}"));
    Ok(total)
}

/// What a registry would be sent. Nothing is sent, nothing is asked, and nothing is compiled, which `check` has done.
/// Without lock files, which would name the crates that `patches` stands in for: a registry would be asked for those.
fn test_packages() -> Result<Tally, Failure> {
    let mut command = cargo();
    command.args(["package", "--quiet", "--workspace", "--exclude", "xtask"]);
    command.args(["--exclude", "peristyle-simulator", "--exclude", "base2histogram"]);
    command.args(["--exclude-lockfile", "--no-verify", "--allow-dirty", "--offline"]);
    step("packages that can be published", &mut command)
}

/// The proxy that is the limit is no member of the workspace, so `check` does not test it.
fn test_floor() -> Result<Tally, Failure> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--manifest-path", limits::MANIFEST, "--target-dir", limits::TARGET]);
    cargo_tests("the floor", &mut command)
}

/// The Cassandra that is asked goes afterwards: no other step wants it.
fn test_differ() -> Result<Tally, Failure> {
    let found = differ::run(&words("--seeds 1 --steps 600")?);
    stop_oracle()?;
    found
}

/// Arguments from one line of text.
fn words(line: &str) -> Result<Arguments, Failure> {
    Arguments::parse(line.split_whitespace().map(str::to_owned))
}
