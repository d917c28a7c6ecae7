//! Plays a script against a server and puts its answers in our words.

use super::{Item, Script, ScriptError, Statement, Values};
use crate::measure::replicated_keyspace;
use crate::report::Failure;
use crate::wire::answer::{Column, Metadata, Prepared, Rows};
use crate::wire::{Answer, Connection, Request, Response, WireError, value};

const PROTOCOL_DEFAULT: u8 = 5;
/// A script's pages are few; more means a server that never ends.
const PAGE_COUNT_MAX: usize = 1000;

/// Cassandra warns of this with whatever statement it meets first that is not cached: not a property
/// of the statement, so not recorded.
const WARNING_ONCE: &str = "`USE <keyspace>` with prepared statements";

/// Does to nodes of a ring what words say.
pub(crate) type Hurt = Box<dyn Fn(&[String]) -> Result<(), Failure>>;

/// Plays scripts against one server.
pub(crate) struct Player {
    address: String,
    replica_count: u64,
    hurt: Hurt,
}

impl Player {
    /// A player for the server at `address`.
    pub(crate) fn new(address: &str) -> Player {
        let hurt = |_: &[String]| Err(Failure::new("it is a script for a ring"));
        Player::of_ring(address, 1, Box::new(hurt))
    }

    /// A player for a node of a ring, with so many replicas of each row.
    pub(crate) fn of_ring(address: &str, replica_count: u64, hurt: Hurt) -> Player {
        Player { address: address.to_owned(), replica_count, hurt }
    }

    /// Plays all statements in a keyspace of their own; `heard` gets each with its new answer.
    ///
    /// # Errors
    /// Only when the connection breaks: an error answer is an answer.
    pub(crate) fn play(
        &self,
        keyspace: &str,
        script: &mut Script,
        mut heard: impl FnMut(&mut Statement, Vec<String>),
    ) -> Result<(), ScriptError> {
        let at = |line: usize| move |source| ScriptError::Play { line, source };
        let mut connection = self.connect(PROTOCOL_DEFAULT, None).map_err(at(0))?;
        for text in [
            format!("DROP KEYSPACE IF EXISTS {keyspace}"),
            replicated_keyspace(keyspace, self.replica_count),
            format!("USE {keyspace}"),
        ] {
            connection.query(&text, &Request::default()).map_err(at(0))?;
        }
        for item in &mut script.items {
            match item {
                Item::Text(_) => {}
                Item::Protocol(_, version) => {
                    connection = self.connect(*version, Some(keyspace)).map_err(at(0))?;
                }
                Item::Ring(text, words) => {
                    let wrong = |failure: Failure| ScriptError::Ring {
                        text: text.clone(),
                        what: failure.to_string(),
                    };
                    (self.hurt)(words).map_err(wrong)?;
                }
                Item::Statement(statement) => match ask(&mut connection, statement) {
                    Ok(lines) => heard(statement, lines),
                    Err(error) => {
                        let lines = vec![format!("no answer: {error}")];
                        heard(statement, lines);
                        connection =
                            self.connect(PROTOCOL_DEFAULT, Some(keyspace)).map_err(at(statement.line))?;
                    }
                },
            }
        }
        let drop = format!("DROP KEYSPACE IF EXISTS {keyspace}");
        connection.query(&drop, &Request::default()).map_err(at(0))?;
        Ok(())
    }

    fn connect(&self, version: u8, keyspace: Option<&str>) -> Result<Connection, WireError> {
        let mut connection = Connection::open(&self.address, version)?;
        if let Some(keyspace) = keyspace {
            connection.query(&format!("USE {keyspace}"), &Request::default())?;
        }
        Ok(connection)
    }
}

fn ask(connection: &mut Connection, statement: &Statement) -> Result<Vec<String>, WireError> {
    let text = statement.text.trim_end().trim_end_matches(';');
    if statement.values == Values::Query {
        return pages(statement, |request| connection.query(text, request));
    }
    let response = connection.prepare(text, statement.request.keyspace.as_deref())?;
    let mut lines = answer_lines(&response, &statement.mask);
    if let (Answer::Prepared(prepared), Values::Execute) = (&response.answer, statement.values) {
        let (id, result_id) = (&prepared.id, &prepared.result_id);
        // The keyspace went with PREPARE; EXECUTE must not repeat it.
        let request = Request { keyspace: None, ..statement.request.clone() };
        let statement = Statement { request, ..shallow(statement) };
        lines.extend(pages(&statement, |request| connection.execute(id, result_id, request))?);
    }
    Ok(lines)
}

fn shallow(statement: &Statement) -> Statement {
    Statement {
        line: statement.line,
        directives: Vec::new(),
        text: String::new(),
        request: Request::default(),
        values: statement.values,
        mask: statement.mask.clone(),
        answer: Vec::new(),
    }
}

fn pages(
    statement: &Statement,
    mut send: impl FnMut(&Request) -> Result<Response, WireError>,
) -> Result<Vec<String>, WireError> {
    let mut request = statement.request.clone();
    let mut lines = Vec::new();
    for _ in 0..PAGE_COUNT_MAX {
        let response = send(&request)?;
        lines.extend(answer_lines(&response, &statement.mask));
        let state = match response.answer {
            Answer::Rows(Rows { metadata: Metadata { paging_state, .. }, .. }) => paging_state,
            _ => None,
        };
        if state.is_none() {
            break;
        }
        lines.push("next page".to_owned());
        request.paging_state = state;
    }
    Ok(lines)
}

/// An answer in the lines that a script keeps.
pub(crate) fn answer_lines(response: &Response, mask: &[String]) -> Vec<String> {
    let mut lines = match &response.answer {
        Answer::Void => vec!["void".to_owned()],
        Answer::Ready => vec!["ready".to_owned()],
        Answer::Supported => vec!["supported".to_owned()],
        Answer::SetKeyspace(keyspace) => vec![format!("keyspace {keyspace}")],
        Answer::SchemaChange { change, target, name } => vec![format!("{change} {target} {name}")],
        Answer::Error { code, message, detail } => vec![format!("error {code:#06x}: {message}{detail}")],
        Answer::Prepared(prepared) => prepared_lines(prepared),
        Answer::Rows(rows) => row_lines(rows, mask),
    };
    let warnings = response.warnings.iter().filter(|warning| !warning.starts_with(WARNING_ONCE));
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    // A value or message of several lines becomes several lines.
    lines.iter().flat_map(|line| line.split('\n')).map(|line| line.trim_end().to_owned()).collect()
}

fn prepared_lines(prepared: &Prepared) -> Vec<String> {
    let indexes: Vec<String> = prepared.partition_key_indexes.iter().map(u16::to_string).collect();
    vec![
        format!("prepared {}", value::blob(&prepared.id)),
        format!("binds {}", header(&prepared.binds.columns)),
        format!("partition key [{}]", indexes.join(", ")),
        format!("answers {}", header(&prepared.result.columns)),
    ]
}

fn row_lines(rows: &Rows, mask: &[String]) -> Vec<String> {
    let columns = &rows.metadata.columns;
    let mut lines = vec![header(columns)];
    for row in &rows.rows {
        let values = columns.iter().zip(row).map(|(column, bytes)| match bytes {
            Some(_) if mask.contains(&column.name) => "*".to_owned(),
            bytes => value::literal(&column.kind, bytes.as_deref()),
        });
        lines.push(values.collect::<Vec<_>>().join(" | "));
    }
    lines
}

fn header(columns: &[Column]) -> String {
    let Some(first) = columns.first() else { return "no columns".to_owned() };
    let same_table = columns.iter().all(|column| column.table == first.table);
    let specs = columns.iter().map(|column| match same_table {
        true => format!("{} {}", column.name, column.kind),
        false => format!("{}.{} {}", column.table, column.name, column.kind),
    });
    let specs = specs.collect::<Vec<_>>().join(" | ");
    if same_table { format!("{}: {specs}", first.table) } else { specs }
}
