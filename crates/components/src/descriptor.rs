//! Names of table files: `da-<id>-bti-Data.db`, `nb-<id>-big-Data.db`.
//!
//! The id is a time-based UUID as Cassandra spells it: days, seconds of the day and 100 ns of the
//! second since 1582, then the clock sequence and node, each in base 36. Older files are numbered
//! (`nb-1-big-Data.db`): such a number is kept as a UUID of nothing else.
//!
//! ```text
//!   3gj5_0wc1_3vyps2bvkllgjm2qvf
//!   days seconds ticks  low 64 bits of the UUID
//! ```

use std::path::{Path, PathBuf};

use runtime::Disk;
use uuid::Uuid;

use crate::{Component, SstableError, Version};

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Which table file: directory, id and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Directory it lies in.
    pub directory: PathBuf,
    /// Its id, a version 1 UUID; or a number (see [`number_of`]).
    pub id: Uuid,
    /// Its version.
    pub version: Version,
}

impl Descriptor {
    /// The table file of that id in that directory, of the version we write.
    pub fn new(directory: impl Into<PathBuf>, id: Uuid) -> Self {
        Self::of_version(directory, id, Version::Da)
    }

    /// The table file of that id and version.
    pub fn of_version(directory: impl Into<PathBuf>, id: Uuid, version: Version) -> Self {
        Descriptor { directory: directory.into(), id, version }
    }

    /// The table file of that id, of whatever version is there; of ours when there is none.
    ///
    /// # Errors
    /// The disk fails, or the file is of a version we do not read.
    pub fn locate(disk: &dyn Disk, directory: &Path, id: Uuid) -> Result<Self, SstableError> {
        for version in Version::ALL {
            let descriptor = Self::of_version(directory, id, version);
            if disk.exists(&descriptor.path(Component::Toc))? {
                return Ok(descriptor);
            }
        }
        let entries = if disk.exists(directory)? { disk.list(directory)? } else { Vec::new() };
        let is_it = |name: &str| split(name).is_some_and(|(_, other, _, _)| other == id);
        if let Some(entry) = entries.iter().find(|entry| is_it(&entry.name)) {
            // Of a version that is known, its list of components is missing; else this says so.
            Self::from_path(&directory.join(&entry.name))?;
        }
        Ok(Self::new(directory, id))
    }

    /// Name of a component's file.
    pub fn file_name(&self, component: Component) -> String {
        let (version, format) = (self.version.name(), self.version.format());
        format!("{version}-{}-{format}-{}", id_to_text(self.id), component.file_suffix())
    }

    /// Path of a component's file.
    pub fn path(&self, component: Component) -> PathBuf {
        self.directory.join(self.file_name(component))
    }

    /// Table file and component that a path names.
    ///
    /// # Errors
    /// [`SstableError::FileName`] when it is not a table file's name, [`SstableError::Unsupported`]
    /// when it is one of a version we do not read.
    pub fn from_path(path: &Path) -> Result<(Descriptor, Component), SstableError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (version, id, format, component) =
            split(name).ok_or_else(|| SstableError::FileName { name: path.display().to_string() })?;
        let known =
            Version::ALL.into_iter().find(|known| (known.name(), known.format()) == (version, format));
        let version = known.ok_or_else(|| {
            let what = unknown_version(version, format);
            SstableError::Unsupported { path: path.to_owned(), what }
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Ok((Descriptor::of_version(directory, id, version), component))
    }
}

/// Version, id, format and component in the name of a table file of any version since Cassandra 2.2.
fn split(name: &str) -> Option<(&str, Uuid, &str, Component)> {
    let mut parts = name.splitn(4, '-');
    let (version, id, format) = (parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || !version.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    if format != Version::Da.format() && format != Version::Nb.format() {
        return None;
    }
    Some((version, id_from_text(id)?, format, Component::from_file_suffix(parts.next()?)?))
}

fn unknown_version(version: &str, format: &str) -> String {
    if format == Version::Nb.format() && version < Version::Nb.name() {
        return format!(
            "version {version} of the format big is older than nb: bring it to nb or later first, with upgradesstables of Cassandra 4 or 5"
        );
    }
    let newest = Version::ALL.into_iter().filter(|known| known.format() == format).map(Version::name).max();
    match newest.filter(|newest| version > *newest) {
        Some(newest) => format!(
            "version {version} of the format {format} is newer than {newest}, the newest that this program reads: it was written by a newer one"
        ),
        None => format!("version {version} of the format {format} is not known"),
    }
}

/// Id and component that a file name tells; `None` when it is not one of a `da` file with a UUID.
pub fn parse_file_name(name: &str) -> Option<(Uuid, Component)> {
    let (version, id, format, component) = split(name)?;
    let is_ours = (version, format) == (Version::Da.name(), Version::Da.format());
    (is_ours && number_of(id).is_none()).then_some((id, component))
}

/// The number that an id stands for; `None` when it is a UUID.
pub fn number_of(id: Uuid) -> Option<u64> {
    let (high, low) = id.as_u64_pair();
    (high == 0).then_some(low)
}

/// The id as in file names.
pub fn id_to_text(id: Uuid) -> String {
    if let Some(number) = number_of(id) {
        return number.to_string();
    }
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
    if (1..=19).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit) {
        return Some(Uuid::from_u64_pair(0, text.parse().ok()?));
    }
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
    fn files_of_the_format_big_have_numbers_or_uuids() {
        for name in
            ["nb-1-big-Index.db", "oa-3h5p_0l7x_23nru2quwer6bvboym-big-Summary.db", "da-7-bti-Data.db"]
        {
            let path = Path::new("/data/ks/t").join(name);
            let (descriptor, component) = Descriptor::from_path(&path).expect("a name");
            assert_eq!(descriptor.path(component), path);
        }
    }

    #[test]
    fn versions_that_are_not_read_are_named() {
        for version in ["me", "la", "pa"] {
            let name = format!("{version}-1-big-Data.db");
            let error = Descriptor::from_path(Path::new(&name)).expect_err("not read");
            assert!(error.to_string().contains(&format!("version {version}")), "{error}");
        }
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
