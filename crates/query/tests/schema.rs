//! Statements about the schema, answered as a real Cassandra answered them: the recorded scripts of
//! `tests/cql`, replayed without a server as far as they need none.
//!
//! Left out: statements that read or write rows, those about keyspaces of the system, which this
//! node has none of, and answers that are masked or come in pages.

mod common;

use common::{Session, show, with_session};
use query::{ChangeTarget, ChangeType, QueryError, Response, ResponseKind, SchemaChange};

/// What is not as in Cassandra; each stands in `docs/compatibility.md`.
const DIFFERENT: [&str; 2] = [
    "CREATE TABLE compact (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE;",
    "CREATE TABLE bad (k int PRIMARY KEY) WITH read_repair = 'SOMETIMES';",
];

/// The default compaction of the profile that was recorded, and ours.
const COMPACTION: [&str; 2] = [
    "    AND compaction = {''class'': ''org.apache.cassandra.db.compaction.UnifiedCompactionStrategy'', \
     ''max_sstables_to_compact'': ''64'', ''min_sstable_size'': ''100MiB'', ''scaling_parameters'': ''T4'', \
     ''sstable_growth'': ''0.3333333333333333'', ''target_sstable_size'': ''1GiB''}",
    "    AND compaction = {''class'': ''org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy'', \
     ''max_threshold'': ''32'', ''min_threshold'': ''4''}",
];

struct Recorded {
    statement: String,
    is_plain: bool,
    answer: Vec<String>,
}

fn parse(script: &str) -> Vec<Recorded> {
    let mut recorded: Vec<Recorded> = Vec::new();
    let (mut statement, mut is_plain) = (String::new(), true);
    for line in script.lines() {
        if let Some(answer) = line.strip_prefix('>') {
            if let Some(last) = recorded.last_mut() {
                last.answer.push(answer.strip_prefix(' ').unwrap_or(answer).to_owned());
            }
            continue;
        }
        if statement.is_empty() && (line.is_empty() || line.starts_with("--")) {
            is_plain &= !line.starts_with("--@");
            continue;
        }
        statement.push_str(line);
        if line.ends_with(';') {
            let statement = std::mem::take(&mut statement);
            recorded.push(Recorded { statement, is_plain, answer: Vec::new() });
            is_plain = true;
        } else {
            statement.push('\n');
        }
    }
    recorded
}

fn is_of_the_schema(statement: &str) -> bool {
    let word = statement.split_whitespace().next().unwrap_or_default().to_uppercase();
    matches!(word.as_str(), "CREATE" | "ALTER" | "DROP" | "DESCRIBE" | "DESC" | "USE")
        && !statement.contains("system")
        && !statement.starts_with("DESCRIBE CLUSTER")
}

fn change(change: &SchemaChange) -> String {
    let kind = match change.change {
        ChangeType::Created => "CREATED",
        ChangeType::Updated => "UPDATED",
        ChangeType::Dropped => "DROPPED",
    };
    match change.target {
        ChangeTarget::Keyspace => format!("{kind} KEYSPACE {}", change.keyspace),
        ChangeTarget::Table => format!("{kind} TABLE {}.{}", change.keyspace, change.name),
        ChangeTarget::Type => format!("{kind} TYPE {}.{}", change.keyspace, change.name),
        _ => format!("{kind} {:?}", change.target),
    }
}

fn answer(answer: Result<Response, QueryError>) -> Vec<String> {
    let (kind, warnings) = match answer {
        Ok(Response { kind, warnings, .. }) => (kind, warnings),
        Err(error) => {
            let place = match &error {
                QueryError::AlreadyExists { keyspace, table, .. } => format!(" [{keyspace}.{table}]"),
                _ => String::new(),
            };
            return vec![comparable(&format!("error 0x{:04x}: {error}{place}", error.code()))];
        }
    };
    let mut lines: Vec<String> = match kind {
        ResponseKind::Void => vec!["void".to_owned()],
        ResponseKind::SetKeyspace(keyspace) => vec![format!("keyspace {keyspace}")],
        ResponseKind::SchemaChange(told) => vec![change(&told)],
        ResponseKind::Rows(rows) => {
            let column = |column: &query::ColumnSpec| format!("{} {}", column.name, column.cql_type);
            let columns: Vec<String> = rows.columns.iter().map(column).collect();
            let (keyspace, table) = (&rows.columns[0].keyspace, &rows.columns[0].table);
            let head = format!("{keyspace}.{table}: {}", columns.join(" | "));
            let rows = show(&rows).join("\n");
            std::iter::once(head).chain(rows.lines().map(str::to_owned)).collect()
        }
    };
    lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

/// The text of a syntax error is the parser's own; of a record only what we can answer.
fn comparable(line: &str) -> String {
    match line.strip_prefix("error 0x2000: line ") {
        Some(_) => "error 0x2000: line".to_owned(),
        None => line.replace(COMPACTION[0], COMPACTION[1]),
    }
}

async fn replay(session: &mut Session, name: &str, script: &str) {
    let keyspace = format!("cql_{name}");
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.run(&format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}")).await;
    session.run(&format!("USE {keyspace}")).await;
    let mut count = 0;
    for recorded in parse(script) {
        let statement = &recorded.statement;
        // What follows is about keyspaces of the system.
        if statement == "USE system;" {
            break;
        }
        if !is_of_the_schema(statement) || DIFFERENT.contains(&statement.as_str()) {
            continue;
        }
        let got = answer(session.send(statement).await);
        let expected: Vec<String> = recorded.answer.iter().map(|line| comparable(line)).collect();
        if recorded.is_plain {
            count += 1;
            assert_eq!(got.join("\n"), expected.join("\n"), "{name}: {statement}");
        }
    }
    assert!(count > 15, "{name}: only {count} statements were replayed");
}

macro_rules! replays {
    ($($test:ident: $name:literal;)*) => {$(
        #[test]
        fn $test() {
            with_session(async |mut session| {
                let script = include_str!(concat!("../../../tests/cql/", $name, ".cql"));
                replay(&mut session, $name, script).await;
            });
        }
    )*};
}

replays! {
    keyspaces_are_changed_as_in_cassandra: "keyspaces";
    tables_are_changed_as_in_cassandra: "tables";
    options_are_kept_as_in_cassandra: "options";
    the_schema_is_described_as_in_cassandra: "describe";
    odd_corners_of_the_schema_are_as_in_cassandra: "schema";
    types_are_understood_as_in_cassandra: "schema_types";
}

#[test]
fn chunks_of_whatever_length_are_described_as_they_were_asked_for() {
    with_session(async |mut session| {
        let compression = "compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 'auto'}";
        session.run(&format!("CREATE TABLE made (k int PRIMARY KEY, v text) WITH {compression}")).await;
        session.run("CREATE TABLE changed (k int PRIMARY KEY, v text)").await;
        session.run(&format!("ALTER TABLE changed WITH {compression}")).await;
        let kept = "compression = {''chunk_length_in_kb'': ''auto'', ''class'': \
                    ''org.apache.cassandra.io.compress.LZ4Compressor''}";
        for table in ["made", "changed"] {
            let rows = session.rows(&format!("DESCRIBE TABLE {table}")).await;
            assert!(rows[0].contains(kept), "{rows:?}");
            session.run(&format!("INSERT INTO {table} (k, v) VALUES (1, 'one')")).await;
            session.flush().await;
            assert_eq!(session.rows(&format!("SELECT v FROM {table} WHERE k = 1")).await, ["'one'"]);
        }
        session
            .run("ALTER TABLE made WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 64}")
            .await;
        let rows = session.rows("DESCRIBE TABLE made").await;
        assert!(rows[0].contains("''chunk_length_in_kb'': ''64''"), "{rows:?}");
    });
}

#[test]
fn what_comes_into_memory_after_a_start_is_described_where_it_says_something() {
    with_session(async |mut session| {
        session
            .run("CREATE TABLE t (k int PRIMARY KEY) WITH caching = {'keys': 'ALL', 'prefetch': 'hot'}")
            .await;
        let described = async |session: &mut Session| session.rows("DESCRIBE TABLE t").await[0].clone();
        let kept = "caching = {''keys'': ''ALL'', ''prefetch'': ''HOT'', ''rows_per_partition'': ''NONE''}";
        assert!(described(&mut session).await.contains(kept));
        session.run("ALTER TABLE t WITH caching = {'keys': 'ALL', 'prefetch': 'NONE'}").await;
        let kept = "caching = {''keys'': ''ALL'', ''rows_per_partition'': ''NONE''}";
        assert!(described(&mut session).await.contains(kept));
        let refused = session.send("ALTER TABLE t WITH caching = {'prefetch': 'some'}").await;
        assert!(refused.is_err_and(|error| error.to_string().contains("'prefetch'")));
    });
}

#[test]
fn a_changed_type_reads_what_was_written_before() {
    with_session(async |mut session| {
        session.run("CREATE TYPE point (x int, y int)").await;
        session.run("CREATE TABLE t (k int PRIMARY KEY, f frozen<point>, l list<frozen<point>>)").await;
        session.run("ALTER TYPE point ADD z int").await;
        session.run("ALTER TYPE point RENAME x TO xx").await;
        let expected = "'CREATE TYPE ks.point (\n    xx int,\n    y int,\n    z int\n);'";
        let rows = session.rows("DESCRIBE TYPE point").await;
        assert_eq!(rows, [format!("'ks' | 'type' | 'point' | {expected}")]);
    });
}
