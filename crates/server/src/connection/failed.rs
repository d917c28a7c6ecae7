//! Requests that failed through no fault of the client's: a line in the log each, with the statement, so that
//! whoever runs the node learns of a damaged file even if nobody reads the client's log. The log says where the file
//! is; the client is told its name alone.
//!
//! The statement's text goes there, not the values bound to it, which are not ours to tell.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;

use protocol::{ErrorKind, ErrorResponse, Request};
use query::{Engine, QueryError, TombstoneFailure};
use storage::Layout;

use super::ShardServer;
use crate::convert;
use crate::listener::ConnectionLimit;

/// So many are logged by a shard within a window; a table that can not be read must not fill the disk.
const LOGGED_MAX: u32 = 10;
const WINDOW_MILLIS: i64 = 10_000;
/// A statement is shown up to this many characters, a batch up to so many statements.
const STATEMENT_CHARS_MAX: usize = 400;
const BATCH_STATEMENTS_MAX: usize = 3;

/// How many lines of one kind were logged of late.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    window_start: Cell<Option<i64>>,
    logged: Cell<u32>,
    left_out: Cell<u64>,
}

impl FailureLog {
    /// May one more be logged now? With how many were left out since the last one.
    pub(super) fn admit(&self, now_millis: i64) -> Option<u64> {
        let is_over = |start: i64| !(start..start.saturating_add(WINDOW_MILLIS)).contains(&now_millis);
        if self.window_start.get().is_none_or(is_over) {
            self.window_start.set(Some(now_millis));
            self.logged.set(0);
        }
        if self.logged.get() >= LOGGED_MAX {
            self.left_out.set(self.left_out.get().saturating_add(1));
            return None;
        }
        self.logged.set(self.logged.get() + 1);
        Some(self.left_out.take())
    }
}

/// Why a request is answered with an error.
pub(super) struct Failure {
    response: ErrorResponse,
    /// Was it cut off by the stop of the node?
    is_stop: bool,
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Failure { is_stop: error == QueryError::ShuttingDown, response: convert::error(error) }
    }
}

impl From<ErrorResponse> for Failure {
    fn from(response: ErrorResponse) -> Self {
        Failure { response, is_stop: false }
    }
}

/// Gives what the client is told of a failure. If it is the node's, it is counted and logged first.
pub(super) fn report(
    server: &ShardServer,
    keyspace: Option<&str>,
    request: &Request,
    failure: Failure,
) -> ErrorResponse {
    let Failure { response: error, is_stop } = failure;
    let is_ours = matches!(
        error.kind,
        ErrorKind::Server
            | ErrorKind::Truncate
            | ErrorKind::ReadFailure { .. }
            | ErrorKind::WriteFailure { .. }
    );
    if is_ours {
        server.clients.count_exception();
    }
    // Those that a stop cuts off are no news: the stop itself is logged.
    if is_ours && !is_stop {
        note(server, keyspace, request, &error);
    }
    // What was refused for want of room may say why: a file could not be written.
    if is_ours || error.kind == ErrorKind::Overloaded {
        let layout = server.tracer.coordinator.layout();
        return ErrorResponse { message: without_places(&error.message, layout), ..error };
    }
    error
}

fn note(server: &ShardServer, keyspace: Option<&str>, request: &Request, error: &ErrorResponse) {
    let now_millis = server.tracer.coordinator.now_millis();
    if let Some(left_out) = server.failures.admit(now_millis) {
        let statement = statement(&server.engine, request);
        let keyspace = keyspace.unwrap_or_default();
        tracing::error!(error = %error.message, %statement, keyspace, left_out, "a statement failed");
    }
}

/// Words about files, with the names of these alone.
fn without_places(words: &str, layout: &Layout) -> String {
    let directories = layout.tables().written().iter().map(PathBuf::as_path).chain([layout.root()]);
    // A directory's name may have blanks in it.
    let words = directories
        .fold(words.to_owned(), |words, directory| words.replace(&format!("{}/", directory.display()), ""));
    let name = |word: &str| word.rsplit('/').find(|part| !part.is_empty()).unwrap_or(word).to_owned();
    words.split(' ').map(name).collect::<Vec<_>>().join(" ")
}

/// Counts and logs a read that ended because of tombstones. Its words show the partition's key: without it nobody
/// finds the table's user.
pub(super) fn note_too_many_tombstones(server: &ShardServer, request: &Request, failure: &TombstoneFailure) {
    server.clients.count_exception();
    let now_millis = server.tracer.coordinator.now_millis();
    if let Some(left_out) = server.failures.admit(now_millis) {
        let statement = statement(&server.engine, request);
        tracing::error!(%statement, left_out, "{}", failure.what);
    }
}

/// Logs that a client is not let in.
pub(crate) fn note_refused_connection(server: &ShardServer, peer: SocketAddr, limit: ConnectionLimit) {
    if let Some(left_out) = server.refused.admit(server.tracer.coordinator.now_millis()) {
        tracing::warn!(%peer, option = limit.option(), left_out, "too many connections, one is refused");
    }
}

/// The text of what was asked.
pub(super) fn statement(engine: &Engine, request: &Request) -> String {
    let prepared = |id: &bytes::Bytes| {
        let known = convert::prepared_id(id).ok().and_then(|id| engine.prepared_text(&id));
        known.unwrap_or_else(|| "(prepared, no longer known)".to_owned())
    };
    match request {
        Request::Query(query) => shortened(query.query.as_str()),
        Request::Prepare(prepare) => shortened(prepare.query.as_str()),
        Request::Execute(execute) => shortened(&prepared(&execute.id)),
        Request::Batch(batch) => {
            let texts = batch.statements.iter().take(BATCH_STATEMENTS_MAX).map(|part| match &part.query {
                protocol::BatchQuery::Text(text) => shortened(text.as_str()),
                protocol::BatchQuery::Prepared(id) => shortened(&prepared(id)),
            });
            let texts = texts.collect::<Vec<_>>().join("; ");
            match batch.statements.len().saturating_sub(BATCH_STATEMENTS_MAX) {
                0 => format!("BATCH: {texts}"),
                more => format!("BATCH: {texts}; and {more} more"),
            }
        }
        _ => String::new(),
    }
}

/// On one line, and no longer than a line may be; of a long text only the start is looked at.
fn shortened(text: &str) -> String {
    let mut line = String::new();
    let mut char_count = 0;
    for char in text.trim().chars() {
        let char = if char.is_whitespace() { ' ' } else { char };
        if char == ' ' && line.ends_with(' ') {
            continue;
        }
        if char_count == STATEMENT_CHARS_MAX {
            line.push('…');
            break;
        }
        line.push(char);
        char_count += 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_are_logged_in_part_and_the_rest_is_counted() {
        let log = FailureLog::default();
        let admitted = (0..25).filter(|second| log.admit(1_000 + second).is_some()).count();
        assert_eq!(admitted, LOGGED_MAX as usize);
        assert_eq!(log.admit(1_000 + WINDOW_MILLIS), Some(15), "a new window tells of those left out");
        assert_eq!(log.admit(1_000 + WINDOW_MILLIS), Some(0));
        assert_eq!(log.admit(0), Some(0), "a clock that goes back begins a new window");
    }

    #[test]
    fn a_client_is_told_the_names_of_files_and_not_where_they_are() {
        let layout = Layout::new("/srv/my data");
        for (words, expected) in [
            (
                "create snapshot: no /srv/my data/data/k/t-1/snapshots/s/da-2-bti-TOC.txt",
                "create snapshot: no da-2-bti-TOC.txt",
            ),
            (
                "link /srv/my data/data/k/t-1/a.db: not found (os error 2)",
                "link a.db: not found (os error 2)",
            ),
            ("read elsewhere/b.db, written to /tmp/c.db", "read b.db, written to c.db"),
            ("list /srv/my data/data: denied", "list data: denied"),
            ("a share of 1 / 2", "a share of 1 / 2"),
        ] {
            assert_eq!(without_places(words, &layout), expected);
        }
    }

    #[test]
    fn a_statement_is_shown_on_one_line_and_in_part() {
        assert_eq!(shortened(" SELECT *\n   FROM k.t\n"), "SELECT * FROM k.t");
        assert_eq!(shortened(&"é".repeat(500)).chars().count(), STATEMENT_CHARS_MAX + 1);
    }
}
