//! The state of a shell, and running one statement.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;

use client::{Answer, ClientError, ConnectOptions, Connection, ResultRows};
use protocol::{Consistency, Query, QueryParameters, Request, RequestEnvelope, Response, Text};
use types::CqlType;

use super::commands::{self, Command};
use super::results::{self, Printed};
use super::{Output, copy, describe, errors, run_all, trace};

/// Rows per page, as in cqlsh.
pub(crate) const PAGE_SIZE: i32 = 100;
/// `SOURCE` may nest this deep.
const SOURCE_DEPTH_MAX: u32 = 16;

/// What comes after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The next one.
    GoOn,
    /// Nothing.
    Exit,
}

/// What the user has set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) output: Output,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Consistency,
    /// `None`: no paging.
    pub(crate) page_size: Option<i32>,
    pub(crate) is_tracing: bool,
    pub(crate) is_expanded: bool,
}

/// A shell with its connection.
pub(crate) struct Shell {
    pub(crate) connection: Connection,
    options: ConnectOptions,
    address: (String, u16),
    pub(crate) keyspace: Option<String>,
    pub(crate) settings: Settings,
    /// Pages stop for the reader.
    is_interactive: bool,
    source_depth: u32,
    failure_count: u64,
    /// File and line of the statement, as failures are told; none at a terminal.
    location: Option<String>,
}

impl Shell {
    /// Connects.
    pub(crate) fn open(
        address: (&str, u16),
        options: ConnectOptions,
        output: Output,
    ) -> Result<Shell, ClientError> {
        let connection = Connection::open(printed(address), &options)?;
        Ok(Shell {
            connection,
            options,
            address: (address.0.to_owned(), address.1),
            keyspace: None,
            settings: Settings {
                output,
                consistency: Consistency::One,
                serial_consistency: Consistency::Serial,
                page_size: Some(PAGE_SIZE),
                is_tracing: false,
                is_expanded: false,
            },
            is_interactive: false,
            source_depth: 0,
            failure_count: 0,
            location: None,
        })
    }

    /// Whether pages stop for the reader, when rows go to a terminal.
    pub(crate) fn set_interactive(&mut self) {
        self.is_interactive = io::stdout().is_terminal();
    }

    /// Where we are connected to.
    pub(crate) fn address(&self) -> String {
        printed((&self.address.0, self.address.1))
    }

    /// Another connection like ours, in the same keyspace.
    pub(crate) fn another_connection(&self) -> Result<Connection, ClientError> {
        // A long copy must not fail because one answer takes its time.
        let options = ConnectOptions { answer_timeout: None, ..self.options.clone() };
        let mut connection = Connection::open(self.address(), &options)?;
        if let Some(keyspace) = &self.keyspace {
            connection.query(&format!("USE {}", types::quote_if_needed(keyspace)))?;
        }
        Ok(connection)
    }

    /// How many statements failed.
    pub(crate) fn failure_count(&self) -> u64 {
        self.failure_count
    }

    /// Tells of a failure.
    pub(crate) fn report(&mut self, message: &str) {
        self.failure_count += 1;
        eprintln!("{}{message}", self.location.as_deref().unwrap_or_default());
    }

    /// Says where the next statement stands; gives where the last one stood.
    pub(crate) fn set_location(&mut self, location: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.location, location)
    }

    /// `USE`, with the name as the user typed it.
    pub(crate) fn use_keyspace(&mut self, name: &str) -> Result<(), ClientError> {
        let answer = self.connection.query(&format!("USE {name}"))?;
        self.note(&answer);
        Ok(())
    }

    /// Runs one statement or command and prints what comes of it.
    pub(crate) fn run(&mut self, statement: &str) -> Flow {
        let outcome = match commands::parse(statement) {
            Ok(Some(Command::Exit)) => return Flow::Exit,
            Ok(Some(command)) => self.run_command(&command),
            Ok(None) => self.run_cql(statement),
            Err(message) => Err(ShellError::Command(message)),
        };
        match outcome {
            Ok(()) => Flow::GoOn,
            Err(ShellError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Flow::Exit,
            Err(error) => {
                self.report(&error.in_words());
                match error {
                    ShellError::Client(ClientError::Server(_)) => {}
                    ShellError::Client(_) => self.reconnect(),
                    _ => {}
                }
                Flow::GoOn
            }
        }
    }

    /// After a broken connection or an answer that came too late.
    fn reconnect(&mut self) {
        let fresh = Connection::open(self.address(), &self.options);
        if let Ok(connection) = fresh {
            self.connection = connection;
            if let Some(keyspace) = self.keyspace.clone() {
                // It may be gone; then the next statement says so.
                let _ = self.use_keyspace(&types::quote_if_needed(&keyspace));
            }
        }
    }

    fn run_command(&mut self, command: &Command) -> Result<(), ShellError> {
        match command {
            Command::Exit => Ok(()),
            Command::Describe(text) => describe::run(self, text),
            Command::Copy(text) => copy::run(self, text),
            Command::Source(path) => Ok(self.source(path)?),
            Command::Show(what) => self.show(what),
            Command::ShowSession(id) => trace::show(self, *id),
            Command::NotYet(what) => Err(ShellError::Command(format!("{what} is not built yet"))),
            other => {
                let message = commands::apply(other, &mut self.settings);
                Ok(writeln!(io::stdout(), "{message}")?)
            }
        }
    }

    /// Runs the statements of a file.
    pub(crate) fn source(&mut self, path: &Path) -> io::Result<()> {
        if self.source_depth == SOURCE_DEPTH_MAX {
            return Err(io::Error::other(format!("SOURCE nests more than {SOURCE_DEPTH_MAX} files deep")));
        }
        let file = File::open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("Could not open '{}': {error}", path.display()))
        })?;
        self.source_depth += 1;
        let outcome = run_all(self, &path.display().to_string(), BufReader::new(file));
        self.source_depth -= 1;
        outcome
    }

    fn show(&mut self, what: &str) -> Result<(), ShellError> {
        let line = match what {
            "host" => format!("Connected to {} at {}", self.server_facts()?.0, self.address()),
            _ => self.server_facts()?.1,
        };
        Ok(writeln!(io::stdout(), "{line}.")?)
    }

    /// The cluster's name, and a line of versions.
    pub(crate) fn server_facts(&mut self) -> Result<(String, String), ShellError> {
        let query = "SELECT cluster_name, release_version, cql_version FROM system.local";
        let rows = self.connection.query(query)?.rows()?;
        let text = |column: usize| -> String {
            let cell = rows.rows.first().and_then(|row| row.get(column)).cloned().flatten();
            cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        };
        let versions = format!(
            "[cqlsh of Peristyle {} | Cassandra {} | CQL spec {} | Native protocol v{}]",
            env!("CARGO_PKG_VERSION"),
            text(1),
            text(2),
            self.connection.version().number(),
        );
        Ok((text(0), versions))
    }

    /// Sends a statement and prints its pages.
    fn run_cql(&mut self, statement: &str) -> Result<(), ShellError> {
        let mut out = io::stdout().lock();
        let mut printed = Printed::default();
        let mut paging_state = None;
        loop {
            let answer = self.ask(statement, paging_state.take())?;
            self.note(&answer);
            let (tracing_id, warnings) = (answer.envelope.tracing_id, answer.envelope.warnings.clone());
            if let Response::Rows(rows) = &answer.envelope.response {
                let rows = ResultRows::of(rows)?;
                results::write_page(&mut out, &rows, &self.settings, self.is_interactive, &mut printed)?;
                paging_state = rows.paging_state;
            }
            if paging_state.is_none() {
                results::finish(&mut out, &self.settings, self.is_interactive, &printed)?;
            }
            results::write_warnings(&mut out, &warnings)?;
            if self.settings.is_tracing {
                trace::print(self, tracing_id, &mut out)?;
            }
            if paging_state.is_none() || (self.is_interactive && !wait_for_reader()?) {
                return Ok(out.flush()?);
            }
        }
    }

    /// One page of a statement at the present settings.
    pub(crate) fn ask(
        &mut self,
        statement: &str,
        paging_state: Option<bytes::Bytes>,
    ) -> Result<Answer, ClientError> {
        let parameters = QueryParameters {
            page_size: self.settings.page_size,
            paging_state,
            serial_consistency: Some(self.settings.serial_consistency),
            ..QueryParameters::at(self.settings.consistency)
        };
        let query = Query { query: Text::from(statement), parameters };
        let mut envelope = RequestEnvelope::from(Request::Query(query));
        envelope.tracing = self.settings.is_tracing;
        self.connection.call(envelope)?.checked()
    }

    /// Follows what an answer changes.
    fn note(&mut self, answer: &Answer) {
        if let Response::SetKeyspace(keyspace) = &answer.envelope.response {
            self.keyspace = Some(keyspace.clone());
        }
    }

    /// All rows of a query as text, for the shell's own use.
    pub(crate) fn texts(&mut self, statement: &str) -> Result<(Vec<String>, Vec<Vec<String>>), ClientError> {
        let mut texts = Vec::new();
        let mut paging_state = None;
        loop {
            let rows = self.ask(statement, paging_state.take())?.rows()?;
            let names: Vec<String> = rows.columns().iter().map(|column| column.name.to_string()).collect();
            let types: Vec<CqlType> = rows.columns().iter().map(|column| column.cql_type.clone()).collect();
            for row in rows.rows {
                let cells = row.iter().zip(&types).map(|(cell, cql_type)| {
                    cell.as_ref().map(|cell| crate::values::format(cql_type, cell, crate::values::Style::Csv))
                });
                texts.push(cells.map(Option::unwrap_or_default).collect());
            }
            match rows.paging_state {
                Some(next) => paging_state = Some(next),
                None => return Ok((names, texts)),
            }
        }
    }
}

fn printed((host, port): (&str, u16)) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// `---MORE---`, until Enter; `q` or the end of input stops.
fn wait_for_reader() -> io::Result<bool> {
    let mut out = io::stdout().lock();
    write!(out, "---MORE---")?;
    out.flush()?;
    let mut line = String::new();
    Ok(io::stdin().read_line(&mut line)? > 0 && !line.trim().eq_ignore_ascii_case("q"))
}

/// Why a statement or command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    /// The server or the connection.
    #[error("the statement failed")]
    Client(#[from] ClientError),
    /// The command makes no sense, in words for the user.
    #[error("{0}")]
    Command(String),
    /// A file or the terminal.
    #[error("{0}")]
    Output(#[from] io::Error),
}

impl ShellError {
    fn in_words(&self) -> String {
        match self {
            ShellError::Client(error) => errors::of_client(error),
            error => error.to_string(),
        }
    }
}
