//! The beginning of a connection: STARTUP's options, and what may be asked when.

use crate::{Compression, Opcode, ProtocolError, Version};

/// The CQL version told in SUPPORTED.
pub const CQL_VERSION: &str = "3.4.7";

/// SUPPORTED's options, in the order Cassandra sends them.
pub fn supported_options() -> Vec<(String, Vec<String>)> {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    vec![
        ("PROTOCOL_VERSIONS".to_owned(), strings(&Version::ALL.map(Version::name))),
        ("COMPRESSION".to_owned(), strings(&[Compression::Snappy.name(), Compression::Lz4.name()])),
        ("CQL_VERSION".to_owned(), strings(&[CQL_VERSION])),
    ]
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stage {
    /// Nothing but OPTIONS and STARTUP is heard.
    #[default]
    Startup,
    /// AUTHENTICATE was sent: nothing but AUTH_RESPONSE is heard.
    Authentication,
    /// Everything but another STARTUP is heard.
    Ready,
}

impl Stage {
    /// May this be asked now?
    ///
    /// # Errors
    /// With Cassandra's words for it. In [`Stage::Startup`], before any STARTUP was received, the
    /// connection is closed after the error; otherwise it goes on.
    pub fn check(self, opcode: Opcode) -> Result<(), ProtocolError> {
        match (self, opcode) {
            (Stage::Startup, Opcode::Startup | Opcode::Options) => Ok(()),
            (Stage::Startup, opcode) => Err(ProtocolError::BeforeStartup { opcode }),
            (Stage::Authentication, Opcode::AuthResponse) => Ok(()),
            (Stage::Authentication, opcode) => Err(ProtocolError::BeforeAuthentication { opcode }),
            (Stage::Ready, Opcode::Startup) => Err(ProtocolError::StartupTwice),
            (Stage::Ready, _) => Ok(()),
        }
    }
}

/// What a client said in STARTUP, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartupOptions {
    /// How to compress from now on.
    pub compression: Option<Compression>,
    /// Answer `Overloaded` rather than read no further.
    pub throw_on_overload: bool,
    /// `DRIVER_NAME`.
    pub driver_name: Option<String>,
    /// `DRIVER_VERSION`.
    pub driver_version: Option<String>,
    /// Everything, keys in upper case, for `system_views.clients`.
    pub all: Vec<(String, String)>,
}

impl StartupOptions {
    /// Checks the options of a STARTUP received in a version. Unknown keys are ignored; of a
    /// repeated key the last value counts.
    ///
    /// # Errors
    /// A CQL version that is missing, malformed or older than 3, or a compression that is unknown
    /// or does not go with the version.
    pub fn check(options: &[(String, String)], version: Version) -> Result<StartupOptions, ProtocolError> {
        let mut all: Vec<(String, String)> = Vec::with_capacity(options.len().min(64));
        for (key, value) in options {
            let key = key.to_uppercase();
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known_value)) => known_value.clone_from(value),
                None => all.push((key, value.clone())),
            }
        }
        let get = |key: &str| all.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        check_cql_version(get("CQL_VERSION").ok_or(ProtocolError::CqlVersionMissing)?)?;
        Ok(StartupOptions {
            compression: get("COMPRESSION").map(|name| check_compression(name, version)).transpose()?,
            throw_on_overload: get("THROW_ON_OVERLOAD") == Some("1"),
            driver_name: get("DRIVER_NAME").map(str::to_owned),
            driver_version: get("DRIVER_VERSION").map(str::to_owned),
            all,
        })
    }
}

fn check_compression(name: &str, version: Version) -> Result<Compression, ProtocolError> {
    match name.to_lowercase().as_str() {
        "snappy" if version.uses_segments() => Err(ProtocolError::SnappyInSegments),
        "snappy" => Ok(Compression::Snappy),
        "lz4" => Ok(Compression::Lz4),
        name => Err(ProtocolError::UnknownCompression { name: name.to_owned() }),
    }
}

/// Cassandra takes any version from 2.99.0 on, written `major.minor` with anything version-like
/// after it.
fn check_cql_version(version: &str) -> Result<(), ProtocolError> {
    let invalid = || ProtocolError::CqlVersionInvalid { version: version.to_owned() };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
    let (major, rest) = version.split_once('.').ok_or_else(invalid)?;
    let minor_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, suffix) = rest.split_at(minor_end);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let suffix_is_fine = suffix.is_empty()
        || (suffix.starts_with(['.', '-', '+']) && suffix.len() > 1 && suffix.chars().all(is_allowed));
    if !is_number(major) || !is_number(minor) || !suffix_is_fine {
        return Err(invalid());
    }
    let major: u32 = major.parse().map_err(|_| invalid())?;
    let minor: u32 = minor.parse().map_err(|_| invalid())?;
    match (major, minor) >= (2, 99) {
        true => Ok(()),
        false => Err(ProtocolError::CqlVersionTooOld { version: version.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&str, &str)], version: Version) -> Result<StartupOptions, String> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        StartupOptions::check(&pairs, version).map_err(|error| error.to_string())
    }

    #[test]
    fn cql_versions_are_judged_as_by_cassandra() {
        for version in ["3.0.0", "3.4.7", "3.9.9", "4.0.0", "3.0.0-beta1", "3.4"] {
            assert!(check(&[("CQL_VERSION", version)], Version::V4).is_ok(), "{version}");
        }
        for (version, text) in [
            (
                "2.0.0",
                "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)",
            ),
            ("abc", "Invalid version value: abc"),
            ("3", "Invalid version value: 3"),
            ("", "Invalid version value: "),
        ] {
            assert_eq!(check(&[("CQL_VERSION", version)], Version::V4), Err(text.to_owned()));
        }
        assert_eq!(check(&[], Version::V4), Err("Missing value CQL_VERSION in STARTUP message".to_owned()));
    }

    #[test]
    fn compressions_are_judged_as_by_cassandra() {
        let with = |name: &str, version| {
            check(&[("cql_version", "3.0.0"), ("COMPRESSION", name)], version)
                .map(|options| options.compression)
        };
        assert_eq!(with("LZ4", Version::V5), Ok(Some(Compression::Lz4)));
        assert_eq!(with("Snappy", Version::V4), Ok(Some(Compression::Snappy)));
        let snappy = "Snappy compression is not supported in protocol V5".to_owned();
        assert_eq!(with("snappy", Version::V5), Err(snappy));
        assert_eq!(with("zstd", Version::V4), Err("Unknown compression algorithm: zstd".to_owned()));
    }

    #[test]
    fn each_stage_hears_its_own_messages() {
        let text = |stage: Stage, opcode| stage.check(opcode).map_err(|error| error.to_string());
        assert_eq!(text(Stage::Startup, Opcode::Options), Ok(()));
        assert_eq!(
            text(Stage::Startup, Opcode::Query),
            Err("Unexpected message QUERY, expecting STARTUP or OPTIONS".to_owned())
        );
        assert_eq!(
            text(Stage::Authentication, Opcode::Options),
            Err("Unexpected message OPTIONS, expecting SASL_RESPONSE".to_owned())
        );
        assert_eq!(
            text(Stage::Ready, Opcode::Startup),
            Err("Unexpected message STARTUP, the connection is already initialized".to_owned())
        );
        assert_eq!(text(Stage::Ready, Opcode::AuthResponse), Ok(()));
    }

    #[test]
    fn supported_is_told_in_cassandras_order() {
        let options = supported_options();
        let keys: Vec<_> = options.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["PROTOCOL_VERSIONS", "COMPRESSION", "CQL_VERSION"]);
        assert_eq!(options[0].1, ["3/v3", "4/v4", "5/v5", "6/v6-beta"]);
        assert_eq!(options[1].1, ["snappy", "lz4"]);
    }
}
