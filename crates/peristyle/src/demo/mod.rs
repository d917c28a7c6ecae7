//! `peristyle demo`: a node with real data in it, for a first look.
//!
//! Starts a node, loads every flight that left New York in 2013 over CQL (as any client would), asks
//! a few questions, tells how to connect, and keeps serving. A second start finds the data.

mod load;
mod tables;
mod tour;

use std::net::SocketAddr;
use std::process::ExitCode;

use client::{ClientError, ConnectOptions, Connection};

use crate::cqlsh::with_causes;
use crate::serve::{self, ServeArguments};

/// Serves, and loads in a thread beside once the node is ready.
pub(crate) fn run(arguments: &ServeArguments) -> ExitCode {
    serve::run(arguments, |address| {
        std::thread::spawn(move || {
            if let Err(error) = fill_and_show(address) {
                // The node writes out what it has; the next start loads the rest.
                if serve::is_stopping() {
                    return;
                }
                eprintln!("demo: {}", with_causes(&error));
                std::process::exit(1);
            }
        });
    })
}

/// Everything the demo does as a client.
fn fill_and_show(address: SocketAddr) -> Result<(), DemoError> {
    let mut connection = Connection::open(address, &ConnectOptions::default())?;
    for statement in tables::SCHEMA {
        connection.query(statement)?;
    }
    let mut missing = Vec::new();
    for data in tables::DATA {
        if !load::is_loaded(&mut connection, data)? {
            missing.push(data);
        }
    }
    if !missing.is_empty() {
        let row_count: u64 = missing.iter().map(|data| data.row_count).sum();
        println!("loading… {row_count} rows into {} tables of nycflights", missing.len());
    }
    for data in missing {
        load::load(&mut connection, data)?;
    }
    tour::show(&mut connection)?;
    tour::tell_how_to_connect(address)?;
    Ok(())
}

/// Why the demo stopped.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    /// The node refused something.
    #[error("talk to the node")]
    Client(#[from] ClientError),
    /// The data in the binary is not what we think, or the terminal is gone.
    #[error("read the data or write to the terminal")]
    Io(#[from] std::io::Error),
    /// A field of the data is no value of its column.
    #[error("line {line} of {name}")]
    Value { name: &'static str, line: u64, source: crate::values::ParseError },
    /// The data has a column that the table lacks.
    #[error("{name} has {got} columns, its table takes {expected}")]
    Columns { name: &'static str, got: usize, expected: usize },
}
