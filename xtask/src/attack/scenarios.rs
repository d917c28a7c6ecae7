//! What attackers do, each in a function that is called again and again until the attack is over.

use std::time::Duration;

use super::arena::Arena;
use super::{crowd, grammar, hostile, internode};
use crate::crash::Dice;
use crate::measure::{size_bytes, statements};
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

/// A way to attack.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// How many attack at once.
    pub(super) worker_count: u64,
    /// Further words for `peristyle serve`.
    pub(super) words: &'static [&'static str],
    pub(super) is_crowd: bool,
    /// It is about where nodes listen for each other, so that it takes a ring.
    pub(super) is_internode: bool,
    /// Whether the nodes of a ring share a secret.
    pub(super) has_secret: bool,
    /// Fills the node with what the attack is about.
    pub(super) prepare: fn(&Arena) -> Result<(), Failure>,
    /// Attacks once, and gives how many requests that were.
    pub(super) act: fn(&Arena, &mut Dice) -> Result<u64, Failure>,
}

const PLAIN: Scenario = Scenario {
    name: "",
    worker_count: 1,
    words: &[],
    is_crowd: false,
    is_internode: false,
    has_secret: false,
    prepare: |_| Ok(()),
    act: |_, _| Ok(0),
};

/// All there are.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "answers", worker_count: 2, prepare: large_partition, act: large_answers, ..PLAIN },
    Scenario {
        name: "untaken",
        worker_count: 200,
        prepare: large_partition,
        act: answers_not_taken,
        ..PLAIN
    },
    Scenario {
        name: "prepared",
        worker_count: 2,
        prepare: large_partition,
        act: prepare_without_end,
        ..PLAIN
    },
    Scenario { name: "numbers", worker_count: 2, prepare: extreme_numbers, act: calculate, ..PLAIN },
    Scenario { name: "literals", worker_count: 2, prepare: extreme_numbers, act: long_literal, ..PLAIN },
    Scenario { name: "narrow", worker_count: 1, prepare: wide_rows, act: narrow_pages, ..PLAIN },
    Scenario { name: "inserts", worker_count: 8, prepare: large_partition, act: insert_pipelined, ..PLAIN },
    Scenario { name: "cold", worker_count: 4, prepare: more_than_memory, act: cold_reads, ..PLAIN },
    Scenario { name: "stalls", worker_count: 64, act: hostile::stall, ..PLAIN },
    Scenario {
        name: "states",
        worker_count: 2,
        prepare: hostile::numbered_rows,
        act: hostile::forge_states,
        ..PLAIN
    },
    Scenario { name: "floods", worker_count: 4, act: hostile::flood, ..PLAIN },
    Scenario {
        name: "grammar",
        worker_count: 4,
        prepare: grammar::tables,
        act: grammar::statements,
        ..PLAIN
    },
    Scenario {
        name: "crowd",
        words: crowd::WORDS,
        is_crowd: true,
        prepare: crowd::fill,
        act: crowd::act,
        ..PLAIN
    },
    Scenario {
        name: "strangers",
        worker_count: 16,
        is_internode: true,
        has_secret: true,
        act: internode::stranger,
        ..PLAIN
    },
    Scenario { name: "silent", worker_count: 8, is_internode: true, act: internode::silent, ..PLAIN },
    Scenario { name: "impostors", worker_count: 16, is_internode: true, act: internode::impostor, ..PLAIN },
];

/// How long an attacker waits for a server that neither takes nor gives.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that does not wait for ever.
pub(super) fn connect(arena: &Arena) -> Result<Connection, Failure> {
    let connection = Connection::open(&arena.address, 4)?;
    connection.set_patience(PATIENCE)?;
    Ok(connection)
}

pub(super) fn page_of(rows: i32) -> Request {
    Request { page_size: Some(rows), ..Request::default() }
}

/// One partition of 150 rows of 100 KB.
fn large_partition(arena: &Arena) -> Result<(), Failure> {
    let value = "x".repeat(100_000);
    let mut texts = vec![
        arena.keyspace("a"),
        "CREATE TABLE a.t (p int, c int, v text, PRIMARY KEY (p, c))".to_owned(),
        "CREATE TABLE a.small (p int PRIMARY KEY, v int)".to_owned(),
    ];
    texts.extend((0..150).map(|c| format!("INSERT INTO a.t (p, c, v) VALUES (1, {c}, '{value}')")));
    statements(&arena.address, &texts)
}

/// Four hundred requests for all of it at once, in pages and without, and the answers are read or not.
fn large_answers(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let request = if dice.between(0, 2) == 0 { page_of(5000) } else { Request::default() };
    let mut connection = connect(arena)?;
    for stream in 0..400 {
        connection.send_query(stream, "SELECT * FROM a.t WHERE p = 1", &request)?;
    }
    if dice.between(0, 2) == 0 {
        arena.sleep(Duration::from_secs(3));
        return Ok(400);
    }
    for read in 0..400 {
        if arena.is_over() {
            return Ok(read);
        }
        connection.receive()?;
    }
    Ok(400)
}

/// Five hundred requests for 1.5 MB each, and nobody takes the answers.
fn answers_not_taken(arena: &Arena, _: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    for stream in 0..500 {
        connection.send_query(stream, "SELECT * FROM a.t WHERE p = 1 LIMIT 15", &page_of(5000))?;
    }
    arena.sleep(Duration::from_secs(15));
    Ok(500)
}

/// Statements that differ in a number: small ones, large ones, and as large as may be.
fn prepare_without_end(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    for count in 0..50 {
        let number = dice.between(0, 1 << 40);
        let text = match dice.between(0, 100) {
            0 => format!("SELECT v FROM a.t WHERE p IN ({}) AND c = {number}", markers(60_000)),
            1..60 => {
                format!("SELECT v FROM a.t WHERE p IN ({}) AND c = {}", markers(1_000), number & 0xfff_ffff)
            }
            _ => format!("SELECT v FROM a.small WHERE p = ? /* {number} */"),
        };
        connection.prepare(&text, None)?;
        if arena.is_over() {
            return Ok(count);
        }
    }
    Ok(50)
}

fn markers(count: usize) -> String {
    vec!["?"; count].join(",")
}

/// Numbers that take years to spell out.
fn extreme_numbers(arena: &Arena) -> Result<(), Failure> {
    let mut texts = vec![
        arena.keyspace("a"),
        "CREATE TABLE a.n (k int PRIMARY KEY, dc decimal, v varint, t text)".to_owned(),
    ];
    let decimals =
        ["1e999999999", "1e-999999999", "1e2147483647", "-7.5e-2147483640", "123456789e1000000", "0.1"];
    texts.extend(decimals.iter().enumerate().map(|(k, decimal)| {
        let varint = "9".repeat(100 * (k + 1) * (k + 1));
        format!("INSERT INTO a.n (k, dc, v, t) VALUES ({k}, {decimal}, {varint}, '{varint}')")
    }));
    statements(&arena.address, &texts)
}

/// Everything that can be done with a number.
fn calculate(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    const EXPRESSIONS: &[&str] = &[
        "dc + 1",
        "dc - 1",
        "dc * dc",
        "dc / 3",
        "dc % 3",
        "1 / dc",
        "sum(dc)",
        "avg(dc)",
        "max(dc)",
        "round(dc)",
        "CAST(dc AS varint)",
        "CAST(dc AS text)",
        "CAST(dc AS bigint)",
        "CAST(dc AS double)",
        "toJson(dc)",
        "-dc",
        "abs(dc)",
        "exp(dc)",
        "log(dc)",
        "v * v",
        "v + 1",
        "v / 7",
        "v % 7",
        "sum(v)",
        "avg(v)",
        "exp(v)",
        "CAST(v AS decimal)",
        "CAST(v AS text)",
        "CAST(v AS double)",
        "dc + v",
        "v * dc",
        "JSON dc",
        "dc",
    ];
    let mut connection = connect(arena)?;
    for count in 0..20 {
        let expression = EXPRESSIONS[dice.between(0, EXPRESSIONS.len() as u64) as usize];
        let condition = match dice.between(0, 3) {
            0 => String::new(),
            1 => " WHERE dc > 1e999999998 ALLOW FILTERING".to_owned(),
            _ => format!(" WHERE k = {}", dice.between(0, 6)),
        };
        connection.query(&format!("SELECT {expression} FROM a.n{condition}"), &Request::default())?;
        if arena.is_over() {
            return Ok(count);
        }
    }
    Ok(20)
}

/// An integer, a decimal, a blob or a string as long as a frame may be, or nearly.
fn long_literal(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    let frame_bytes = largest_request_bytes(&mut connection)? - 4096;
    let length = (frame_bytes >> dice.between(0, 8)) as usize;
    let literal = match dice.between(0, 6) {
        0 | 1 => ("v", "7".repeat(length)),
        2 => ("dc", format!("0.{}", "3".repeat(length - 2))),
        3 => ("dc", format!("{}e-5", "4".repeat(length - 3))),
        4 => ("v", format!("(varint) '{}'", "5".repeat(length - 12))),
        _ => ("t", format!("'{}'", "t".repeat(length - 2))),
    };
    let text = match dice.between(0, 4) {
        0 => format!("INSERT INTO a.n JSON '{{\"k\": 99, \"v\": {}}}'", "8".repeat(length)),
        _ => format!("INSERT INTO a.n (k, {}) VALUES (100, {})", literal.0, literal.1),
    };
    connection.query(&text, &Request::default())?;
    Ok(1)
}

/// As the node says.
pub(super) fn largest_request_bytes(connection: &mut Connection) -> Result<u64, Failure> {
    let text = "SELECT value FROM system_views.settings WHERE name = 'native_transport_max_frame_size'";
    let Answer::Rows(rows) = connection.query(text, &Request::default())?.answer else {
        return Err(Failure::new("the node does not say how large a request may be".to_owned()));
    };
    let value = rows.rows.into_iter().flatten().flatten().next().unwrap_or_default();
    size_bytes(&String::from_utf8_lossy(&value))
}

/// 6,000 rows of 4 KB.
fn wide_rows(arena: &Arena) -> Result<(), Failure> {
    let value = "x".repeat(4_000);
    let mut texts = vec![arena.keyspace("a"), "CREATE TABLE a.w (p int PRIMARY KEY, v text)".to_owned()];
    texts.extend((0..6_000).map(|p| format!("INSERT INTO a.w (p, v) VALUES ({p}, '{value}')")));
    statements(&arena.address, &texts)
}

/// All keys of them, in the pages that drivers ask for: all are there, and no answer is refused.
fn narrow_pages(arena: &Arena, _: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    let (mut row_count, mut page_count) = (0, 0);
    let mut request = page_of(5000);
    loop {
        match connection.query("SELECT p FROM a.w", &request)?.answer {
            Answer::Rows(rows) => {
                row_count += rows.rows.len();
                page_count += 1;
                request.paging_state = rows.metadata.paging_state;
            }
            other => {
                arena.wrong(format!("SELECT p FROM a.w: {other:?}"));
                return Ok(page_count);
            }
        }
        if request.paging_state.is_none() {
            break;
        }
    }
    if row_count != 6_000 {
        arena.wrong(format!("{row_count} rows of 6000 were read"));
    }
    Ok(page_count)
}

/// A thousand INSERTs at once, of 10 KB each.
fn insert_pipelined(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    let value = "y".repeat(10_000);
    for stream in 0..1_000u16 {
        let (p, c) = (dice.between(2, 100), dice.between(0, 1 << 20));
        let text = format!("INSERT INTO a.t (p, c, v) VALUES ({p}, {c}, '{value}')");
        connection.send_query(stream, &text, &Request::default())?;
        if stream >= 100 {
            connection.receive()?;
        }
        if arena.is_over() {
            break;
        }
    }
    Ok(1_000)
}

/// Twice as much as the node may have in memory, in rows of 10 KB.
fn more_than_memory(arena: &Arena) -> Result<(), Failure> {
    statements(
        &arena.address,
        &[arena.keyspace("a"), "CREATE TABLE a.c (p int PRIMARY KEY, v blob)".to_owned()],
    )?;
    let mut connection = Connection::open(&arena.address, 4)?;
    let value = "5a".repeat(10_000);
    for p in 0..cold_rows(arena) {
        let text = format!("INSERT INTO a.c (p, v) VALUES ({p}, 0x{value})");
        connection.send_query((p % 100) as u16, &text, &Request::default())?;
        if p >= 100 {
            connection.receive()?;
        }
    }
    (0..100).try_for_each(|_| connection.receive().map(|_| ()))?;
    Ok(())
}

fn cold_rows(arena: &Arena) -> u64 {
    2 * arena.memory_bytes / 10_000
}

/// Reads of rows that no cache has, many at once.
fn cold_reads(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut connection = connect(arena)?;
    for stream in 0..1_000u16 {
        let text = format!("SELECT v FROM a.c WHERE p = {}", dice.between(0, cold_rows(arena)));
        connection.send_query(stream, &text, &Request::default())?;
        if stream >= 64 {
            connection.receive()?;
        }
        if arena.is_over() {
            break;
        }
    }
    Ok(1_000)
}
