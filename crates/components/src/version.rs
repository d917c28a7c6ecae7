//! Versions of Cassandra's table files.
//!
//! `da` is the BTI format of Cassandra 5 and what we write. `nb` (4.0 and later, and 5.0 in its
//! compatibility mode) and `oa` (5.0) are versions of the format `big`, which we read.

use std::fmt;

/// A version we read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// BTI, Cassandra 5: read and written.
    #[default]
    Da,
    /// `big`, Cassandra 4.0 and later: read.
    Nb,
    /// `big`, Cassandra 5: read.
    Oa,
}

impl Version {
    /// All of them, the one we write first.
    pub const ALL: [Version; 3] = [Version::Da, Version::Nb, Version::Oa];

    /// As in file names.
    pub fn name(self) -> &'static str {
        match self {
            Version::Da => "da",
            Version::Nb => "nb",
            Version::Oa => "oa",
        }
    }

    /// The format's name in file names.
    pub fn format(self) -> &'static str {
        if self.is_big() { "big" } else { "bti" }
    }

    /// Is it the one that Cassandra 5 writes in its format?
    pub fn is_current(self) -> bool {
        self.has_unsigned_times()
    }

    /// Has it Index and Summary instead of Partitions and Rows?
    #[inline]
    pub fn is_big(self) -> bool {
        self != Version::Da
    }

    /// Are deletion times unsigned, and live ones one byte? Before, they ended in 2038.
    #[inline]
    pub fn has_unsigned_times(self) -> bool {
        self != Version::Nb
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
