//! Lists, sets, maps and vectors.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use stdx::vint;
use types::CqlType;
use types::encoding::{Elements, Parts};

use super::{FromCql, ToCql, ValueError, Written, damaged, mismatch};

/// Appends a field with its length before it, or null.
pub(super) fn write_field(
    element: &dyn ToCql,
    element_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    let start = out.len();
    out.extend((-1i32).to_be_bytes());
    let written = element.to_cql(element_type, out)?;
    if written == Written::Value {
        let value_bytes = out.len() - start - 4;
        let length = i32::try_from(value_bytes).map_err(|_| ValueError::TooLong { value_bytes })?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(written)
}

/// An element of a collection, which can not be null.
fn element_bytes(
    element: &dyn ToCql,
    element_type: &CqlType,
    collection: &CqlType,
) -> Result<Vec<u8>, ValueError> {
    let mut bytes = Vec::new();
    match element.to_cql(element_type, &mut bytes)? {
        Written::Value => Ok(bytes),
        Written::Null | Written::Unset => Err(ValueError::NullElement { cql_type: collection.to_string() }),
    }
}

/// Appends a number of elements, or of bytes.
fn write_count(count: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let count = i32::try_from(count).map_err(|_| ValueError::TooLong { value_bytes: count })?;
    out.extend(count.to_be_bytes());
    Ok(())
}

fn write_part(part: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    write_count(part.len(), out)?;
    out.extend_from_slice(part);
    Ok(())
}

/// A list, a set or a vector; `Rust` is what errors name. A set is one value however it is ordered, so it
/// is written in the order of its type.
fn write_elements<'v, Rust: ?Sized>(
    elements: impl ExactSizeIterator<Item = &'v dyn ToCql>,
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    match cql_type {
        CqlType::List { element, .. } => {
            write_count(elements.len(), out)?;
            for value in elements {
                write_part(&element_bytes(value, element, cql_type)?, out)?;
            }
        }
        CqlType::Set { element, .. } => {
            let parts = elements.map(|value| element_bytes(value, element, cql_type));
            let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
            parts.sort_by(|a, b| element.compare(a, b));
            parts.dedup();
            write_count(parts.len(), out)?;
            parts.iter().try_for_each(|part| write_part(part, out))?;
        }
        CqlType::Vector { element, dimension } => {
            write_vector(elements, cql_type, element, *dimension, out)?;
        }
        _ => return Err(mismatch::<Rust>(cql_type)),
    }
    Ok(Written::Value)
}

fn write_vector<'v>(
    elements: impl ExactSizeIterator<Item = &'v dyn ToCql>,
    cql_type: &CqlType,
    element_type: &CqlType,
    dimension: u32,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let (expected, got) = (dimension as usize, elements.len());
    if expected != got {
        return Err(ValueError::Count { cql_type: cql_type.to_string(), expected, got });
    }
    let is_fixed = element_type.fixed_length().is_some();
    for value in elements {
        let bytes = element_bytes(value, element_type, cql_type)?;
        if !is_fixed {
            vint::write_unsigned(bytes.len() as u64, out);
        }
        out.extend_from_slice(&bytes);
    }
    Ok(())
}

/// Gives each element to `take`, with its type. Of a null there are none.
pub(super) fn read_elements<'a, Rust>(
    cql_type: &CqlType,
    value: Option<&'a [u8]>,
    mut take: impl FnMut(&CqlType, Option<&'a [u8]>) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let Some(value) = value else { return Ok(()) };
            for part in Parts::new(value, 1).map_err(|_| damaged(cql_type))? {
                take(element, part.map_err(|_| damaged(cql_type))?)?;
            }
            Ok(())
        }
        CqlType::Vector { element, dimension } => {
            let value = super::required::<Rust>(value)?;
            for part in Elements::new(element, *dimension, value) {
                take(element, Some(part.map_err(|_| damaged(cql_type))?))?;
            }
            Ok(())
        }
        _ => Err(mismatch::<Rust>(cql_type)),
    }
}

pub(super) fn write_map<'v, Rust: ?Sized>(
    entries: impl ExactSizeIterator<Item = (&'v dyn ToCql, &'v dyn ToCql)>,
    cql_type: &CqlType,
    out: &mut Vec<u8>,
) -> Result<Written, ValueError> {
    let CqlType::Map { key: key_type, value: value_type, .. } = cql_type else {
        return Err(mismatch::<Rust>(cql_type));
    };
    let mut parts = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = element_bytes(key, key_type, cql_type)?;
        parts.push((key, element_bytes(value, value_type, cql_type)?));
    }
    parts.sort_by(|(a, _), (b, _)| key_type.compare(a, b));
    write_count(parts.len(), out)?;
    for (key, value) in parts {
        write_part(&key, out)?;
        write_part(&value, out)?;
    }
    Ok(Written::Value)
}

/// Gives each entry to `take`. Of a null there are none.
fn read_entries<'a, K: FromCql<'a>, V: FromCql<'a>, Rust>(
    cql_type: &CqlType,
    value: Option<&'a [u8]>,
    mut take: impl FnMut(K, V),
) -> Result<(), ValueError> {
    let CqlType::Map { key: key_type, value: value_type, .. } = cql_type else {
        return Err(mismatch::<Rust>(cql_type));
    };
    let Some(value) = value else { return Ok(()) };
    let mut parts = Parts::new(value, 2).map_err(|_| damaged(cql_type))?;
    while let Some(key) = parts.next() {
        let key = K::from_cql(key_type, key.map_err(|_| damaged(cql_type))?)?;
        let value = parts.next().and_then(Result::ok).ok_or_else(|| damaged(cql_type))?;
        take(key, V::from_cql(value_type, value)?);
    }
    Ok(())
}

/// The entries in the order they are kept in.
pub(super) fn entries<'a, K: FromCql<'a>, V: FromCql<'a>>(
    cql_type: &CqlType,
    value: Option<&'a [u8]>,
) -> Result<Vec<(K, V)>, ValueError> {
    let mut entries = Vec::new();
    read_entries::<K, V, Vec<(K, V)>>(cql_type, value, |key, value| entries.push((key, value)))?;
    Ok(entries)
}

macro_rules! to_cql_elements {
    ($([$($generics:tt)*] $rust:ty;)*) => {
        $(impl<$($generics)*> ToCql for $rust {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                write_elements::<Self>(self.iter().map(|value| value as &dyn ToCql), cql_type, out)
            }
        })*
    };
}

to_cql_elements! {
    [T: ToCql] [T];
    [T: ToCql, const N: usize] [T; N];
    [T: ToCql] Vec<T>;
    [T: ToCql, S: BuildHasher] HashSet<T, S>;
    [T: ToCql] BTreeSet<T>;
}

impl<'a, T: FromCql<'a>> FromCql<'a> for Vec<T> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        let mut elements = Vec::new();
        read_elements::<Self>(cql_type, value, |of, part| {
            elements.push(T::from_cql(of, part)?);
            Ok(())
        })?;
        Ok(elements)
    }
}

impl<'a, T: FromCql<'a> + Eq + Hash, S: BuildHasher + Default> FromCql<'a> for HashSet<T, S> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        let mut elements = HashSet::default();
        read_elements::<Self>(cql_type, value, |of, part| {
            elements.insert(T::from_cql(of, part)?);
            Ok(())
        })?;
        Ok(elements)
    }
}

impl<'a, T: FromCql<'a> + Ord> FromCql<'a> for BTreeSet<T> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        let mut elements = BTreeSet::new();
        read_elements::<Self>(cql_type, value, |of, part| {
            elements.insert(T::from_cql(of, part)?);
            Ok(())
        })?;
        Ok(elements)
    }
}

impl<K: ToCql, V: ToCql, S: BuildHasher> ToCql for HashMap<K, V, S> {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        let entries = self.iter().map(|(key, value)| (key as &dyn ToCql, value as &dyn ToCql));
        write_map::<Self>(entries, cql_type, out)
    }
}

impl<K: ToCql, V: ToCql> ToCql for BTreeMap<K, V> {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        let entries = self.iter().map(|(key, value)| (key as &dyn ToCql, value as &dyn ToCql));
        write_map::<Self>(entries, cql_type, out)
    }
}

impl<'a, K, V, S> FromCql<'a> for HashMap<K, V, S>
where
    K: FromCql<'a> + Eq + Hash,
    V: FromCql<'a>,
    S: BuildHasher + Default,
{
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        let mut map = HashMap::default();
        read_entries::<K, V, Self>(cql_type, value, |key, value| _ = map.insert(key, value))?;
        Ok(map)
    }
}

impl<'a, K: FromCql<'a> + Ord, V: FromCql<'a>> FromCql<'a> for BTreeMap<K, V> {
    fn from_cql(cql_type: &CqlType, value: Option<&'a [u8]>) -> Result<Self, ValueError> {
        let mut map = BTreeMap::new();
        read_entries::<K, V, Self>(cql_type, value, |key, value| _ = map.insert(key, value))?;
        Ok(map)
    }
}
