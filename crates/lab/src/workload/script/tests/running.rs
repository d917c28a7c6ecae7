//! What threads of a script do, with answers made by hand.

use bytes::BytesMut;
use protocol::{Rows, put_cell};

use super::*;
use crate::workload::{Answer, Operation, Request, Step};

const PART: Part = Part { index: 0, count: 1, seed: 1 };

/// An answer of one row.
fn row(cells: &[Option<&[u8]>]) -> Rows {
    let mut out = BytesMut::new();
    cells.iter().for_each(|cell| put_cell(&mut out, *cell));
    Rows {
        metadata: Default::default(),
        no_metadata: true,
        new_metadata_id: None,
        paging_state: None,
        row_count: 1,
        cells: out.freeze(),
    }
}

fn begun(operations: &mut dyn Operations) -> Option<(Operation, usize, Vec<Vec<u8>>)> {
    let mut buffer = BytesMut::new();
    let mut request = Request::new(&mut buffer);
    let operation = operations.begin(&mut request)?;
    Some((operation, request.statement, request.apart()))
}

fn taken(operations: &mut dyn Operations, operation: &mut Operation, answer: Answer<'_>) -> Step {
    operations.take(operation, answer, &mut Request::new(&mut BytesMut::new()))
}

const CHECKED: &str = r#"
name = "checked"
about = "two columns"
rows-per-partition = 4
tables = ["CREATE TABLE {keyspace}.t (k text, c int, a text, b blob, PRIMARY KEY (k, c))"]

[values]
k = { kind = "template", text = "key-{partition}" }
c = { kind = "row" }
v = { kind = "derived", of = ["k", "c"], bytes = [20, 30] }

[load]
statement = "INSERT INTO {keyspace}.t (k, c, a, b) VALUES (?, ?, ?, ?)"
values = ["k", "c", "v", "v"]

[[operation]]
name = "read"
statement = "SELECT k, c, a, b FROM {keyspace}.t WHERE k = ? AND c = ?"
values = ["k", "c"]
rows = 1
"#;

fn checked() -> Script {
    let columns = [("k", CqlType::Text), ("c", CqlType::Int), ("a", CqlType::Text), ("b", CqlType::Blob)];
    let mut script = Script::of(&plan(CHECKED, 40), CHECKED).unwrap();
    script.learn(&[prepared(&columns, 1, &[]), prepared(&columns[..2], 1, &columns)]).unwrap();
    script
}

const BATCHED: &str = r#"
name = "batched"
about = "three rows in a request"
partition = "sequence"
tables = ["CREATE TABLE {keyspace}.t (id bigint PRIMARY KEY, title text)"]

[values]
id = { kind = "partition" }
title = { kind = "derived", of = ["id"], bytes = 20 }

[[operation]]
name = "batch"
statement = "INSERT INTO {keyspace}.t (id, title) VALUES (?, ?)"
values = ["id", "title"]
times = 3

[[operation]]
name = "in"
statement = "SELECT id, title FROM {keyspace}.t WHERE id IN ({times})"
values = ["id"]
rows = 3
times = 3
"#;

#[test]
fn a_request_of_several_partitions_has_values_of_each() {
    let mut script = Script::of(&plan(BATCHED, 7), BATCHED).unwrap();
    let insert = "INSERT INTO ks.t (id, title) VALUES (?, ?); ";
    let expected = [
        format!("BEGIN BATCH {}APPLY BATCH", insert.repeat(3)),
        "SELECT id, title FROM ks.t WHERE id IN (?, ?, ?)".to_owned(),
    ];
    assert_eq!(script.statements("ks"), expected);
    let unlogged = BATCHED.replacen("times = 3", "times = 3\nbatch = 'unlogged'", 1);
    let unlogged = Script::of(&plan(&unlogged, 7), &unlogged).unwrap();
    assert!(unlogged.statements("ks")[0].starts_with("BEGIN UNLOGGED BATCH INSERT"));
    let columns = [("id", CqlType::Bigint), ("title", CqlType::Text)];
    let of_batch: Vec<_> = columns.iter().cycle().take(6).cloned().collect();
    let of_in = vec![columns[0].clone(); 3];
    script.learn(&[prepared(&of_batch, 1, &[]), prepared(&of_in, 0, &columns)]).unwrap();
    let mut operations = script.operations(PART);
    let mut ids = [Vec::new(), Vec::new()];
    while ids.iter().any(|ids| ids.len() < 9) {
        let (_, statement, values) = begun(&mut *operations).unwrap();
        let step = if statement == 0 { 2 } else { 1 };
        assert_eq!(values.len(), 3 * step);
        let id = |value: &Vec<u8>| i64::from_be_bytes(value.as_slice().try_into().unwrap());
        ids[statement].extend(values.iter().step_by(step).map(id));
    }
    for ids in ids {
        assert_eq!(ids[..9], [0, 1, 2, 3, 4, 5, 6, 0, 1], "one behind the other, and again from the first");
    }
}

#[test]
fn every_row_is_loaded_once_by_some_thread() {
    let script = checked();
    let mut keys = Vec::new();
    for index in 0..3 {
        let mut loader = script.loader(Part { index, count: 3, seed: 1 });
        while let Some((_, statement, values)) = begun(&mut *loader) {
            assert_eq!(statement, 0);
            keys.push((values[0].clone(), values[1].clone()));
        }
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 40);
}

#[test]
fn a_value_of_another_row_or_column_or_length_is_found() {
    let script = checked();
    let mut loader = script.loader(PART);
    let [one, other] = [(); 2].map(|()| begun(&mut *loader).unwrap().2);
    let mut operations = script.operations(PART);
    let mut verdict = |cells: [&[u8]; 4]| {
        let (mut operation, statement, _) = begun(&mut *operations).unwrap();
        assert_eq!(statement, 1);
        taken(&mut *operations, &mut operation, Answer::Rows(&row(&cells.map(Some))))
    };
    assert_eq!(verdict([&one[0], &one[1], &one[2], &one[3]]), Step::Done);
    let wrong = Step::Wrong("a of key-0, 0x00000001 is not what was written there".to_owned());
    let (two, three) = (other[2].as_slice(), other[3].as_slice());
    assert_eq!(verdict([&other[0], &other[1], two, three]), Step::Done);
    assert_eq!(verdict([&other[0], &other[1], &one[2], three]), wrong);
    assert_eq!(verdict([&other[0], &other[1], three, three]), wrong);
    assert_eq!(verdict([&other[0], &other[1], &two[..19], three]), wrong);
}

#[test]
fn a_wrong_number_of_rows_is_found() {
    let script = checked();
    let mut operations = script.operations(PART);
    let (mut operation, _, _) = begun(&mut *operations).unwrap();
    let none = Rows { row_count: 0, ..row(&[]) };
    let verdict = taken(&mut *operations, &mut operation, Answer::Rows(&none));
    assert_eq!(verdict, Step::Wrong("there are 0 rows, and 1 must be".to_owned()));
    let verdict = taken(&mut *operations, &mut operation, Answer::Done);
    assert_eq!(verdict, Step::Wrong("rows were asked for, and none came".to_owned()));
}

#[test]
fn a_condition_expects_what_was_applied_or_what_an_answer_told() {
    let (_, text) = BUNDLED.iter().find(|(name, _)| *name == "tlp-lwt").unwrap();
    let mut plan = plan(text, 1);
    plan.settings.insert("reads".to_owned(), "0".to_owned());
    let mut script = Script::of(&plan, text).unwrap();
    let (id, value) = (("id", CqlType::Text), ("value", CqlType::Int));
    let update = prepared(&[value.clone(), id.clone(), value.clone()], 0, &[]);
    script.learn(&[update, prepared(&[id, value], 1, &[])]).unwrap();
    assert_eq!(script.kinds(), ["update", "update (not applied)"]);
    let mut operations = script.operations(PART);
    let number = |value: i32| value.to_be_bytes().to_vec();
    let mut once = |expected: (usize, Vec<Vec<u8>>), answer: &[Option<&[u8]>]| {
        let (mut operation, statement, values) = begun(&mut *operations).unwrap();
        assert_eq!((statement, values), expected);
        assert_eq!(taken(&mut *operations, &mut operation, Answer::Rows(&row(answer))), Step::Done);
        operation.kind
    };
    let id = b"001.0.0".to_vec();
    let insert = (1, vec![id.clone(), number(0)]);
    let update = |next: i32, held: i32| (0, vec![number(next), id.clone(), number(held)]);
    assert_eq!(once(insert.clone(), &[Some(&[1])]), 0);
    assert_eq!(once(update(1, 0), &[Some(&[1])]), 0);
    assert_eq!(once(update(2, 1), &[Some(&[0]), Some(&number(41))]), 1);
    assert_eq!(once(update(42, 41), &[Some(&[1])]), 0);
    assert_eq!(once(update(43, 42), &[Some(&[0])]), 1, "the row is gone");
    assert_eq!(once(insert, &[Some(&[0]), Some(&id), Some(&number(7))]), 1);
    assert_eq!(once(update(1, 0), &[Some(&[0]), Some(&number(7))]), 1);
    assert_eq!(once(update(8, 7), &[Some(&[1])]), 0);
}

#[test]
fn statements_take_turns() {
    let text = CHECKED.replace("statement = \"SELECT", "[[operation.turns]]\nstatement = \"SELECT");
    let text = format!(
        "{text}\n[[operation.turns]]\nstatement = \"SELECT c FROM {{keyspace}}.t WHERE k = ?\"\nvalues = [\"k\"]\n"
    );
    let (k, c, v) = (("k", CqlType::Text), ("c", CqlType::Int), ("a", CqlType::Text));
    let mut script = Script::of(&plan(&text, 40), &text).unwrap();
    let load = prepared(&[k.clone(), c.clone(), v, ("b", CqlType::Blob)], 1, &[]);
    let both = prepared(&[k.clone(), c], 1, &[]);
    script.learn(&[load, both, prepared(&[k], 1, &[])]).unwrap();
    let mut operations = script.operations(PART);
    let turns: Vec<usize> = (0..4).map(|_| begun(&mut *operations).unwrap().1).collect();
    assert_eq!(turns, [1, 2, 1, 2]);
}

#[test]
fn an_entry_of_a_map_is_checked_as_the_whole_map_is() {
    let text = Arc::new(CqlType::Text);
    let map = CqlType::Map { key: text.clone(), value: text, frozen: false };
    let (id, data) = (("id", CqlType::Text), ("data", map));
    let (key, value) = (("key(data)", CqlType::Text), ("value(data)", CqlType::Text));
    let all = [
        prepared(&[id.clone(), data.clone()], 1, &[]),
        prepared(&[key, value, id.clone()], 0, &[]),
        prepared(std::slice::from_ref(&id), 1, &[id.clone(), data]),
    ];
    let of_weights = |writes: &str, reads: &str| {
        let settings =
            [("writes", writes), ("reads", reads)].map(|(name, one)| (name.to_owned(), one.to_owned()));
        let (_, text) = BUNDLED.iter().find(|(name, _)| *name == "tlp-maps").unwrap();
        let plan = Plan { settings: settings.into_iter().collect(), ..plan(text, 1) };
        Script::of(&plan, text).unwrap()
    };
    let mut script = of_weights("1000000", "1");
    script.learn(&all).unwrap();
    let mut operations = script.operations(PART);
    let (_, statement, written) = begun(&mut *operations).unwrap();
    assert_eq!(statement, 1);
    let mut reader = of_weights("1", "1000000");
    reader.learn(&all).unwrap();
    let mut operations = reader.operations(PART);
    let mut verdict = |id: &[u8]| {
        let (mut operation, statement, _) = begun(&mut *operations).unwrap();
        assert_eq!(statement, 2);
        let map = types::encoding::collection(1, [Some(written[0].as_slice()), Some(&written[1])]);
        taken(&mut *operations, &mut operation, Answer::Rows(&row(&[Some(id), Some(&map)])))
    };
    assert_eq!(verdict(&written[2]), Step::Done);
    assert_eq!(verdict(b"001.0.1"), Step::Wrong("data of 001.0.1 is not what was written there".to_owned()));
}

const COUNTED: &str = r#"
name = "counted"
about = "increments"
tables = ["CREATE TABLE {keyspace}.t (id bigint PRIMARY KEY, value counter)"]

[values]
id = { kind = "partition" }

[[operation]]
name = "add"
statement = "UPDATE {keyspace}.t SET value = value + 1 WHERE id = ?"
values = ["id"]

[audit]
counts = "add"
statement = "SELECT value FROM {keyspace}.t WHERE id = ?"
values = ["id"]
"#;

/// Reads all counters, of which each is answered with the same; the last one is not there.
fn read_all(script: &Script, value: i64) {
    let mut auditor = script.auditor(PART).unwrap();
    let mut ids = Vec::new();
    while let Some((mut operation, statement, values)) = begun(&mut *auditor) {
        assert_eq!(statement, 1, "the audit is prepared last");
        ids.push(values[0].clone());
        let answer = if ids.len() == 3 { row(&[None]) } else { row(&[Some(&value.to_be_bytes())]) };
        assert_eq!(taken(&mut *auditor, &mut operation, Answer::Rows(&answer)), Step::Done);
    }
    assert_eq!(ids.len(), 3);
}

#[test]
fn counters_are_held_against_what_was_acknowledged() {
    let mut script = Script::of(&plan(COUNTED, 3), COUNTED).unwrap();
    let id = [("id", CqlType::Bigint)];
    script.learn(&[prepared(&id, 1, &[]), prepared(&id, 1, &[("value", CqlType::Counter)])]).unwrap();
    read_all(&script, 5);
    script.begin_audit();
    let mut operations = script.operations(PART);
    for index in 0..3 {
        let (mut operation, ..) = begun(&mut *operations).unwrap();
        match index {
            0 => operations.fail(&operation),
            _ => assert_eq!(taken(&mut *operations, &mut operation, Answer::Done), Step::Done),
        }
    }
    let fault_at = |value: i64| {
        read_all(&script, value);
        let audit = script.audited().unwrap();
        assert_eq!((audit.acknowledged_count, audit.doubtful_count), (2, 1));
        audit.fault()
    };
    assert_eq!(fault_at(6), None, "both that were acknowledged");
    assert!(fault_at(5).unwrap().contains("grew by 0, where 2 increments"), "both are lost");
    assert!(fault_at(7).unwrap().contains("grew by 4"), "more than was ever asked for");
}

const TURNS: &str = r#"
name = "turns"
about = "two tables, written one after the other"
partition = "sequence"
tables = ["CREATE TABLE {keyspace}.t (id bigint PRIMARY KEY)"]

[values]
id = { kind = "partition" }

[[operation]]
name = "write"

[[operation.turns]]
statement = "INSERT INTO {keyspace}.t1 (id) VALUES (?)"
values = ["id"]

[[operation.turns]]
statement = "INSERT INTO {keyspace}.t2 (id) VALUES (?)"
values = ["id"]
"#;

#[test]
fn a_sequence_goes_on_once_all_had_their_turn() {
    let mut script = Script::of(&plan(TURNS, 10), TURNS).unwrap();
    let id = [("id", CqlType::Bigint)];
    script.learn(&[prepared(&id, 1, &[]), prepared(&id, 1, &[])]).unwrap();
    let mut operations = script.operations(PART);
    let written: Vec<(usize, i64)> = (0..6)
        .map(|_| {
            let (_, statement, values) = begun(&mut *operations).unwrap();
            (statement, i64::from_be_bytes(values[0].as_slice().try_into().unwrap()))
        })
        .collect();
    assert_eq!(written, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
}

#[test]
fn more_partitions_than_there_are_can_not_be_asked_for_at_once() {
    let refused = Script::of(&plan(BATCHED, 2), BATCHED).err().unwrap().to_string();
    assert!(refused.contains("asks for 3 partitions at once, and there are 2"), "{refused}");
}
