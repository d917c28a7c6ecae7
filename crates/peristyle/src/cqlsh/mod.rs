//! `peristyle cqlsh`: the shell people know, without Python.
//!
//! ```text
//!   statements   cuts what was typed into statements
//!   shell        where we are: connection, keyspace, settings; runs one statement
//!   commands     what the shell does itself: CONSISTENCY, SOURCE, EXPAND …
//!   results      rows as a table, JSON or CSV, page by page
//!   describe     DESCRIBE, answered by the server, laid out here
//!   copy         COPY TO and FROM
//!   trace        TRACING ON and SHOW SESSION
//! ```
//!
//! `DESCRIBE` and everything that is CQL goes to the server as typed.

mod commands;
mod copy;
mod describe;
mod display;
mod errors;
mod interactive;
mod results;
mod shell;
mod statements;
mod trace;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use client::{ClientError, ConnectOptions};

pub(crate) use errors::with_causes;
pub(crate) use results::write_table;
use shell::{Flow, Shell};
use statements::Statements;

const DEFAULT_PORT: u16 = 9042;

/// How to connect and what to do.
#[derive(Args, Debug)]
pub(crate) struct CqlshArguments {
    /// Host to connect to; CQLSH_HOST or 127.0.0.1 when there is none
    host: Option<String>,
    /// Port to connect to; CQLSH_PORT or 9042 when there is none
    port: Option<u16>,
    /// Execute the statement(s) and quit
    #[arg(short, long, value_name = "STATEMENT")]
    execute: Option<String>,
    /// Execute statements from FILE, then exit
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How to print rows
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Begin with USE of this keyspace
    #[arg(short, long)]
    keyspace: Option<String>,
    /// Authenticate as this user
    #[arg(short, long)]
    username: Option<String>,
    /// Authenticate with this password
    #[arg(short, long, requires = "username")]
    password: Option<String>,
    /// Native protocol version (3, 4 or 5)
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(3..=5))]
    protocol_version: u8,
    /// Seconds to wait for the connection
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    connect_timeout: u64,
    /// Seconds to wait for an answer; 0 waits for ever
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    request_timeout: u64,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table, as cqlsh draws it
    Table,
    /// One JSON object per row and line
    Json,
    /// CSV with a header, as COPY TO writes it
    Csv,
}

/// Where statements come from.
enum Input<'a> {
    Text(&'a str),
    File(&'a Path),
    Pipe,
    Terminal,
}

/// Runs the shell. Exit codes are cqlsh's: 1 when there is no connection, 2 when a statement failed.
pub(crate) fn run(arguments: &CqlshArguments) -> ExitCode {
    let (host, port) = match address(arguments, |name| std::env::var(name).ok()) {
        Ok(address) => address,
        Err(what) => {
            eprintln!("cqlsh: {what}");
            return ExitCode::from(1);
        }
    };
    let mut shell = match connect(arguments, (&host, port)) {
        Ok(shell) => shell,
        Err(error) => {
            eprintln!("Connection error: ({host}:{port}) {}", errors::with_causes(&error));
            return ExitCode::from(1);
        }
    };
    let input = match (&arguments.execute, &arguments.file) {
        (Some(text), _) => Input::Text(text),
        (None, Some(path)) => Input::File(path),
        (None, None) if std::io::stdin().is_terminal() => Input::Terminal,
        (None, None) => Input::Pipe,
    };
    let outcome = match input {
        Input::Text(text) => run_all(&mut shell, "<stdin>", text.as_bytes()),
        Input::Pipe => run_all(&mut shell, "<stdin>", std::io::stdin().lock()),
        Input::File(path) => shell.source(path).map(|_| ()),
        Input::Terminal => {
            interactive::run(&mut shell);
            return ExitCode::SUCCESS;
        }
    };
    if let Err(error) = outcome {
        shell.report(&error.to_string());
    }
    if shell.failure_count() > 0 { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Host and port: as given, else as the environment says.
fn address(
    arguments: &CqlshArguments,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(String, u16), String> {
    let host = arguments.host.clone().or_else(|| variable("CQLSH_HOST").filter(|host| !host.is_empty()));
    let port = match (arguments.port, variable("CQLSH_PORT").filter(|port| !port.is_empty())) {
        (Some(port), _) => port,
        (None, Some(text)) => text.parse().map_err(|_| format!("CQLSH_PORT: {text} is no port"))?,
        (None, None) => DEFAULT_PORT,
    };
    Ok((host.unwrap_or_else(|| "127.0.0.1".to_owned()), port))
}

fn connect(arguments: &CqlshArguments, address: (&str, u16)) -> Result<Shell, ClientError> {
    let timeout =
        (arguments.request_timeout > 0).then(|| std::time::Duration::from_secs(arguments.request_timeout));
    let options = ConnectOptions {
        version: protocol::Version::from_number(arguments.protocol_version)
            .unwrap_or(protocol::Version::CURRENT),
        credentials: arguments
            .username
            .clone()
            .map(|user| (user, arguments.password.clone().unwrap_or_default())),
        connect_timeout: std::time::Duration::from_secs(arguments.connect_timeout),
        answer_timeout: timeout,
        ..ConnectOptions::default()
    };
    let mut shell = Shell::open(address, options, arguments.output)?;
    if let Some(keyspace) = &arguments.keyspace {
        shell.use_keyspace(keyspace)?;
    }
    Ok(shell)
}

/// Runs all statements of an input; stops at EXIT. Failures are told with the input's name and line.
pub(crate) fn run_all(shell: &mut Shell, name: &str, input: impl BufRead) -> std::io::Result<()> {
    let mut statements = Statements::default();
    let around = shell.set_location(None);
    for (index, line) in input.lines().enumerate() {
        let complete = statements.add(&line?);
        shell.set_location(Some(format!("{name}:{}:", index + 1)));
        if complete.iter().any(|statement| shell.run(statement) == Flow::Exit) {
            return Ok(());
        }
    }
    if let Some(rest) = statements.take_rest() {
        shell.run(&rest);
    }
    shell.set_location(around);
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        cqlsh: CqlshArguments,
    }

    #[track_caller]
    fn check(words: &[&str], variables: &[(&str, &str)], expected: Result<(&str, u16), &str>) {
        let words = Words::try_parse_from([&["cqlsh"], words].concat()).unwrap();
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        let expected = expected.map(|(host, port)| (host.to_owned(), port)).map_err(str::to_owned);
        assert_eq!(address(&words.cqlsh, variable), expected);
    }

    #[test]
    fn the_address_is_given_or_in_the_environment() {
        let set = [("CQLSH_HOST", "db"), ("CQLSH_PORT", "9999")];
        check(&[], &[], Ok(("127.0.0.1", 9042)));
        check(&[], &set, Ok(("db", 9999)));
        check(&["::1"], &set, Ok(("::1", 9999)));
        check(&["::1", "9043"], &set, Ok(("::1", 9043)));
        check(&[], &[("CQLSH_PORT", "")], Ok(("127.0.0.1", 9042)));
        check(&[], &[("CQLSH_PORT", "many")], Err("CQLSH_PORT: many is no port"));
    }
}
