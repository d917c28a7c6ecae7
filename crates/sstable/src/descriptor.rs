//! Names of table files: `da-<id>-bti-Data.db`.
//!
//! The id is a time-based UUID as Cassandra spells it: days, seconds of the day and 100 ns of the
//! second since 1582, then the clock sequence and node, each in base 36.
//!
//! ```text
//!   3gj5_0wc1_3vyps2bvkllgjm2qvf
//!   days seconds ticks  low 64 bits of the UUID
//! ```

use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::{Component, SstableError};

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
/// Version and format in each file name.
const VERSION: &str = "da";
const FORMAT: &str = "bti";

/// Which table file: directory and id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Directory it lies in.
    pub directory: PathBuf,
    /// Its id, a version 1 UUID.
    pub id: Uuid,
}

impl Descriptor {
    /// The table file of that id in that directory.
    pub fn new(directory: impl Into<PathBuf>, id: Uuid) -> Self {
        Descriptor { directory: directory.into(), id }
    }

    /// Name of a component's file.
    pub fn file_name(&self, component: Component) -> String {
        format!("{VERSION}-{}-{FORMAT}-{}", id_to_text(self.id), component.file_suffix())
    }

    /// Path of a component's file.
    pub fn path(&self, component: Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }

    /// Table file and component that a path names.
    ///
    /// # Errors
    /// [`SstableError::FileName`] when it is not a `da` file's name.
    pub fn from_path(path: &Path) -> Result<(Descriptor, Component), SstableError> {
        let parsed = path.file_name().and_then(|name| name.to_str()).and_then(parse_file_name);
        let (id, component) =
            parsed.ok_or_else(|| SstableError::FileName { name: path.display().to_string() })?;
        Ok((Descriptor::new(path.parent().unwrap_or(Path::new("")), id), component))
    }
}

/// Id and component that a file name tells; `None` when it is not a `da` file's.
pub fn parse_file_name(name: &str) -> Option<(Uuid, Component)> {
    let mut parts = name.splitn(4, '-');
    let (version, id, format) = (parts.next()?, parts.next()?, parts.next()?);
    if version != VERSION || format != FORMAT {
        return None;
    }
    Some((id_from_text(id)?, Component::from_file_suffix(parts.next()?)?))
}

/// The id as in file names.
pub fn id_to_text(id: Uuid) -> String {
    let (timestamp, low) = timestamp_and_low(id);
    let ticks = timestamp % TICKS_PER_SECOND;
    let seconds = timestamp / TICKS_PER_SECOND % SECONDS_PER_DAY;
    let days = timestamp / TICKS_PER_SECOND / SECONDS_PER_DAY;
    let mut text = String::with_capacity(28);
    push_base36(&mut text, days, 4);
    text.push('_');
    push_base36(&mut text, seconds, 4);
    text.push('_');
    push_base36(&mut text, ticks, 5);
    push_base36(&mut text, low, 13);
    text
}

/// The id that a file name spells.
pub fn id_from_text(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    if bytes.len() != 28 || !text.is_ascii() || bytes[4] != b'_' || bytes[9] != b'_' {
        return None;
    }
    let days = parse_base36(&text[..4])?;
    let seconds = parse_base36(&text[5..9])?;
    let ticks = parse_base36(&text[10..15])?;
    let low = parse_base36(&text[15..])?;
    let timestamp = (days * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND + ticks;
    let high = timestamp << 32 | (timestamp >> 32 & 0xffff) << 16 | 0x1000 | timestamp >> 48 & 0xfff;
    Some(Uuid::from_u64_pair(high, low))
}

fn timestamp_and_low(id: Uuid) -> (u64, u64) {
    let (high, low) = id.as_u64_pair();
    (high >> 32 | (high >> 16 & 0xffff) << 32 | (high & 0xfff) << 48, low)
}

fn push_base36(text: &mut String, mut value: u64, width: usize) {
    let mut digits = [b'0'; 13];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
    text.extend(digits[first.min(digits.len() - width)..].iter().map(|digit| char::from(*digit)));
}

fn parse_base36(text: &str) -> Option<u64> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    digits_only.then(|| u64::from_str_radix(text, 36).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_written_by_cassandra_read_and_write_the_same() {
        for text in ["3h5p_0l7x_23nru2quwer6bvboym", "3gj5_0wc1_3vyps2bvkllgjm2qvf"] {
            let id = id_from_text(text).expect("an id");
            assert_eq!(id.get_version_num(), 1);
            assert_eq!(id_to_text(id), text);
        }
    }

    #[test]
    fn path_names_table_file_and_component() {
        let path = Path::new("/data/ks/t/da-3h5p_0l7x_23nru2quwer6bvboym-bti-Digest.crc32");
        let (descriptor, component) = Descriptor::from_path(path).expect("a name");
        assert_eq!(component, Component::Digest);
        assert_eq!(descriptor.path(component), path);
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "nb-1-big-Data.db",
            "da-3h5p_0l7x_23nru2quwer6bvboy-bti-Data.db",
            "da-3h5p_0l7x_+3nru2quwer6bvboym-bti-Data.db",
            "da-3h5p_0l7x_23nruzzzzzzzzzzzzz-bti-Data.db",
            "da-3h5p_0l7x_23nru2quwer6bvboym-bti-Other.db",
        ] {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
    }
}
