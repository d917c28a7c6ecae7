//! `TRACING ON` and `SHOW SESSION`: how the server worked on a statement, in cqlsh's columns.
//!
//! A first and a last row come from the session, the rest are its events. Times are UTC, where stock cqlsh
//! shows those of the machine it runs on.

use std::io::{self, Write};
use std::time::Duration;

use client::Row;
use types::CqlType;
use uuid::Uuid;

use super::display::Page;
use super::shell::{Shell, ShellError};
use crate::values::{self, Style, calendar};

/// A session is asked for so often before we give up: it is written last.
const TRIES: u32 = 20;
const WAIT: Duration = Duration::from_millis(50);
/// Between the epoch of version 1 UUIDs (1582) and that of Unix, in units of 100 ns.
const UUID_EPOCH_TICKS: i64 = 0x01b2_1dd2_1381_4000;

/// Prints the trace of a statement that was just run.
pub(super) fn print(shell: &mut Shell, id: Option<Uuid>, out: &mut impl Write) -> Result<(), ShellError> {
    let Some(id) = id else {
        return Err(ShellError::Command("the server did not trace the statement".into()));
    };
    for _ in 0..TRIES {
        if write_session(shell, id, out)? {
            return Ok(());
        }
        std::thread::sleep(WAIT);
    }
    Err(ShellError::Command(format!("Unable to fetch query trace {id}")))
}

/// `SHOW SESSION <id>`.
pub(super) fn show(shell: &mut Shell, id: Uuid) -> Result<(), ShellError> {
    match write_session(shell, id, &mut io::stdout().lock())? {
        true => Ok(()),
        false => Err(ShellError::Command(format!("Session {id} wasn't found."))),
    }
}

/// Writes a session if it is there and over.
fn write_session(shell: &mut Shell, id: Uuid, out: &mut impl Write) -> Result<bool, ShellError> {
    let sessions = format!(
        "SELECT request, started_at, coordinator, duration, client FROM system_traces.sessions \
         WHERE session_id = {id}"
    );
    let sessions = shell.connection.query(&sessions)?.rows()?;
    let Some(session) = sessions.rows.first().and_then(Session::of) else { return Ok(false) };
    let events = format!(
        "SELECT event_id, activity, thread, source, source_elapsed FROM system_traces.events \
         WHERE session_id = {id}"
    );
    let events = shell.connection.query(&events)?.rows()?;
    let names = ["activity", "timestamp", "source", "source_elapsed", "client"].map(str::to_owned);
    let mut rows = vec![session.first()];
    rows.extend(events.rows.iter().map(|row| event(row, &session.client)));
    rows.push(session.last());
    writeln!(out, "\nTracing session: {id}\n")?;
    Page { names: names.into(), rows }.write_table(out, true)?;
    writeln!(out)?;
    Ok(true)
}

/// What frames the events.
struct Session {
    request: String,
    started_millis: i64,
    coordinator: String,
    duration_micros: i32,
    client: String,
}

impl Session {
    /// None while the duration is not known: then it is not over.
    fn of(row: &Row) -> Option<Session> {
        let [request, started, coordinator, duration, client] = row.as_slice() else { return None };
        Some(Session {
            request: text(request.as_deref(), &CqlType::Text),
            started_millis: number(started.as_deref())?,
            coordinator: text(coordinator.as_deref(), &CqlType::Inet),
            duration_micros: i32::from_be_bytes(duration.as_deref()?.try_into().ok()?),
            client: text(client.as_deref(), &CqlType::Inet),
        })
    }

    fn first(&self) -> Vec<String> {
        self.row(&self.request, 0)
    }

    fn last(&self) -> Vec<String> {
        self.row("Request complete", self.duration_micros)
    }

    fn row(&self, activity: &str, elapsed_micros: i32) -> Vec<String> {
        let micros = self.started_millis.saturating_mul(1_000).saturating_add(i64::from(elapsed_micros));
        vec![
            activity.to_owned(),
            timestamp(micros),
            self.coordinator.clone(),
            elapsed_micros.to_string(),
            self.client.clone(),
        ]
    }
}

fn event(row: &Row, client: &str) -> Vec<String> {
    let cell = |index: usize| row.get(index).and_then(|cell| cell.as_deref());
    let micros = cell(0).and_then(|id| Uuid::from_slice(id).ok()).map(unix_micros);
    vec![
        format!("{} [{}]", text(cell(1), &CqlType::Text), text(cell(2), &CqlType::Text)),
        micros.map_or_else(|| "null".to_owned(), timestamp),
        text(cell(3), &CqlType::Inet),
        text(cell(4), &CqlType::Int),
        client.to_owned(),
    ]
}

fn text(cell: Option<&[u8]>, cql_type: &CqlType) -> String {
    cell.map_or_else(|| "null".to_owned(), |cell| values::format(cql_type, cell, Style::Screen))
}

fn number(cell: Option<&[u8]>) -> Option<i64> {
    Some(i64::from_be_bytes(cell?.try_into().ok()?))
}

/// Microseconds since 1970 of a version 1 UUID.
fn unix_micros(id: Uuid) -> i64 {
    let (low, middle, high, _) = id.as_fields();
    let ticks = (i64::from(high & 0x0fff) << 48) | (i64::from(middle) << 32) | i64::from(low);
    (ticks - UUID_EPOCH_TICKS) / 10
}

/// `2026-11-21 16:00:00.123456`, as Python prints a time.
fn timestamp(micros: i64) -> String {
    let (days, day_millis) = calendar::split_millis(micros.div_euclid(1_000));
    let date = calendar::date(days).unwrap_or_default();
    format!("{date} {}.{:06}", calendar::clock(day_millis), micros.rem_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn times_are_printed_as_python_prints_them() {
        assert_eq!(timestamp(1_363_345_020_000_007), "2013-03-15 10:57:00.000007");
        // The example of RFC 4122's successor: 2022-02-22 19:22:22 UTC.
        let id = Uuid::parse_str("C232AB00-9414-11EC-B3C8-9F6BDECED846").unwrap();
        assert_eq!(timestamp(unix_micros(id)), "2022-02-22 19:22:22.000000");
    }

    #[test]
    fn a_session_has_a_first_and_a_last_row_once_it_is_over() {
        let cell = |bytes: &[u8]| Some(Bytes::copy_from_slice(bytes));
        let mut row = vec![
            cell(b"Execute CQL3 query"),
            cell(&1_363_345_020_000_i64.to_be_bytes()),
            cell(&[127, 0, 0, 1]),
            None,
            cell(&[127, 0, 0, 2]),
        ];
        assert!(Session::of(&row).is_none());
        row[3] = cell(&1_234_i32.to_be_bytes());
        let session = Session::of(&row).unwrap();
        let expected = ["Execute CQL3 query", "2013-03-15 10:57:00.000000", "127.0.0.1", "0", "127.0.0.2"];
        assert_eq!(session.first(), expected);
        let expected = ["Request complete", "2013-03-15 10:57:00.001234", "127.0.0.1", "1234", "127.0.0.2"];
        assert_eq!(session.last(), expected);
    }
}
