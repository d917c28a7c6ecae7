//! Clusterings and bounds in files.
//!
//! ```text
//!   for each 32 components: vint of two bits each (1 empty, 2 null, 0 a value) | the values
//!   bound or boundary: u8 kind | u16 component count | components
//! ```

use rows::{Bound, BoundKind, Clustering, Marker};
use stdx::cursor::{Cursor, EndOfInput};
use stdx::vint;

use super::ParseError;

const BATCH: usize = 32;
const EMPTY: u64 = 1;
const NULL: u64 = 2;

/// Kinds of bounds as files number them.
const EXCLUSIVE_END: u8 = 0;
const INCLUSIVE_START: u8 = 1;
const EXCLUSIVE_END_INCLUSIVE_START: u8 = 2;
const INCLUSIVE_END_EXCLUSIVE_START: u8 = 5;
const INCLUSIVE_END: u8 = 6;
const EXCLUSIVE_START: u8 = 7;

/// Appends components. Fails on a value that has not the length of its type.
pub(crate) fn write_components<'a>(
    lengths: &[Option<usize>],
    components: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let mut rest = components;
    for lengths in lengths.chunks(BATCH) {
        let mut header = 0;
        let mut count = 0;
        for (index, component) in rest.clone().take(lengths.len()).enumerate() {
            header |= match component {
                None => NULL,
                Some(b"") => EMPTY,
                Some(_) => 0,
            } << (index * 2);
            count += 1;
        }
        if count == 0 {
            break;
        }
        vint::write_unsigned(header, out);
        for (length, component) in lengths.iter().zip(rest.by_ref().take(count)) {
            match component {
                Some(value) if !value.is_empty() => super::write_value(*length, value, out)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads `count` components and appends them in the form of [`Clustering`].
pub(crate) fn read_components(
    lengths: &[Option<usize>],
    count: usize,
    input: &mut Cursor<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let lengths = lengths.get(..count).ok_or(ParseError::Malformed("more clustering values than columns"))?;
    for lengths in lengths.chunks(BATCH) {
        let header = input.vint()?;
        for (index, length) in lengths.iter().enumerate() {
            match header >> (index * 2) & 3 {
                0 => {
                    let value = super::read_value(*length, input)?;
                    let bytes = i32::try_from(value.len())
                        .map_err(|_| ParseError::Malformed("a clustering value is too long"))?;
                    out.extend_from_slice(&bytes.to_be_bytes());
                    out.extend_from_slice(value);
                }
                EMPTY => out.extend_from_slice(&0i32.to_be_bytes()),
                _ => out.extend_from_slice(&(-1i32).to_be_bytes()),
            }
        }
    }
    Ok(())
}

/// The kind under which a file keeps a marker.
pub(crate) fn marker_kind(marker: &Marker) -> u8 {
    match (marker.left.is_live(), marker.right.is_live(), marker.is_before) {
        (false, false, true) => EXCLUSIVE_END_INCLUSIVE_START,
        (false, false, false) => INCLUSIVE_END_EXCLUSIVE_START,
        (true, _, true) => INCLUSIVE_START,
        (true, _, false) => EXCLUSIVE_START,
        (false, true, true) => EXCLUSIVE_END,
        (false, true, false) => INCLUSIVE_END,
    }
}

/// What a kind says of a marker: is it before its prefix, does it end a range, start one?
pub(crate) fn marker_sides(kind: u8) -> Option<(bool, bool, bool)> {
    Some(match kind {
        EXCLUSIVE_END => (true, true, false),
        INCLUSIVE_START => (true, false, true),
        EXCLUSIVE_END_INCLUSIVE_START => (true, true, true),
        INCLUSIVE_END_EXCLUSIVE_START => (false, true, true),
        INCLUSIVE_END => (false, true, false),
        EXCLUSIVE_START => (false, false, true),
        _ => return None,
    })
}

/// Appends a bound, as Statistics.db keeps the covered slice.
pub(crate) fn write_bound(
    lengths: &[Option<usize>],
    bound: &Bound,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    out.push(match bound.kind {
        BoundKind::ExclusiveEnd => EXCLUSIVE_END,
        BoundKind::InclusiveStart => INCLUSIVE_START,
        BoundKind::InclusiveEnd => INCLUSIVE_END,
        BoundKind::ExclusiveStart => EXCLUSIVE_START,
    });
    let count = bound.prefix.components().count();
    out.extend_from_slice(&(count as u16).to_be_bytes());
    write_components(lengths, bound.prefix.components(), out)
}

/// Reads a bound.
pub(crate) fn read_bound(lengths: &[Option<usize>], input: &mut Cursor<'_>) -> Result<Bound, ParseError> {
    let kind = match input.u8()? {
        EXCLUSIVE_END => BoundKind::ExclusiveEnd,
        INCLUSIVE_START => BoundKind::InclusiveStart,
        INCLUSIVE_END => BoundKind::InclusiveEnd,
        EXCLUSIVE_START => BoundKind::ExclusiveStart,
        _ => return Err(ParseError::Malformed("kind of a bound")),
    };
    let count = usize::from(input.u16()?);
    let mut encoded = Vec::new();
    read_components(lengths, count, input, &mut encoded)?;
    let prefix = Clustering::from_encoded(encoded.into());
    Ok(Bound { kind, prefix: prefix.map_err(|_| ParseError::Malformed("prefix of a bound"))? })
}

impl From<EndOfInput> for ParseError {
    fn from(end: EndOfInput) -> Self {
        ParseError::Short { wanted_bytes: end.offset.saturating_add(end.wanted_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rows::ClusteringBuilder;

    #[test]
    fn nulls_empties_and_many_components_come_back() {
        let lengths: Vec<Option<usize>> = (0..70).map(|i| (i % 3 == 0).then_some(4)).collect();
        let mut builder = ClusteringBuilder::new();
        for index in 0..70 {
            builder.push(match index % 3 {
                0 => Some(&[0, 0, 0, 7]),
                1 => Some(b""),
                _ => None,
            });
        }
        let clustering = builder.finish();
        for kind in [BoundKind::InclusiveStart, BoundKind::ExclusiveEnd] {
            let bound = Bound { kind, prefix: clustering.clone() };
            let mut out = Vec::new();
            write_bound(&lengths, &bound, &mut out).expect("fits");
            assert_eq!(read_bound(&lengths, &mut Cursor::new(&out)).expect("sound"), bound);
        }
    }

    #[test]
    fn value_of_wrong_length_is_refused() {
        let value: [Option<&[u8]>; 1] = [Some(b"abc")];
        assert!(write_components(&[Some(4)], value.into_iter(), &mut Vec::new()).is_err());
    }
}
