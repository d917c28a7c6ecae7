//! Load for the measuring commands, and the servers that set the limit: `cargo xtask limits` and others.
//!
//! A client that does not dominate: one event loop per thread, requests encoded from parts made before,
//! answers recognised by their headers. Native protocol v4 over loopback, prepared statements only. It
//! shares no code with the server, so a mistake there is not repeated here.
//!
//! ```text
//!   load fill    make the table of a statement and write its rows
//!   load drive   closed loop: so many connections, so many requests in flight on each
//!   load open    open loop: so many requests a second, come what may
//!   load echo    a server with no database: every request is answered with so many bytes
//!   load replay  a proxy that learns the answer to one statement and replays it from then on
//! ```
//!
//! Words are `name=value`; each command's file lists its own. What a client measured is printed as one
//! JSON object.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]
#![allow(clippy::disallowed_methods, reason = "a tool lives outside the simulated world")]

mod drive;
mod echo;
mod fill;
mod frame;
mod histogram;
mod keys;
mod link;
mod murmur;
mod open;
mod process;
mod replay;
mod route;
mod rows;
mod serve;
mod statement;
mod words;

use std::process::ExitCode;

use words::Words;

/// Any failure, in words: a tool for other tools.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = Words::parse(arguments).and_then(|words| match command.as_str() {
        "fill" => fill::run(&words),
        "drive" => drive::run(&words),
        "open" => open::run(&words),
        "echo" => echo::run(&words),
        "replay" => replay::run(&words),
        _ => Err("load fill | drive | open | echo | replay, then name=value".into()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load {command}: {error}");
            ExitCode::FAILURE
        }
    }
}
