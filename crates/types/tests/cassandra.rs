//! What Cassandra's own classes answered (see `vectors/Vectors.java`), held against our answers.

mod common;

use common::{bytes, clustering_of, lines, of, text};
use std::cmp::Ordering;
use types::byte_comparable::{self, ClusteringBoundKind, Form};
use types::duration::Duration;
use types::marshal;
use types::{CqlType, Token, TypeError, blob};

const VALUES: &str = include_str!("vectors/values.tsv");

fn shown(form: &[u8]) -> String {
    format!("x{}", blob::format(form))
}

#[test]
fn tokens_and_decorated_keys_are_cassandras() {
    for line in lines(include_str!("vectors/tokens.tsv")) {
        let key = bytes(line[0]).expect("a key");
        let token = Token::of(&key);
        assert_eq!(token.0.to_string(), line[1], "token of {}", line[0]);
        let mut form = Vec::new();
        byte_comparable::decorated_key(token, &key, &mut form);
        assert_eq!(shown(&form), line[2], "form of {}", line[0]);
    }
}

#[test]
fn type_names_are_cassandras() {
    for line in lines(include_str!("vectors/names.tsv")) {
        let parsed = marshal::parse(line[0]).unwrap_or_else(|error| panic!("{}: {error}", line[0]));
        assert_eq!(parsed, marshal::parse(line[1]).expect("Cassandra's own name"), "{}", line[0]);
        if line[2] != "-" {
            let of = of(line[0]);
            assert_eq!(of.to_marshal(), line[1]);
            assert_eq!(of.to_string(), line[2]);
        }
    }
}

#[test]
fn values_compare_as_in_cassandra() {
    let mut previous: Option<(&str, Vec<u8>)> = None;
    for line in lines(VALUES) {
        let value = bytes(line[1]).expect("a value");
        if let Some((name, previous)) = previous.filter(|(name, _)| *name == line[0]) {
            let order = match of(name).compare(&previous, &value) {
                Ordering::Less => "-1",
                Ordering::Equal => "0",
                Ordering::Greater => "1",
            };
            assert_eq!(order, line[2], "{name}: {} before {}", shown(&previous), line[1]);
        }
        previous = Some((line[0], value));
    }
}

/// In each of these is a NaN with a sign. Cassandra compares it as the greatest, and its form is the least.
const NANS_WITH_A_SIGN: &[&str] = &["xe18bc4c5ffac606f4b800000"];

#[test]
fn byte_comparable_forms_are_cassandras() {
    for line in lines(VALUES) {
        let mut form = Vec::new();
        let value = bytes(line[1]).expect("a value");
        let answer = match byte_comparable::encode_value(&of(line[0]), &value, &mut form) {
            Form::Absent => "-".to_owned(),
            Form::Written => shown(&form),
        };
        match NANS_WITH_A_SIGN.contains(&line[1]) {
            true => assert_ne!(answer, line[3], "{} {}", line[0], line[1]),
            false => assert_eq!(answer, line[3], "{} {}", line[0], line[1]),
        }
    }
}

#[test]
fn clustering_forms_are_cassandras() {
    for line in lines(include_str!("vectors/clusterings.tsv")) {
        let types: Vec<(CqlType, bool)> = line[0].split(';').map(clustering_of).collect();
        let kind = match line[1] {
            "CLUSTERING" => ClusteringBoundKind::Clustering,
            "EXCL_END_BOUND" | "INCL_START_BOUND" | "EXCL_END_INCL_START_BOUNDARY" => {
                ClusteringBoundKind::Before
            }
            "INCL_END_BOUND" | "EXCL_START_BOUND" | "INCL_END_EXCL_START_BOUNDARY" => {
                ClusteringBoundKind::After
            }
            other => panic!("{other}"),
        };
        let values: Vec<Option<Vec<u8>>> =
            line[2].split(';').filter(|value| !value.is_empty()).map(bytes).collect();
        let mut form = Vec::new();
        byte_comparable::clustering(&types, values.iter().map(Option::as_deref), kind, &mut form);
        assert_eq!(shown(&form), line[3], "{line:?}");
    }
}

#[test]
fn values_are_refused_as_in_cassandra() {
    for line in lines(include_str!("vectors/validate.tsv")) {
        let value = bytes(line[1]).expect("a value");
        let answer = match of(line[0]).validate(&value) {
            Ok(()) => "ok".to_owned(),
            Err(error) => format!("!{error}"),
        };
        // Where Cassandra falls over an unforeseen exception, any refusal will do.
        if line[2].ends_with("Exception") || line[2].ends_with("Error") {
            assert!(answer.starts_with('!'), "{line:?}");
        } else {
            assert_eq!(answer, text(line[2]), "{} {}", line[0], line[1]);
        }
    }
}

#[test]
fn literals_are_written_as_by_cassandra() {
    for line in lines(VALUES) {
        let value = bytes(line[1]).expect("a value");
        let of = of(line[0]);
        assert_eq!(of.to_cql_literal(&value), text(line[4]), "literal of {} {}", line[0], line[1]);
        assert_eq!(of.to_text(&value), text(line[5]), "text of {} {}", line[0], line[1]);
        // Java falls over tuples with fields missing.
        if !line[6].starts_with('!') {
            assert_eq!(of.to_json(Some(&value)), text(line[6]), "JSON of {} {}", line[0], line[1]);
        }
    }
}

#[test]
fn literals_are_read_as_by_cassandra() {
    let mut differences = Vec::new();
    for line in lines(include_str!("vectors/literals.tsv")) {
        let (name, literal, expected) = (line[0], text(line[1]), text(line[2]));
        let answer = match of(name).from_text(&literal, 0) {
            Ok(value) => shown(&value),
            Err(error) => format!("!{error}"),
        };
        // Where Cassandra falls over an unforeseen exception, any refusal will do.
        let unforeseen = expected.ends_with("Exception") || expected.ends_with("Error");
        let same = if unforeseen { answer.starts_with('!') } else { answer == expected };
        if !same {
            differences.push(format!("{name} '{literal}': {answer}, Cassandra {expected}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn floating_point_numbers_have_javas_digits() {
    for line in lines(include_str!("vectors/floats.tsv")) {
        let [double, float] = [line[0], line[2]].map(|value| bytes(value).expect("a value"));
        assert_eq!(CqlType::Double.to_text(&double), line[1]);
        assert_eq!(CqlType::Float.to_text(&float), line[3]);
        assert_eq!(CqlType::Double.from_text(line[1], 0).expect("a number"), double);
        assert_eq!(CqlType::Float.from_text(line[3], 0).expect("a number"), float);
    }
}

#[test]
fn durations_move_times_as_in_cassandra() {
    for line in lines(include_str!("vectors/durations.tsv")) {
        let duration = Duration::parse(line[0]).unwrap_or_default();
        let [millis, start, time_of_day] =
            [line[1], line[2], line[3]].map(|number| number.parse::<i64>().expect("a number"));
        assert_eq!(duration.add_to(millis).map(|sum| sum.to_string()).as_deref(), Some(line[4]), "{line:?}");
        assert_eq!(
            duration.subtract_from(millis).map(|sum| sum.to_string()).as_deref(),
            Some(line[5]),
            "{line:?}"
        );
        let answer = |result: Result<i64, TypeError>| match result {
            Ok(number) => number.to_string(),
            Err(error) => format!("!{error}"),
        };
        assert_eq!(answer(duration.floor_millis(millis, start)), line[6], "{line:?}");
        assert_eq!(answer(duration.floor_time(time_of_day)), line[7], "{line:?}");
    }
}
