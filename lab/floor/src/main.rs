//! The floor under a server of CQL: what loopback and the kernel ask for, and nothing else.
//!
//! `floor PORT UPSTREAM` is a proxy in front of a server on this machine. It learns the answer to a statement and gives
//! it to everybody: `cargo xtask limits` and `tail` hold the server behind it against that. Native protocol v4.
//!
//! ```text
//!   replay   learns an answer, replays it, forwards the rest
//!   serve    the loop: reads what is there, answers all of it, sends once
//!   link     a connection in it
//!   frame    headers
//! ```

#![allow(clippy::print_stderr, reason = "a tool for the terminal")]
#![allow(clippy::disallowed_methods, reason = "a tool lives outside the simulated world")]

mod frame;
mod link;
mod replay;
mod serve;

use std::process::ExitCode;

/// Any failure, in words: a tool for other tools.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let ports: Vec<Option<u16>> = std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let outcome = match ports.as_slice() {
        [Some(port), Some(upstream)] => replay::run(*port, *upstream),
        _ => Err("floor PORT UPSTREAM, two ports of this machine".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}
