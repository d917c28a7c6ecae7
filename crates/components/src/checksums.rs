//! Checksums.db: what Cassandra's `da` leaves unchecked. See `docs/formats/checksums.md`.
//!
//! `da` has checksums for Data and for all of Statistics. For the other components this component
//! of ours keeps the length and a CRC32 of every 4 KiB page:
//!
//! ```text
//!   "PCHK" | u16 version = 1 | u16 file count
//!   for each file: u8 name bytes | name (as in the file name: "Rows.db") | u64 file bytes
//!                  | u32 CRC of each page, the last one shorter
//!   u32 CRC of everything before
//! ```
//!
//! Integers are big-endian. Cassandra takes the component, listed in TOC.txt, for a custom one: it
//! ignores it, and deletes it with its file.

use std::path::Path;

use runtime::Disk;
use stdx::cursor::{Cursor, EndOfInput};

use crate::{Component, Descriptor, SstableError};

/// What one checksum covers.
pub const PAGE_BYTES: usize = 4096;
const _: () = assert!(PAGE_BYTES == 4096, "the files that are there have pages of this size");
const _: () = assert!(PAGE_BYTES == trie::PAGE_BYTES, "a page of an index is checked as it is read");
const _: () = assert!(COVERED.len() < Component::ALL.len(), "Data, Statistics and this one are not covered");

const MAGIC: &[u8; 4] = b"PCHK";
const VERSION: u16 = 1;

/// Components that Checksums.db covers when they are there; TOC.txt, written after it, by what will be
/// in it. Statistics has checksums of its own and
/// is the one that changes in a finished file: a crash between two files must not tear them.
pub(crate) const COVERED: [Component; 9] = [
    Component::Partitions,
    Component::Rows,
    Component::Index,
    Component::Summary,
    Component::Filter,
    Component::CompressionInfo,
    Component::Crc,
    Component::Digest,
    Component::Toc,
];

/// Length of a file and the checksums of its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksums {
    /// Bytes of the file.
    pub(crate) file_bytes: u64,
    /// A CRC32 of each page.
    pub(crate) pages: Vec<u32>,
}

impl FileChecksums {
    /// Of bytes at hand.
    pub fn of(bytes: &[u8]) -> Self {
        let pages = bytes.chunks(PAGE_BYTES).map(crc32fast::hash).collect();
        FileChecksums { file_bytes: bytes.len() as u64, pages }
    }

    /// Checks a page that was read from `path`.
    pub(crate) fn check_page(&self, path: &Path, index: u32, page: &[u8]) -> Result<(), SstableError> {
        let offset = u64::from(index) * PAGE_BYTES as u64;
        let Some(&expected) = self.pages.get(index as usize) else {
            let what = "a page that has no checksum";
            return Err(SstableError::Damaged { path: path.to_owned(), offset, what });
        };
        let got = crc32fast::hash(page);
        if got != expected {
            return Err(SstableError::Checksum { path: path.to_owned(), offset, expected, got });
        }
        Ok(())
    }

    /// Checks the whole of a file.
    pub(crate) fn check(&self, path: &Path, bytes: &[u8]) -> Result<(), SstableError> {
        self.check_length(path, bytes.len() as u64)?;
        for (index, page) in (0..).zip(bytes.chunks(PAGE_BYTES)) {
            self.check_page(path, index, page)?;
        }
        Ok(())
    }

    /// Checks the length of a file.
    pub(crate) fn check_length(&self, path: &Path, file_bytes: u64) -> Result<(), SstableError> {
        if file_bytes != self.file_bytes {
            let what = "the file has not the length it was written with";
            return Err(SstableError::Damaged { path: path.to_owned(), offset: file_bytes, what });
        }
        Ok(())
    }
}

/// The content of Checksums.db.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Checksums {
    files: Vec<(Component, FileChecksums)>,
}

impl Checksums {
    /// Adds a component.
    pub(crate) fn add(&mut self, component: Component, checksums: FileChecksums) {
        assert!(COVERED.contains(&component), "the component has no checksums elsewhere");
        assert!(self.of(component).is_none(), "a component is listed once");
        self.files.push((component, checksums));
    }

    /// Those of a component.
    pub(crate) fn of(&self, component: Component) -> Option<&FileChecksums> {
        self.files.iter().find(|(other, _)| *other == component).map(|(_, checksums)| checksums)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&(self.files.len() as u16).to_be_bytes());
        for (component, checksums) in &self.files {
            let name = component.file_suffix().as_bytes();
            out.push(name.len() as u8);
            out.extend_from_slice(name);
            out.extend_from_slice(&checksums.file_bytes.to_be_bytes());
            checksums.pages.iter().for_each(|page| out.extend_from_slice(&page.to_be_bytes()));
        }
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, SstableError> {
        let damaged = |offset: usize, what| SstableError::Damaged {
            path: path.to_owned(),
            offset: offset as u64,
            what,
        };
        let Some((body, crc)) = bytes.split_last_chunk::<4>() else {
            return Err(damaged(0, "too short for checksums"));
        };
        let (expected, got) = (u32::from_be_bytes(*crc), crc32fast::hash(body));
        if got != expected {
            return Err(SstableError::Checksum { path: path.to_owned(), offset: 0, expected, got });
        }
        let mut input = Cursor::new(body);
        if input.take(4).ok() != Some(MAGIC.as_slice()) {
            return Err(damaged(0, "not a file of checksums"));
        }
        match input.u16() {
            Ok(VERSION) => {}
            Ok(other) => {
                let what = format!("version {other} of checksums is not known");
                return Err(SstableError::Unsupported { path: path.to_owned(), what });
            }
            Err(_) => return Err(damaged(4, "version of checksums")),
        }
        let files = read_files(&mut input).map_err(|end| damaged(end.offset, "list of checksums"))?;
        Ok(Checksums { files })
    }
}

fn read_files(input: &mut Cursor<'_>) -> Result<Vec<(Component, FileChecksums)>, EndOfInput> {
    let mut files = Vec::new();
    for _ in 0..input.u16()? {
        let name_bytes = usize::from(input.u8()?);
        let name = std::str::from_utf8(input.take(name_bytes)?).unwrap_or_default();
        let file_bytes = input.u64()?;
        let page_count = usize::try_from(file_bytes.div_ceil(PAGE_BYTES as u64)).unwrap_or(usize::MAX);
        let pages = input.take(page_count.saturating_mul(4))?;
        let pages = pages.as_chunks::<4>().0.iter().map(|page| u32::from_be_bytes(*page)).collect();
        // A component of a later version of us: not ours to check.
        if let Some(component) = Component::from_file_suffix(name) {
            files.push((component, FileChecksums { file_bytes, pages }));
        }
    }
    Ok(files)
}

/// Writes Checksums.db for a table file that has none: one that Cassandra wrote. Lists it in
/// TOC.txt too. What is read here becomes what counts as whole; verify the file afterwards.
///
/// # Errors
/// The disk fails.
pub fn write_checksums(disk: &dyn Disk, descriptor: &Descriptor) -> Result<(), SstableError> {
    let mut checksums = Checksums::default();
    let mut present = Vec::new();
    for component in Component::ALL {
        let path = descriptor.path(component);
        if !disk.exists(&path)? {
            continue;
        }
        present.push(component);
        if COVERED.contains(&component) && component != Component::Toc {
            checksums.add(component, FileChecksums::of(&disk.read(&path)?));
        }
    }
    if !present.contains(&Component::Checksums) {
        present.push(Component::Checksums);
    }
    let list = crate::toc::component_list(&present);
    checksums.add(Component::Toc, FileChecksums::of(list.as_bytes()));
    disk.write_atomically(&descriptor.path(Component::Checksums), &checksums.to_bytes())?;
    disk.write_atomically(&descriptor.path(Component::Toc), list.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checksums {
        let mut checksums = Checksums::default();
        checksums.add(Component::Rows, FileChecksums::of(&[7; 5000]));
        checksums.add(Component::Filter, FileChecksums::of(b""));
        checksums
    }

    #[test]
    fn checksums_round_trip() {
        let bytes = sample().to_bytes();
        assert_eq!(Checksums::from_bytes(Path::new("c"), &bytes).expect("sound"), sample());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = sample().to_bytes();
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 1 << (index % 8);
            assert!(Checksums::from_bytes(Path::new("c"), &flipped).is_err(), "byte {index}");
        }
    }

    #[test]
    fn changed_page_is_named() {
        let checksums = sample();
        let rows = checksums.of(Component::Rows).expect("kept");
        let mut bytes = vec![7; 5000];
        rows.check(Path::new("r"), &bytes).expect("as written");
        bytes[4500] = 8;
        let error = rows.check(Path::new("r"), &bytes).expect_err("changed");
        assert!(matches!(error, SstableError::Checksum { offset: 4096, .. }), "{error}");
    }

    #[test]
    fn a_component_that_is_listed_twice_is_seen() {
        let mut checksums = Checksums::default();
        let mut add = |component| {
            let of = FileChecksums::of(b"");
            runtime::caught(|| checksums.add(component, of)).err().map(|panicked| panicked.what)
        };
        assert_eq!(add(Component::Rows), None);
        assert_eq!(add(Component::Rows).as_deref(), Some("a component is listed once"));
        let elsewhere = add(Component::Data);
        assert_eq!(elsewhere.as_deref(), Some("the component has no checksums elsewhere"));
    }
}
