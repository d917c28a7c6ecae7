//! A few questions with their answers, and how to go on from there.

use std::io::{self, Write};
use std::net::SocketAddr;

use client::Connection;
use protocol::{Consistency, QueryParameters};

use super::DemoError;
use crate::cqlsh::write_table;

/// What a newcomer may want to see.
const QUERIES: &[&str] = &[
    "SELECT count(*) FROM nycflights.flights",
    "SELECT name FROM nycflights.airlines WHERE carrier = 'UA'",
    "SELECT sched_dep_time, carrier, flight, dest, dep_delay FROM nycflights.flights \
     WHERE origin = 'JFK' AND month = 7 AND day = 4 LIMIT 5",
    "SELECT time_hour, temp, wind_speed, visib FROM nycflights.weather \
     WHERE origin = 'LGA' AND month = 12 ORDER BY time_hour DESC LIMIT 3",
    "SELECT manufacturer, model, year, seats FROM nycflights.planes WHERE tailnum = 'N14228'",
];

/// Asks and prints.
pub(super) fn show(connection: &mut Connection) -> Result<(), DemoError> {
    let mut out = io::stdout().lock();
    for query in QUERIES {
        let parameters = QueryParameters { page_size: Some(100), ..QueryParameters::at(Consistency::One) };
        let rows = connection.query_with(query, parameters)?.rows()?;
        writeln!(out, "\ncqlsh> {query};")?;
        write_table(&mut out, &rows)?;
    }
    Ok(())
}

/// The last words; the node goes on.
pub(super) fn tell_how_to_connect(address: SocketAddr) -> Result<(), DemoError> {
    let mut out = io::stdout().lock();
    let program = std::env::args().next().unwrap_or_else(|| "peristyle".to_owned());
    let (host, port) = (address.ip(), address.port());
    writeln!(out, "\nThe node goes on serving. To ask it yourself:\n")?;
    writeln!(out, "  {program} cqlsh {host} {port} -k nycflights")?;
    writeln!(out, "  pip install cqlsh && cqlsh {host} {port} -k nycflights")?;
    writeln!(out, "  pip install cassandra-driver; then in Python:")?;
    writeln!(out, "    from cassandra.cluster import Cluster")?;
    writeln!(out, "    session = Cluster(['{host}'], port={port}).connect('nycflights')")?;
    writeln!(out, "    session.execute(\"SELECT name FROM airlines WHERE carrier = 'UA'\").one()")?;
    writeln!(out, "\nCtrl-C stops it; the data stays.")?;
    Ok(())
}
