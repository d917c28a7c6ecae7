//! `cargo xtask fuzz`: runs the targets in `fuzz/` for a while each.
//!
//! The targets are libFuzzer programs, which need a nightly toolchain and `cargo-fuzz`; both are
//! installed on first use. A crash leaves its input under `fuzz/artifacts`, and the last line of the
//! target's output tells how to repeat it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use crate::arguments::Arguments;
use crate::process::{root, step};
use crate::report::{Failure, Tally, complain};

/// How much of an input that broke something is told.
const SHOWN_BYTES: usize = 2_000;

/// Runs all targets, or the one named.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["seconds", "target"])?;
    let seconds: u32 = arguments.value("seconds", 10)?;
    let targets = match arguments.text("target") {
        Some(target) => vec![target.to_owned()],
        None => targets()?,
    };
    if targets.is_empty() {
        return Err(Failure::new("fuzz/fuzz_targets holds no target"));
    }
    install()?;
    let mut tally = Tally::default();
    for target in targets {
        let (corpus, seeds) = (format!("corpus/{target}"), format!("seeds/{target}"));
        std::fs::create_dir_all(root().join("fuzz").join(&corpus))?;
        std::fs::create_dir_all(root().join("fuzz").join(&seeds))?;
        // Without libFuzzer's line for every new input; what it finds it prints all the same.
        let limits = [
            format!("-max_total_time={seconds}"),
            format!("-malloc_limit_mb={}", malloc_limit_mb(&target)),
            "-verbosity=0".to_owned(),
            "-print_final_stats=1".to_owned(),
        ];
        let mut command = cargo_nightly();
        command.current_dir(root().join("fuzz"));
        command.args(["fuzz", "run", &target, &corpus, &seeds, "--", "-timeout=10"]).args(limits);
        let begun = SystemTime::now();
        let outcome = step(&format!("fuzz {target} for {seconds} s"), &mut command)?;
        if outcome.failed > 0 {
            complain!("fuzz {target}: {}", finding(&root().join("fuzz/artifacts").join(&target), begun));
        }
        tally += outcome;
        println!("to repeat: cargo xtask fuzz --target {target} --seconds {seconds}");
    }
    Ok(tally)
}

/// What a target that failed has left since then: the machine that it ran on may be gone when somebody wants to know.
fn finding(artifacts: &Path, since: SystemTime) -> String {
    let files = std::fs::read_dir(artifacts).into_iter().flatten().flatten();
    let is_new = |path: &PathBuf| {
        path.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified >= since)
    };
    let Some(path) = files.map(|file| file.path()).find(is_new) else {
        return "it left no input: was it built?".to_owned();
    };
    let input = std::fs::read(&path).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().display();
    let shown = &input[..input.len().min(SHOWN_BYTES)];
    format!("{name}, {} bytes: {}", input.len(), shown.escape_ascii())
}

/// The largest allocation a target may make for one input, as `fuzz/README.md` has it.
fn malloc_limit_mb(target: &str) -> u32 {
    if target == "frames" { 8 } else { 64 }
}

/// Names of the files under `fuzz/fuzz_targets`.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| Failure::new(format!("list {}: {error}", folder.display())))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    targets.sort();
    Ok(targets)
}

/// Cargo of the nightly toolchain, whatever `rust-toolchain.toml` says.
fn cargo_nightly() -> Command {
    let mut command = Command::new("cargo");
    // The cargo that runs us has set these to the pinned toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("RUSTDOC");
    command.arg("+nightly").current_dir(root());
    command
}

/// Makes sure that `cargo +nightly fuzz` works.
fn install() -> Result<(), Failure> {
    let probe =
        cargo_nightly().args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let nightly = cargo_nightly().arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !nightly.is_ok_and(|status| status.success()) {
        let toolchain = ["toolchain", "install", "nightly", "--profile", "minimal"];
        step("install the nightly toolchain", Command::new("rustup").args(toolchain))?;
    }
    let installed = step("install cargo-fuzz", cargo_nightly().args(["install", "--locked", "cargo-fuzz"]))?;
    if installed.failed == 0 { Ok(()) } else { Err(Failure::new("cargo-fuzz could not be installed")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::fresh_folder;

    #[test]
    fn what_a_target_left_is_told_and_nothing_older() {
        let artifacts = fresh_folder("fuzz-finding").unwrap();
        assert_eq!(
            finding(&artifacts.join("absent"), SystemTime::UNIX_EPOCH),
            "it left no input: was it built?"
        );
        std::fs::write(artifacts.join("crash-1"), b"a\n\xff").unwrap();
        assert_eq!(finding(&artifacts, SystemTime::UNIX_EPOCH), "crash-1, 3 bytes: a\\n\\xff");
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(finding(&artifacts, later), "it left no input: was it built?");
    }
}
