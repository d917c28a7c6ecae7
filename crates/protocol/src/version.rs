//! Protocol versions and how they are named to clients.

use std::fmt;

/// A version of the native protocol that is spoken here.
///
/// Version 6 is a beta in Cassandra: only taken from clients that set [`Flags::USE_BETA`], and
/// laid out as version 5.
///
/// [`Flags::USE_BETA`]: crate::Flags::USE_BETA
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Plain envelopes, body compression.
    V3 = 3,
    /// As 3, with unset values, warnings, custom payloads and more types.
    V4 = 4,
    /// Checksummed segments, per-request keyspace, result metadata ids, failure reasons.
    V5 = 5,
    /// Beta; as 5.
    V6 = 6,
}

impl Version {
    /// The newest version that is not a beta; its number is put into errors about versions.
    pub const CURRENT: Version = Version::V5;

    /// All versions, oldest first.
    pub const ALL: [Version; 4] = [Version::V3, Version::V4, Version::V5, Version::V6];

    /// The version of a number (the first header byte without the direction bit), if spoken.
    pub fn from_number(number: u8) -> Option<Version> {
        match number {
            3 => Some(Version::V3),
            4 => Some(Version::V4),
            5 => Some(Version::V5),
            6 => Some(Version::V6),
            _ => None,
        }
    }

    /// Its number on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Does a client have to ask for it with the beta flag?
    pub fn is_beta(self) -> bool {
        self == Version::V6
    }

    /// Are envelopes carried in segments once the connection is established?
    pub fn uses_segments(self) -> bool {
        self >= Version::V5
    }

    /// Its name in SUPPORTED and in error texts: `5/v5`.
    pub fn name(self) -> &'static str {
        match self {
            Version::V3 => "3/v3",
            Version::V4 => "4/v4",
            Version::V5 => "5/v5",
            Version::V6 => "6/v6-beta",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
