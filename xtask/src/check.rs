//! `cargo xtask check`: what a developer runs before every commit, in minutes.

use crate::arguments::Arguments;
use crate::process::{cargo, cargo_tests, step};
use crate::report::{Failure, Tally};
use crate::tidy;

/// Runs all of it, even when an early part fails: a developer wants the whole list.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[])?;
    let mut tally = Tally::default();
    tally += step("format", cargo().args(["fmt", "--all", "--check"]))?;
    tally += tidy::run(&Arguments::default())?;
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    tally += step("clippy", cargo().args(clippy))?;
    tally += step(
        "documentation without broken links",
        cargo()
            .args(["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"),
    )?;
    tally += cargo_tests("tests", cargo().args(["test", "--quiet", "--workspace", "--no-fail-fast"]))?;
    Ok(tally)
}
