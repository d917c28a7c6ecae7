//! What must hold for every type and every value.

mod common;

use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;
use types::byte_comparable::{self, ClusteringBoundKind};
use types::{CqlType, UserType, blob, encoding, marshal, timestamp, uuid};

fn native() -> impl Strategy<Value = CqlType> {
    const NAMES: &[&str] = &[
        "ascii",
        "bigint",
        "blob",
        "boolean",
        "date",
        "decimal",
        "double",
        "duration",
        "float",
        "inet",
        "int",
        "smallint",
        "text",
        "time",
        "timestamp",
        "timeuuid",
        "tinyint",
        "uuid",
        "varint",
    ];
    proptest::sample::select(NAMES).prop_map(|name| CqlType::from_native_name(name).expect("a native type"))
}

/// Any type; frozen where it nests.
fn any_type() -> impl Strategy<Value = CqlType> {
    native().prop_recursive(3, 12, 3, |inner| {
        let inner = inner.prop_map(|of| of.freeze());
        prop_oneof![
            (inner.clone(), any::<bool>())
                .prop_map(|(of, frozen)| CqlType::List { element: Arc::new(of), frozen }),
            (inner.clone(), any::<bool>())
                .prop_map(|(of, frozen)| CqlType::Set { element: Arc::new(of), frozen }),
            (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(key, value, frozen)| CqlType::Map {
                key: Arc::new(key),
                value: Arc::new(value),
                frozen
            }),
            vec(inner.clone(), 1..4).prop_map(|types| CqlType::Tuple(types.into())),
            (inner.clone(), 1..4u32)
                .prop_map(|(of, dimension)| CqlType::Vector { element: Arc::new(of), dimension }),
            (vec(("[a-zA-Z_]{1,5}", inner), 1..4), any::<bool>()).prop_map(|(fields, frozen)| {
                let definition = UserType { keyspace: "ks".into(), name: "Type one".into(), fields };
                CqlType::UserDefined { definition: Arc::new(definition), frozen }
            }),
        ]
    })
}

/// A valid value of the type, never empty where that means nothing (see `clusterings` for those).
fn value_of(of: &CqlType) -> BoxedStrategy<Vec<u8>> {
    let bytes = |count| vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], count).boxed();
    match of {
        CqlType::Ascii => vec(prop_oneof![Just(0u8), 0..128u8], 0..5).boxed(),
        CqlType::Text => ".{0,4}".prop_map(String::into_bytes).boxed(),
        CqlType::Blob => vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..6).boxed(),
        CqlType::Boolean => (0..3u8).prop_map(|byte| vec![byte]).boxed(),
        CqlType::Tinyint => bytes(1),
        CqlType::Smallint => bytes(2),
        CqlType::Int | CqlType::Date => bytes(4),
        CqlType::Bigint | CqlType::Counter => (any::<i64>(), 0..64u32)
            .prop_map(|(value, shift)| (value >> shift).to_be_bytes().to_vec())
            .boxed(),
        CqlType::Timestamp => bytes(8),
        CqlType::Time => {
            (0..types::time::NANOS_PER_DAY).prop_map(|value| value.to_be_bytes().to_vec()).boxed()
        }
        CqlType::Float => proptest::num::f32::ANY.prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Double => proptest::num::f64::ANY.prop_map(|value| value.to_be_bytes().to_vec()).boxed(),
        CqlType::Inet => prop_oneof![bytes(4), bytes(16)].boxed(),
        CqlType::Uuid => (bytes(16), prop_oneof![Just(1u8), Just(4), 0..16u8]).prop_map(with_version).boxed(),
        CqlType::Timeuuid => bytes(16).prop_map(|value| with_version((value, 1))).boxed(),
        CqlType::Varint => vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..14).boxed(),
        CqlType::Decimal => {
            let short =
                (any::<i64>(), 0..64u32).prop_map(|(value, shift)| (value >> shift).to_be_bytes().to_vec());
            let long = vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..24);
            (prop_oneof![-6..6i32, -60..60], prop_oneof![short, long])
                .prop_map(|(scale, unscaled)| [scale.to_be_bytes().as_slice(), &unscaled].concat())
                .boxed()
        }
        CqlType::Duration => (any::<bool>(), 0..50i32, 0..50i32, 0..i64::MAX)
            .prop_map(|(negative, months, days, nanoseconds)| {
                let sign = if negative { -1 } else { 1 };
                let [months, days] = [months * sign, days * sign];
                let nanoseconds = nanoseconds * i64::from(sign);
                types::duration::Duration { months, days, nanoseconds }.encode()
            })
            .boxed(),
        CqlType::Empty => Just(Vec::new()).boxed(),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => vec(value_of(element), 0..4)
            .prop_map(|values| {
                encoding::collection(values.len(), values.iter().map(|value| Some(&value[..])))
            })
            .boxed(),
        CqlType::Map { key, value, .. } => vec((value_of(key), value_of(value)), 0..3)
            .prop_map(|entries| {
                let parts = entries.iter().flat_map(|(key, value)| [Some(&key[..]), Some(&value[..])]);
                encoding::collection(entries.len(), parts)
            })
            .boxed(),
        CqlType::Tuple(types) => tuple_of(types.iter()),
        CqlType::UserDefined { definition, .. } => tuple_of(definition.fields.iter().map(|(_, of)| of)),
        CqlType::Vector { element, dimension } => {
            let element = element.clone();
            vec(value_of(&element), *dimension as usize)
                .prop_map(move |values| encoding::vector(&element, values.iter().map(Vec::as_slice)))
                .boxed()
        }
    }
}

/// Some fields null, trailing ones perhaps missing, but at least one there.
fn tuple_of<'a>(types: impl Iterator<Item = &'a CqlType>) -> BoxedStrategy<Vec<u8>> {
    let fields: Vec<_> = types.map(|of| proptest::option::of(value_of(of))).collect();
    let count = fields.len();
    (fields, 1..=count)
        .prop_map(|(fields, count)| encoding::tuple(fields[..count].iter().map(Option::as_deref)))
        .boxed()
}

fn with_version((mut uuid, version): (Vec<u8>, u8)) -> Vec<u8> {
    uuid[6] = uuid[6] & 0x0f | version << 4;
    uuid
}

/// A type and three values of it.
fn typed_values() -> impl Strategy<Value = (CqlType, [Vec<u8>; 3])> {
    any_type().prop_flat_map(|of| {
        let value = value_of(&of);
        (Just(of), [value.clone(), value.clone(), value])
    })
}

type Row = Vec<Option<Vec<u8>>>;

/// A clustering of up to two columns: null, empty or a value each.
fn clusterings() -> impl Strategy<Value = (Vec<(CqlType, bool)>, [Row; 2])> {
    vec((native(), any::<bool>()), 1..3).prop_flat_map(|types| {
        let row: Vec<_> = types
            .iter()
            .map(|(of, _)| {
                let empty = if of.empty_is_meaningless() { 1 } else { 0 };
                prop_oneof![
                    1 => Just(None),
                    empty => Just(Some(Vec::new())),
                    6 => value_of(of).prop_map(Some)
                ]
            })
            .collect();
        (Just(types), [row.clone(), row])
    })
}

fn clustering_form(types: &[(CqlType, bool)], row: &[Option<Vec<u8>>], kind: ClusteringBoundKind) -> Vec<u8> {
    let mut form = Vec::new();
    byte_comparable::clustering(types, row.iter().map(Option::as_deref), kind, &mut form);
    form
}

/// Cassandra's order of clusterings: null first in either direction.
fn compare_rows(types: &[(CqlType, bool)], a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>]) -> Ordering {
    let orders = types.iter().zip(a.iter().zip(b)).map(|((of, reversed), (a, b))| match (a, b) {
        (Some(a), Some(b)) if *reversed => of.compare(b, a),
        _ => of.compare_nullable(a.as_deref(), b.as_deref()),
    });
    orders.fold(Ordering::Equal, Ordering::then)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forms_order_as_values_do((of, [a, b, _]) in typed_values()) {
        for reversed in [false, true] {
            let types = [(of.clone(), reversed)];
            let form = |value: &Vec<u8>| {
                clustering_form(&types, &[Some(value.clone())], ClusteringBoundKind::Clustering)
            };
            let expected = if reversed { of.compare(&b, &a) } else { of.compare(&a, &b) };
            prop_assert_eq!(form(&a).cmp(&form(&b)), expected, "{} reversed {}", of, reversed);
        }
    }

    #[test]
    fn clustering_forms_order_as_clusterings_do((types, [a, b]) in clusterings()) {
        let form = |row: &[Option<Vec<u8>>]| clustering_form(&types, row, ClusteringBoundKind::Clustering);
        let (a_form, b_form) = (form(&a), form(&b));
        prop_assert_eq!(a_form.cmp(&b_form), compare_rows(&types, &a, &b), "{:?}", types);
        if a_form != b_form {
            prop_assert!(!a_form.starts_with(&b_form) && !b_form.starts_with(&a_form), "one is a prefix");
        }
    }

    #[test]
    fn bounds_stand_around_what_has_their_prefix((types, [a, b]) in clusterings(), length in 0..3usize) {
        let length = length.min(types.len());
        let row = clustering_form(&types, &b, ClusteringBoundKind::Clustering);
        let before = clustering_form(&types, &a[..length], ClusteringBoundKind::Before);
        let after = clustering_form(&types, &a[..length], ClusteringBoundKind::After);
        prop_assert!(before < after);
        match compare_rows(&types[..length], &b[..length], &a[..length]) {
            Ordering::Less => prop_assert!(row < before),
            Ordering::Equal => prop_assert!(before < row && row < after),
            Ordering::Greater => prop_assert!(row > after),
        }
    }

    #[test]
    fn separators_separate((types, [a, b]) in clusterings()) {
        let form = |row: &[Option<Vec<u8>>]| clustering_form(&types, row, ClusteringBoundKind::Clustering);
        let (a, b) = (form(&a), form(&b));
        if a < b {
            let separator = byte_comparable::separator(&a, &b);
            prop_assert!(separator > &a[..] && separator <= &b[..]);
            let mut above = Vec::new();
            byte_comparable::separator_above(&a, &b, &mut above);
            prop_assert!(above > a && above <= b);
        }
    }

    #[test]
    fn order_is_total((of, [a, b, c]) in typed_values()) {
        prop_assert_eq!(of.compare(&a, &a), Ordering::Equal);
        prop_assert_eq!(of.compare(&a, &b), of.compare(&b, &a).reverse());
        let mut sorted = [a, b, c];
        sorted.sort_by(|x, y| of.compare(x, y));
        prop_assert!(of.compare(&sorted[0], &sorted[2]).is_le());
        if of.compares_by_bytes() {
            prop_assert!(sorted.is_sorted());
        }
    }

    #[test]
    fn values_are_valid_and_their_text_reads_back((of, [value, ..]) in typed_values()) {
        prop_assert_eq!(of.validate(&value), Ok(()));
        let text = of.to_text(&value);
        let is_plain = of.native_name().is_some();
        if is_plain && of != CqlType::Uuid {
            let again = of.from_text(&text, 0);
            // BC and the years from 292 million on have no literal.
            if of != CqlType::Timestamp {
                let again = again.map_err(|error| TestCaseError::fail(format!("{of} {text}: {error}")))?;
                prop_assert_eq!(of.compare(&again, &value), Ordering::Equal, "{} {}", of, text);
            }
        }
    }

    #[test]
    fn timestamps_read_back(millis in -62_135_596_800_000..253_402_300_800_000i64) {
        let text = timestamp::format(&millis.to_be_bytes());
        prop_assert_eq!(timestamp::parse(&text, 0), Ok(millis));
        let json = timestamp::format_for_json(&millis.to_be_bytes());
        prop_assert_eq!(timestamp::parse(&json, 0), Ok(millis));
    }

    #[test]
    fn timeuuids_of_a_millisecond_stand_between_its_bounds(
        millis in -12_219_292_800_000..4_102_444_800_000i64,
        ticks in 0..10_000i64,
        low: u64,
    ) {
        let made = uuid::from_ticks(uuid::ticks_at_millis(millis) + ticks, low);
        let order = |a: [u8; 16], b: [u8; 16]| CqlType::Timeuuid.compare(&a, &b);
        prop_assert!(order(uuid::min_at_millis(millis), made).is_le());
        prop_assert!(order(uuid::max_at_millis(millis), made).is_ge());
        prop_assert!(order(uuid::max_at_millis(millis - 1), made).is_lt());
        prop_assert_eq!(uuid::version(&made), Some(1));
        prop_assert_eq!(uuid::ticks(&made), Some(uuid::ticks_at_millis(millis) + ticks));
        if millis >= 0 {
            prop_assert_eq!(uuid::unix_millis(&made), Some(millis));
        }
    }

    #[test]
    fn types_read_back_from_their_marshal_names(of in any_type()) {
        let name = of.to_marshal();
        // A frozen user type's name does not say which of its fields were declared frozen, so that
        // the types themselves may differ in that.
        let again = CqlType::from_marshal(&name).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(again.to_marshal(), name);
        prop_assert_eq!(again.to_string(), of.to_string());
    }

    #[test]
    fn nothing_falls_over_any_bytes(of in any_type(), a in vec(any::<u8>(), 0..40), b in vec(any::<u8>(), 0..40)) {
        let _ = of.validate(&a);
        prop_assert_eq!(of.compare(&a, &b), of.compare(&b, &a).reverse());
        prop_assert_eq!(of.compare(&a, &a), Ordering::Equal);
        let mut form = Vec::new();
        byte_comparable::encode_value(&of, &a, &mut form);
        let _ = (of.to_text(&a), of.to_cql_literal(&a), of.to_json(Some(&a)));
    }

    #[test]
    fn nothing_falls_over_any_text(of in any_type(), text in ".{0,30}", number in "[-+0-9:.TZeEPyYmM ]{0,20}") {
        let _ = of.from_text(&text, 0);
        let _ = of.from_text(&number, 0);
        let _ = marshal::parse(&text);
    }

    #[test]
    fn partition_keys_come_apart(parts in vec(vec(any::<u8>(), 0..9), 2..5)) {
        let key = encoding::partition_key(parts.iter().map(Vec::as_slice)).expect("short parts");
        prop_assert_eq!(encoding::partition_key_parts(&key, parts.len()).expect("well formed"), parts);
    }

    #[test]
    fn hexadecimal_digits_read_back(bytes in vec(any::<u8>(), 0..20)) {
        prop_assert_eq!(blob::parse(&blob::format(&bytes)), Ok(bytes));
    }
}
