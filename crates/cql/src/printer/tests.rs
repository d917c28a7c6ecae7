//! Tests of the printer: what is printed parses to the same tree.

use super::maybe_quote;
use crate::{parse_statement, parse_type};

/// Parses, prints, parses again.
fn check_round_trip(text: &str) {
    let first = parse_statement(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = first.to_string();
    let second =
        parse_statement(&printed).unwrap_or_else(|error| panic!("{text} printed {printed}: {error}"));
    assert_eq!(first, second, "{text} printed {printed}");
    assert_eq!(second.to_string(), printed);
}

#[test]
fn names_are_quoted_only_where_they_must_be() {
    for (name, expected) in [
        ("a", "a"),
        ("a_1", "a_1"),
        ("key", "key"),
        ("timestamp", "timestamp"),
        ("A", "\"A\""),
        ("1a", "\"1a\""),
        ("", "\"\""),
        ("a b", "\"a b\""),
        ("a\"b", "\"a\"\"b\""),
        ("select", "\"select\""),
        ("table", "\"table\""),
        ("true", "\"true\""),
    ] {
        assert_eq!(maybe_quote(name), expected);
    }
}

#[test]
fn types_print_as_they_parse() {
    for text in [
        "int",
        "varchar",
        "list<int>",
        "set<frozen<list<text>>>",
        "map<text, frozen<map<int, uuid>>>",
        "tuple<int, text, frozen<my_type>>",
        "vector<float, 3>",
        "ks.my_type",
        "\"My Type\"",
        "\"int\"",
        "\"byte\"",
    ] {
        assert_eq!(parse_type(text).map(|parsed| parsed.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn every_statement_of_the_corpus_prints_and_parses_again() {
    let corpus = include_str!("../../tests/data/statements.cql");
    let mut count = 0;
    for line in corpus.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        check_round_trip(line);
        count += 1;
    }
    assert!(count > 200, "the corpus has only {count} statements");
}

#[test]
fn odd_texts_survive() {
    check_round_trip("INSERT INTO t (\"A b\", \"\") VALUES ('it''s', $$it's$$)");
    check_round_trip("SELECT \"json\" - a, \"distinct\", \"as\" AS \"as\" FROM \"Select\".\"T\"");
    check_round_trip("SELECT - 5, - -5, a - -5, -(a + b) * c FROM t");
    check_round_trip("SELECT -1 .a, 2 .b - c.d, 1.5 .e, (f) 3 .g, (f) (g) 4 .h, (f) i.j FROM t");
    check_round_trip("SELECT \"key\"(a), token(b), \"expr\"(c) FROM t");
    check_round_trip("DESCRIBE \"cluster\"");
    check_round_trip("UPDATE t USING TTL ? AND TIMESTAMP ? SET a = ? WHERE k = ?");
}
