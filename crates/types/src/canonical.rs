//! Sets and maps in the order of their elements and keys, each once.
//!
//! A client may send a set in any order; two that hold the same are one value, and as a frozen column or
//! a key must be the same bytes. Cassandra brings them in order when it binds them
//! (`Sets.Value.fromSerialized`, `Maps.Value.fromSerialized`).

use crate::CqlType;
use crate::encoding::{Parts, collection};

impl CqlType {
    /// The bytes of a value that was [validated](CqlType::validate), if they are not in order: sets and
    /// maps sorted, of equal elements the first, of equal keys the last value; in collections inside too.
    pub fn canonical(&self, value: &[u8]) -> Option<Vec<u8>> {
        if !self.may_be_out_of_order() {
            return None;
        }
        let is_map = matches!(self, CqlType::Map { .. });
        let parts = Parts::new(value, if is_map { 2 } else { 1 }).ok()?;
        let parts = parts.map(|part| part.ok().flatten()).collect::<Option<Vec<&[u8]>>>()?;
        match self {
            CqlType::List { element, .. } => list(element, &parts),
            CqlType::Set { element, .. } => set(element, &parts),
            CqlType::Map { key, value, .. } => map(key, value, &parts),
            _ => None,
        }
    }

    /// Are there values of this type that [`CqlType::canonical`] changes?
    pub fn may_be_out_of_order(&self) -> bool {
        match self {
            CqlType::Set { .. } | CqlType::Map { .. } => true,
            CqlType::List { element, .. } => element.may_be_out_of_order(),
            _ => false,
        }
    }
}

/// Elements in order where they were not; `None` when all were.
fn within(element: &CqlType, parts: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    if !element.may_be_out_of_order() || !parts.iter().any(|part| element.canonical(part).is_some()) {
        return None;
    }
    Some(parts.iter().map(|part| element.canonical(part).unwrap_or_else(|| part.to_vec())).collect())
}

fn list(element: &CqlType, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let parts = within(element, parts)?;
    Some(collection(parts.len(), parts.iter().map(|part| Some(&**part))))
}

fn set(element: &CqlType, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let inner = within(element, parts);
    if inner.is_none() && parts.is_sorted_by(|a, b| element.compare(a, b).is_lt()) {
        return None;
    }
    let mut sorted: Vec<&[u8]> = match &inner {
        Some(inner) => inner.iter().map(Vec::as_slice).collect(),
        None => parts.to_vec(),
    };
    sorted.sort_by(|a, b| element.compare(a, b));
    sorted.dedup_by(|a, b| element.compare(a, b).is_eq());
    Some(collection(sorted.len(), sorted.into_iter().map(Some)))
}

fn map(key: &CqlType, value: &CqlType, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let keys: Vec<&[u8]> = parts.iter().step_by(2).copied().collect();
    let values: Vec<&[u8]> = parts.iter().skip(1).step_by(2).copied().collect();
    let (inner_keys, inner_values) = (within(key, &keys), within(value, &values));
    let is_inner = inner_keys.is_some() || inner_values.is_some();
    if !is_inner && keys.is_sorted_by(|a, b| key.compare(a, b).is_lt()) {
        return None;
    }
    let of = |inner: &'_ Option<Vec<Vec<u8>>>, parts: &[&[u8]], index: usize| match inner {
        Some(inner) => inner[index].clone(),
        None => parts[index].to_vec(),
    };
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = (0..values.len())
        .map(|index| (of(&inner_keys, &keys, index), of(&inner_values, &values, index)))
        .collect();
    entries.sort_by(|(a, _), (b, _)| key.compare(a, b));
    entries.dedup_by(|later, kept| {
        let is_same = key.compare(&later.0, &kept.0).is_eq();
        if is_same {
            kept.1 = std::mem::take(&mut later.1);
        }
        is_same
    });
    let parts = entries.iter().flat_map(|(key, value)| [Some(&**key), Some(&**value)]);
    Some(collection(entries.len(), parts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn ints(values: &[i32]) -> Vec<u8> {
        let bytes: Vec<[u8; 4]> = values.iter().map(|value| value.to_be_bytes()).collect();
        collection(bytes.len(), bytes.iter().map(|value| Some(value.as_slice())))
    }

    fn set_of(element: CqlType) -> CqlType {
        CqlType::Set { element: Arc::new(element), frozen: true }
    }

    #[test]
    fn sets_are_sorted_and_hold_each_element_once() {
        let of = set_of(CqlType::Int);
        assert_eq!(of.canonical(&ints(&[3, -1, 2, 3])), Some(ints(&[-1, 2, 3])));
        assert_eq!(of.canonical(&ints(&[-1, 2, 3])), None);
        assert_eq!(of.canonical(&ints(&[])), None);
    }

    #[test]
    fn maps_are_sorted_by_key_and_keep_the_last_value_of_a_key() {
        let of = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Int), frozen: true };
        let entries = |values: &[i32]| {
            let bytes: Vec<[u8; 4]> = values.iter().map(|value| value.to_be_bytes()).collect();
            collection(bytes.len() / 2, bytes.iter().map(|value| Some(value.as_slice())))
        };
        assert_eq!(of.canonical(&entries(&[2, 20, 1, 10, 2, 21])), Some(entries(&[1, 10, 2, 21])));
        assert_eq!(of.canonical(&entries(&[1, 10, 2, 20])), None);
    }

    #[test]
    fn collections_inside_of_others_are_sorted_too() {
        let of = CqlType::List { element: Arc::new(set_of(CqlType::Int)), frozen: true };
        let lists = |sets: &[Vec<u8>]| collection(sets.len(), sets.iter().map(|set| Some(set.as_slice())));
        let given = lists(&[ints(&[2, 1]), ints(&[5])]);
        assert_eq!(of.canonical(&given), Some(lists(&[ints(&[1, 2]), ints(&[5])])));
        let of = set_of(set_of(CqlType::Int));
        let given = lists(&[ints(&[2, 1]), ints(&[1, 2])]);
        assert_eq!(of.canonical(&given), Some(lists(&[ints(&[1, 2])])));
    }

    #[test]
    fn lists_keep_their_order() {
        let of = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        assert_eq!(of.canonical(&ints(&[2, 1, 2])), None);
    }
}
