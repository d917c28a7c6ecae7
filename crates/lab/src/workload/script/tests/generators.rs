//! Every generator makes values of its type, in its range, and the same ones under a seed.

use std::collections::BTreeSet;

use types::UserType;
use types::encoding::{Fields, Parts};

use super::super::maker::Moment;
use super::*;
use crate::generator::Random;

const NOW_MS: i64 = 1_764_378_000_000;

/// Values of `it` for a marker of this type, of rows 0 to 9 of partitions 0 to 99.
fn made(generators: &str, cql_type: &CqlType) -> Result<Vec<Vec<u8>>, String> {
    let generators: BTreeMap<String, Generator> = toml::from_str(generators).unwrap();
    let (values, markers) = (["it".to_owned()], columns(&[("column", cql_type.clone())]));
    let fitting = Fitting {
        generators: &generators,
        partition_count: 100,
        rows_per_partition: 10,
        values: &values,
        markers: &markers,
    };
    let maker = fitting.marker(0)?;
    let make = || {
        let mut random = Random::new(1, 0);
        let of_row = |number: u64| {
            let (partition, row) = (number / 10, number % 10);
            let held = (row > 0).then_some(row);
            let mut moment = Moment { partition, row, now_ms: NOW_MS, held, random: &mut random };
            let mut out = Vec::new();
            maker.make(&mut moment, &mut out);
            out
        };
        (0..1000).map(of_row).collect::<Vec<Vec<u8>>>()
    };
    let values = make();
    assert_eq!(values, make(), "a seed repeats the values");
    for value in &values {
        assert!(cql_type.validate(value).is_ok(), "{value:?} is a value of {cql_type}");
    }
    Ok(values)
}

/// The least and the greatest of whole numbers.
fn range(generator: &str, cql_type: &CqlType) -> (i64, i64) {
    let values = made(&format!("it = {{ {generator} }}"), cql_type).unwrap();
    let number = |bytes: &Vec<u8>| {
        let sign = if bytes[0] >= 0x80 { -1 } else { 0 };
        bytes.iter().fold(sign, |number: i64, byte| number << 8 | i64::from(*byte))
    };
    let numbers: Vec<i64> = values.iter().map(number).collect();
    (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap())
}

fn texts(generator: &str) -> Vec<String> {
    let values = made(&format!("it = {{ {generator} }}"), &CqlType::Text).unwrap();
    values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

#[test]
fn whole_numbers_are_in_their_range_in_every_type() {
    for cql_type in [CqlType::Tinyint, CqlType::Smallint, CqlType::Int, CqlType::Bigint, CqlType::Varint] {
        assert_eq!(range("kind = 'partition'", &cql_type), (0, 99));
        assert_eq!(range("kind = 'row'", &cql_type), (0, 9));
        assert_eq!(range("kind = 'number', from = -3, to = 3", &cql_type), (-3, 3));
        assert_eq!(range("kind = 'constant', value = -128", &cql_type), (-128, -128));
        assert_eq!(range("kind = 'held'", &cql_type), (0, 9));
        assert_eq!(range("kind = 'next'", &cql_type), (1, 10));
        assert_eq!(range("kind = 'next', modulo = 2", &cql_type), (0, 1));
    }
    let (from, to) = range("kind = 'number', from = 0, to = 1000, distribution = 'normal'", &CqlType::Int);
    assert!((50..400).contains(&from) && (600..950).contains(&to), "{from} {to}");
    let skewed =
        made("it = { kind = 'number', from = 0, to = 99, distribution = 'true-zipfian' }", &CqlType::Int);
    assert!(skewed.unwrap().iter().collect::<BTreeSet<_>>().len() > 20);
}

#[test]
fn varints_are_as_short_as_they_can_be() {
    for (number, bytes) in
        [(0, vec![0]), (127, vec![127]), (128, vec![0, 128]), (-128, vec![128]), (-129, vec![255, 127])]
    {
        let values =
            made(&format!("it = {{ kind = 'constant', value = {number} }}"), &CqlType::Varint).unwrap();
        assert_eq!(values[0], bytes);
    }
}

#[test]
fn texts_are_of_their_length_and_letters() {
    assert_eq!(texts("kind = 'template', text = 'k{partition:3}.{row}'")[17], "k001.7");
    let letters = texts("kind = 'letters', bytes = [3, 5]");
    assert!(
        letters.iter().all(|text| (3..=5).contains(&text.len()) && text.chars().all(char::is_alphabetic))
    );
    assert_eq!(letters.iter().map(String::len).collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(texts("kind = 'constant', value = 'x'")[0], "x");
    let chosen = texts("kind = 'choice', of = ['a', 'b', 'c'], weights = [1, 0, 9]");
    let count = |text: &str| chosen.iter().filter(|one| *one == text).count();
    assert!(count("b") == 0 && (50..200).contains(&count("a")), "{}", count("a"));
}

#[test]
fn fractions_and_truths() {
    let doubles = |generator: &str| -> Vec<f64> {
        let values = made(&format!("it = {{ kind = 'double', {generator} }}"), &CqlType::Double).unwrap();
        values.iter().map(|value| f64::from_be_bytes(value.as_slice().try_into().unwrap())).collect()
    };
    assert!(doubles("from = 1, to = 2.5").iter().all(|number| (1.0..2.5).contains(number)));
    let normal = doubles("mean = 100.0, deviation = 5.0");
    assert!((normal.iter().sum::<f64>() / 1000.0 - 100.0).abs() < 1.0);
    assert_eq!(made("it = { kind = 'double', from = 0, to = 1 }", &CqlType::Float).unwrap()[0].len(), 4);
    let truths = made("it = { kind = 'boolean', chance = 0.9 }", &CqlType::Boolean).unwrap();
    let count = truths.iter().filter(|value| value[0] == 1).count();
    assert!((850..950).contains(&count), "{count}");
}

#[test]
fn times_are_now_or_of_the_row() {
    let now = made("it = { kind = 'now', offset-ms = [-1000, 0] }", &CqlType::Timestamp).unwrap();
    assert!(now.iter().all(|value| {
        (NOW_MS - 1000..=NOW_MS).contains(&i64::from_be_bytes(value.as_slice().try_into().unwrap()))
    }));
    let uuids = made("it = { kind = 'now' }", &CqlType::Timeuuid).unwrap();
    assert!(uuids.iter().all(|uuid| types::uuid::unix_millis(uuid) == Some(NOW_MS)));
    assert_eq!(uuids.iter().collect::<BTreeSet<_>>().len(), 1000, "each is one of a kind");
    let micros = made("it = { kind = 'now' }", &CqlType::Bigint).unwrap();
    assert_eq!(micros[0], (NOW_MS * 1000).to_be_bytes());
    let times = made("it = { kind = 'time', start-ms = 5, step-ms = 100 }", &CqlType::Timestamp).unwrap();
    assert_eq!(times[13], 305i64.to_be_bytes());
}

#[test]
fn uuids_are_of_version_4_and_may_follow_from_a_number() {
    let by_chance = made("it = { kind = 'uuid' }", &CqlType::Uuid).unwrap();
    assert!(by_chance.iter().all(|uuid| types::uuid::version(uuid) == Some(4)));
    assert_eq!(by_chance.iter().collect::<BTreeSet<_>>().len(), 1000);
    let following =
        made("it = { kind = 'uuid', of = 'n' }\nn = { kind = 'partition' }", &CqlType::Uuid).unwrap();
    assert_eq!(following.iter().collect::<BTreeSet<_>>().len(), 100);
}

#[test]
fn collections_and_user_types_hold_others() {
    let text = Arc::new(CqlType::Text);
    let list = CqlType::List { element: text.clone(), frozen: false };
    let letters = "letters = { kind = 'letters', bytes = 8 }\nnumber = { kind = 'row' }\n";
    let lists =
        made(&format!("{letters}it = {{ kind = 'list', of = 'letters', count = [0, 3] }}"), &list).unwrap();
    let counts: BTreeSet<u64> = lists.iter().map(|value| Parts::new(value, 1).unwrap().left()).collect();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let set = CqlType::Set { element: text.clone(), frozen: true };
    assert!(made(&format!("{letters}it = {{ kind = 'set', of = 'letters', count = 1 }}"), &set).is_ok());
    let map = CqlType::Map { key: Arc::new(CqlType::Int), value: text, frozen: false };
    let maps = format!("{letters}it = {{ kind = 'map', key = 'number', value = 'letters', count = 1 }}");
    assert_eq!(made(&maps, &map).unwrap()[0].len(), 4 + 4 + 4 + 4 + 8);
    let fields = vec![("a".to_owned(), CqlType::Text), ("b".to_owned(), CqlType::Int)];
    let definition = Arc::new(UserType { keyspace: "ks".to_owned(), name: "t".to_owned(), fields });
    let user = CqlType::UserDefined { definition, frozen: true };
    let values =
        made(&format!("{letters}it = {{ kind = 'fields', of = ['letters', 'number'] }}"), &user).unwrap();
    assert_eq!(Fields::new(&values[7]).count(), 2);
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let refused = |generators: &str, cql_type: &CqlType| made(generators, cql_type).unwrap_err();
    let one = |generator: &str, cql_type: &CqlType| refused(&format!("it = {{ {generator} }}"), cql_type);
    let misfit = one("kind = 'number', from = 0, to = 1", &CqlType::Text);
    assert_eq!(misfit, "'it' can not make a value of type text for column");
    assert!(one("kind = 'letters', bytes = 1", &CqlType::Int).contains("can not make a value of type int"));
    assert!(one("kind = 'now'", &CqlType::Date).contains("type date"));
    assert!(one("kind = 'uuid'", &CqlType::Timeuuid).contains("type timeuuid"));
    assert!(one("kind = 'constant', value = 'x'", &CqlType::Boolean).contains("type boolean"));
    assert!(
        one("kind = 'number', from = 0, to = 200", &CqlType::Tinyint)
            .contains("from 0 to 200, too far for tinyint")
    );
    assert!(one("kind = 'number', from = 2, to = 1", &CqlType::Int).contains("no numbers from 2 to 1"));
    let stepwise = one("kind = 'number', from = 0, to = 1, distribution = 'sequence'", &CqlType::Int);
    assert!(stepwise.contains("drawn anew each time"), "{stepwise}");
    assert!(one("kind = 'double', from = 0", &CqlType::Double).contains("either from and to"));
    assert!(one("kind = 'boolean', chance = 2", &CqlType::Boolean).contains("the chance 2"));
    assert!(one("kind = 'choice', of = ['a'], weights = [1, 2]", &CqlType::Text).contains("as many weights"));
    assert!(one("kind = 'letters', bytes = -1", &CqlType::Text).contains("a size below 0"));
    let list = CqlType::List { element: Arc::new(CqlType::Text), frozen: false };
    assert!(one("kind = 'list', of = 'no', count = 1", &list).contains("no value 'no' under [values]"));
    let nested = CqlType::List { element: Arc::new(list.clone()), frozen: true };
    assert!(
        one("kind = 'list', of = 'it', count = 1", &nested).contains("can not make a value of type text")
    );
    let derived = "it = { kind = 'derived', of = ['n'], bytes = 9 }\nn = { kind = 'now' }";
    assert!(refused(derived, &CqlType::Text).contains("does not follow from partition and row"));
    let absent = "it = { kind = 'derived', of = ['n'], bytes = 9 }\nn = { kind = 'row' }";
    assert!(refused(absent, &CqlType::Text).contains("which the statement does not have"));
}
