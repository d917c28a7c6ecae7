//! Statistics.db as a whole: four components, each with its checksum.
//!
//! ```text
//!   u32 component count | crc | (u32 type, u32 offset)* | crc | (component | crc)*
//!   types: 0 validation, 1 compaction, 2 stats, 3 header
//!   validation: UTF partitioner | f64 false positives of the filter
//!   compaction: u32 bytes | estimate of distinct keys
//! ```
//!
//! The second checksum covers the first count too.

use std::path::Path;

use stdx::cursor::{Cursor, EndOfInput};

use super::{Cardinality, Header, StatisticsChange, Stats};
use crate::data::ParseError;
use crate::{SstableError, Version};

const VALIDATION: u32 = 0;
const COMPACTION: u32 = 1;
const STATS: u32 = 2;
const HEADER: u32 = 3;
const COMPONENT_COUNT_MAX: u32 = 16;
const _: () = assert!(HEADER < COMPONENT_COUNT_MAX, "what is written can be read");

/// What is written into each table file; nothing else can be read.
pub(crate) const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// The content of Statistics.db.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) bloom_filter_fp_chance: f64,
    /// The compaction component, kept as it is.
    pub(crate) cardinality: Vec<u8>,
    pub(crate) stats: Stats,
    pub(crate) header: Header,
}

impl Statistics {
    pub(crate) fn new(
        bloom_filter_fp_chance: f64,
        cardinality: &Cardinality,
        stats: Stats,
        header: Header,
    ) -> Self {
        Statistics { bloom_filter_fp_chance, cardinality: cardinality.to_bytes(), stats, header }
    }

    /// `clustering`: length of the values of each clustering column, when all have the same.
    pub(crate) fn to_bytes(&self, clustering: &[Option<usize>]) -> Result<Vec<u8>, &'static str> {
        let mut validation = (PARTITIONER.len() as u16).to_be_bytes().to_vec();
        validation.extend_from_slice(PARTITIONER.as_bytes());
        validation.extend_from_slice(&self.bloom_filter_fp_chance.to_be_bytes());
        let mut compaction = (self.cardinality.len() as u32).to_be_bytes().to_vec();
        compaction.extend_from_slice(&self.cardinality);
        let mut stats = Vec::new();
        self.stats.write(clustering, &mut stats)?;
        let mut header = Vec::new();
        self.header.write(&mut header);
        Ok(assemble(&[(VALIDATION, validation), (COMPACTION, compaction), (STATS, stats), (HEADER, header)]))
    }

    pub(crate) fn from_bytes(path: &Path, version: Version, bytes: &[u8]) -> Result<Self, SstableError> {
        let damaged = |offset: usize, what| SstableError::Damaged {
            path: path.to_owned(),
            offset: offset as u64,
            what,
        };
        let places = read_places(path, bytes)?;
        let component = |kind: u32| -> Result<(&[u8], usize), SstableError> {
            let index = places.iter().position(|(of, _)| *of == kind);
            let index = index.ok_or_else(|| damaged(0, "a component of the statistics is missing"))?;
            let start = places[index].1;
            let end = places.get(index + 1).map_or(bytes.len(), |(_, offset)| *offset);
            let part = bytes.get(start..end).and_then(|part| part.split_last_chunk::<4>());
            let (part, crc) =
                part.ok_or_else(|| damaged(start, "a component of the statistics is cut off"))?;
            check(path, start, part, u32::from_be_bytes(*crc))?;
            Ok((part, start))
        };
        let (part, start) = component(VALIDATION)?;
        let bloom_filter_fp_chance = read_validation(part)
            .map_err(|end| damaged(start + end.offset, "validation component is cut off"))?
            .ok_or_else(|| {
                let what = "it was written by another partitioner than Murmur3Partitioner".into();
                SstableError::Unsupported { path: path.to_owned(), what }
            })?;
        let (part, start) = component(COMPACTION)?;
        let mut input = Cursor::new(part);
        let cardinality = input.u32().and_then(|length| input.take(length as usize)).map(<[u8]>::to_vec);
        let cardinality =
            cardinality.map_err(|end| damaged(start + end.offset, "compaction component is cut off"))?;
        let (part, start) = component(STATS)?;
        let mut input = Cursor::new(part);
        let stats = Stats::read(version, &mut input).map_err(|error| match error {
            ParseError::Short { .. } => damaged(start + input.position(), "stats component is cut off"),
            ParseError::Malformed(what) => damaged(start + input.position(), what),
        })?;
        let (part, start) = component(HEADER)?;
        let header = Header::read(&mut Cursor::new(part))
            .map_err(|end| damaged(start + end.offset, "header component is cut off"))?;
        Ok(Statistics { bloom_filter_fp_chance, cardinality, stats, header })
    }
}

/// Statistics with the level and the state of repair changed, all else as it was.
pub(crate) fn changed(
    path: &Path,
    version: Version,
    bytes: &[u8],
    change: StatisticsChange,
) -> Result<Vec<u8>, SstableError> {
    let damaged =
        |offset: usize, what| SstableError::Damaged { path: path.to_owned(), offset: offset as u64, what };
    // Checks all of it.
    Statistics::from_bytes(path, version, bytes)?;
    let places = read_places(path, bytes)?;
    let mut components = Vec::with_capacity(places.len());
    for (index, (kind, start)) in places.iter().enumerate() {
        let end = places.get(index + 1).map_or(bytes.len(), |(_, offset)| *offset);
        let part = bytes.get(*start..end).and_then(|part| part.split_last_chunk::<4>());
        let (part, _) = part.ok_or_else(|| damaged(*start, "a component of the statistics is cut off"))?;
        let mut part = part.to_vec();
        if *kind == STATS {
            change_stats(version, &mut part, change).map_err(|what| damaged(*start, what))?;
        }
        components.push((*kind, part));
    }
    Ok(assemble(&components))
}

fn change_stats(version: Version, part: &mut Vec<u8>, change: StatisticsChange) -> Result<(), &'static str> {
    let cut = "stats component is cut off";
    let level = Stats::level_place(version, part).map_err(|_| cut)?;
    let pending = Stats::pending_repair_place(version, part).map_err(|_| cut)?;
    let mut set = |at: usize, bytes: &[u8]| -> Result<(), &'static str> {
        part.get_mut(at..at + bytes.len()).ok_or(cut)?.copy_from_slice(bytes);
        Ok(())
    };
    if let Some(value) = change.level {
        set(level, &value.to_be_bytes())?;
    }
    if let Some(value) = change.repaired_at {
        set(level + 4, &value.to_be_bytes())?;
    }
    if let Some(session) = change.pending_repair {
        let old_bytes = if *part.get(pending).ok_or(cut)? == 0 { 1 } else { 17 };
        let mut new = vec![u8::from(session.is_some())];
        new.extend(session.iter().flat_map(|id| id.into_bytes()));
        if pending + old_bytes > part.len() {
            return Err(cut);
        }
        part.splice(pending..pending + old_bytes, new);
    }
    Ok(())
}

/// Statistics of those components, by rising type.
fn assemble(components: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = (components.len() as u32).to_be_bytes().to_vec();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&out);
    out.extend_from_slice(&crc.clone().finalize().to_be_bytes());
    let mut offset = 4 + 4 + components.len() * 8 + 4;
    let start = out.len();
    for (kind, component) in components {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&(offset as u32).to_be_bytes());
        offset += component.len() + 4;
    }
    crc.update(&out[start..]);
    out.extend_from_slice(&crc.finalize().to_be_bytes());
    for (_, component) in components {
        out.extend_from_slice(component);
        out.extend_from_slice(&crc32fast::hash(component).to_be_bytes());
    }
    out
}

/// Sets the checksums right in bytes that may be anything: for fuzzing, which could not get past
/// them otherwise.
pub(crate) fn correct_checksums(bytes: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?) as usize)
    };
    let set = |bytes: &mut [u8], at: usize, crc: u32| {
        if let Some(place) = bytes.get_mut(at..at.saturating_add(4)) {
            place.copy_from_slice(&crc.to_be_bytes());
        }
    };
    let Some(count) = word(bytes, 0).filter(|count| *count <= COMPONENT_COUNT_MAX as usize) else { return };
    let list_end = 8 + count * 8;
    let Some(list) = bytes.get(8..list_end) else { return };
    let all = crc32fast::hash(&[&bytes[..4], list].concat());
    let count_crc = crc32fast::hash(&bytes[..4]);
    set(bytes, 4, count_crc);
    set(bytes, list_end, all);
    for index in 0..count {
        let start = word(bytes, 8 + index * 8 + 4).unwrap_or(0);
        let next = if index + 1 < count { word(bytes, 8 + index * 8 + 12) } else { Some(bytes.len()) };
        let end = next.and_then(|next| next.checked_sub(4)).unwrap_or(0);
        if let Some(crc) = bytes.get(start..end).map(crc32fast::hash) {
            set(bytes, end, crc);
        }
    }
}

fn check(path: &Path, offset: usize, bytes: &[u8], expected: u32) -> Result<(), SstableError> {
    let got = crc32fast::hash(bytes);
    if got == expected {
        return Ok(());
    }
    Err(SstableError::Checksum { path: path.to_owned(), offset: offset as u64, expected, got })
}

/// Type and offset of each component, by rising offset.
fn read_places(path: &Path, bytes: &[u8]) -> Result<Vec<(u32, usize)>, SstableError> {
    let damaged = |offset: u64, what| SstableError::Damaged { path: path.to_owned(), offset, what };
    let cut = |end: EndOfInput| damaged(end.offset as u64, "statistics are cut off");
    let mut input = Cursor::new(bytes);
    let count = input.u32().map_err(cut)?;
    check(path, 0, &bytes[..4], input.u32().map_err(cut)?)?;
    if count > COMPONENT_COUNT_MAX {
        return Err(damaged(0, "count of components of the statistics"));
    }
    let list = input.take(count as usize * 8).map_err(cut)?;
    let expected = input.u32().map_err(cut)?;
    check(path, 8, &[&bytes[..4], list].concat(), expected)?;
    let places: Vec<(u32, usize)> = list
        .as_chunks::<4>()
        .0
        .chunks_exact(2)
        .map(|pair| (u32::from_be_bytes(pair[0]), u32::from_be_bytes(pair[1]) as usize))
        .collect();
    if !places.is_sorted_by_key(|(_, offset)| *offset) {
        return Err(damaged(8, "components of the statistics are not in order"));
    }
    Ok(places)
}

/// `Ok(None)` for a partitioner that is not ours.
fn read_validation(part: &[u8]) -> Result<Option<f64>, EndOfInput> {
    let mut input = Cursor::new(part);
    let length = usize::from(input.u16()?);
    let partitioner = input.take(length)?;
    let chance = f64::from_bits(input.u64()?);
    Ok((partitioner == PARTITIONER.as_bytes()).then_some(chance))
}
