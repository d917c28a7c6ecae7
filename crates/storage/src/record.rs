//! What storage puts into a record of the commit log.
//!
//! ```text
//!   0      1       2              4                   4 + header bytes
//!   | kind | needs | header bytes | header            | body                            |
//!   | u8   | u8    | u16          | i64 timestamp | … | kind 1: (u32 bytes | mutation)* |
//! ```
//!
//! Little-endian. All mutations of a record stand or fall together. The timestamp is one that the node had not passed:
//! a restart counts on from there, whatever the clock says by then.
//!
//! What a reader must not misread, and what it may leave out:
//!
//! - *Kind.* One that it does not know ends the start, since something was acknowledged that it can not apply; but of
//!   [`PASSED_OVER`] and above it takes the timestamp and passes over the rest. A writer gives such a kind only to what
//!   no acknowledged write is lost without.
//! - *Header.* Later versions add fields at its end. A reader takes those that it knows and skips the others.
//! - *Needs.* The version of records that a reader must know to apply this one rightly: a writer raises it when a field
//!   must not be skipped. A greater one than [`READS`] ends the start.
//!
//! Records of version 1 of the log are a timestamp and the body, with nothing before.

use bytes::{Buf, Bytes};
use rows::{Mutation, MutationError};

use crate::StorageError;

/// The body is mutations.
const MUTATIONS: u8 = 1;
/// Kinds from here on may be passed over by who does not know them.
const PASSED_OVER: u8 = 0x80;
/// The version of records that this program knows.
const READS: u8 = 1;
/// What a reader of our records must know.
const NEEDS: u8 = 1;
/// Length of the header as we write it: the timestamp.
const HEADER_BYTES: u16 = 8;
/// Length of all that stands before a body of ours.
const HEAD_BYTES: usize = ENVELOPE_BYTES + HEADER_BYTES as usize;
/// Length of what stands before a header.
const ENVELOPE_BYTES: usize = 4;
/// Length of what stands before each mutation.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The first version of the log whose records have an envelope.
const ENVELOPE_VERSION: u32 = 2;

const _: () = assert!(HEADER_BYTES as usize == size_of::<i64>(), "the header is a timestamp");
const _: () = assert!(NEEDS <= READS && MUTATIONS < PASSED_OVER, "what we write we read");

/// A record of the commit log.
#[derive(Debug)]
pub(crate) struct LogRecord {
    pub(crate) last_timestamp: i64,
    pub(crate) content: Content,
}

/// What a record is about.
#[derive(Debug)]
pub(crate) enum Content {
    Mutations(Vec<Mutation>),
    /// Something of a kind that we do not know and need not.
    PassedOver,
}

/// Why a record can not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum RecordError {
    #[error("its {what} is cut off: {left} bytes are left")]
    CutOff { what: &'static str, left: usize },
    #[error("it is of kind {kind}, which this program does not know: a newer one wrote it")]
    UnknownKind { kind: u8 },
    #[error(
        "a reader must know version {needs} of records, this program knows {reads}: a newer one wrote it"
    )]
    Newer { needs: u8, reads: u8 },
    #[error("{0}")]
    Mutation(#[from] MutationError),
}

impl LogRecord {
    /// What stands before the mutations.
    pub(crate) fn head(last_timestamp: i64) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        [head[0], head[1]] = [MUTATIONS, NEEDS];
        head[2..ENVELOPE_BYTES].copy_from_slice(&HEADER_BYTES.to_le_bytes());
        head[ENVELOPE_BYTES..].copy_from_slice(&last_timestamp.to_le_bytes());
        head
    }

    /// What stands before each mutation.
    #[inline]
    pub(crate) fn length(mutation: &Bytes) -> Result<[u8; LENGTH_BYTES], StorageError> {
        let mutation_bytes = mutation.len();
        u32::try_from(mutation_bytes).map(u32::to_le_bytes).map_err(|_| StorageError::MutationTooLarge {
            mutation_bytes,
            mutation_bytes_max: u32::MAX as usize,
        })
    }

    /// Bytes of a record of one mutation.
    pub(crate) fn bytes(mutation: &Bytes) -> usize {
        HEAD_BYTES + LENGTH_BYTES + mutation.len()
    }

    /// Reads a record that was written in that version of the log.
    ///
    /// # Errors
    /// It is cut off, or must not be read by this program.
    pub(crate) fn decode(payload: Bytes, version: u32) -> Result<LogRecord, RecordError> {
        if version < ENVELOPE_VERSION {
            LogRecord::decode_bare(payload)
        } else {
            LogRecord::decode_whole(payload)
        }
    }

    fn decode_whole(mut payload: Bytes) -> Result<LogRecord, RecordError> {
        let mut envelope = take(&mut payload, ENVELOPE_BYTES, "envelope")?;
        let (kind, needs, header_bytes) = (envelope.get_u8(), envelope.get_u8(), envelope.get_u16_le());
        let mut header = take(&mut payload, usize::from(header_bytes), "header")?;
        let last_timestamp = take(&mut header, size_of::<i64>(), "timestamp")?.get_i64_le();
        let content = match kind {
            PASSED_OVER.. => Content::PassedOver,
            _ if needs > READS => return Err(RecordError::Newer { needs, reads: READS }),
            MUTATIONS => Content::Mutations(decode_mutations(payload)?),
            _ => return Err(RecordError::UnknownKind { kind }),
        };
        Ok(LogRecord { last_timestamp, content })
    }

    fn decode_bare(mut payload: Bytes) -> Result<LogRecord, RecordError> {
        let last_timestamp = take(&mut payload, size_of::<i64>(), "timestamp")?.get_i64_le();
        Ok(LogRecord { last_timestamp, content: Content::Mutations(decode_mutations(payload)?) })
    }
}

fn decode_mutations(mut body: Bytes) -> Result<Vec<Mutation>, RecordError> {
    let mut mutations = Vec::new();
    while body.has_remaining() {
        let mutation_bytes = take(&mut body, LENGTH_BYTES, "mutation length")?.get_u32_le();
        let mutation = take(&mut body, mutation_bytes as usize, "mutation")?;
        // A copy of its own: a slice would keep the whole segment in memory.
        mutations.push(Mutation::from_encoded(Bytes::copy_from_slice(&mutation))?);
    }
    Ok(mutations)
}

fn take(bytes: &mut Bytes, count: usize, what: &'static str) -> Result<Bytes, RecordError> {
    match bytes.remaining() {
        left if left < count => Err(RecordError::CutOff { what, left }),
        _ => Ok(bytes.split_to(count)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rows::{MutationBuilder, PartitionKey};
    use schema::TableId;

    use super::*;

    fn mutation(key: u8) -> Bytes {
        let table = TableId(uuid::Uuid::from_u128(7));
        MutationBuilder::new(table, PartitionKey::new(Bytes::copy_from_slice(&[key; 4])))
            .finish()
            .as_encoded()
            .clone()
    }

    /// A record as a shard puts it together.
    fn record(last_timestamp: i64, mutations: &[Bytes]) -> Vec<u8> {
        let mut record = LogRecord::head(last_timestamp).to_vec();
        for mutation in mutations {
            record.extend(LogRecord::length(mutation).expect("short"));
            record.extend_from_slice(mutation);
        }
        record
    }

    fn decode(record: &[u8]) -> Result<(i64, Vec<Bytes>), RecordError> {
        let LogRecord { last_timestamp, content } = LogRecord::decode(Bytes::copy_from_slice(record), 2)?;
        let mutations = match content {
            Content::Mutations(mutations) => mutations,
            Content::PassedOver => Vec::new(),
        };
        Ok((last_timestamp, mutations.iter().map(|mutation| mutation.as_encoded().clone()).collect()))
    }

    #[test]
    fn a_record_round_trips_and_is_as_long_as_was_said() {
        let both = [mutation(1), mutation(2)];
        let whole = record(-9, &both);
        assert_eq!(whole[..12], [1, 1, 8, 0, 0xf7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decode(&whole), Ok((-9, both.to_vec())));
        assert_eq!(record(5, &both[..1]).len(), LogRecord::bytes(&both[0]));
        let ends = [12, 12 + 4 + both[0].len(), whole.len()];
        for length in 0..=whole.len() {
            assert_eq!(decode(&whole[..length]).is_ok(), ends.contains(&length), "cut to {length}");
        }
    }

    #[test]
    fn fields_that_a_later_version_adds_to_the_header_are_skipped() {
        let mut later = record(5, &[mutation(1)]);
        later[2] = 8 + 3;
        later.splice(12..12, [9, 9, 9]);
        assert_eq!(decode(&later), Ok((5, vec![mutation(1)])));
        later[1] = 2;
        assert_eq!(decode(&later), Err(RecordError::Newer { needs: 2, reads: 1 }));
    }

    #[test]
    fn an_unknown_kind_is_refused_unless_it_may_be_passed_over() {
        for kind in 0..=u8::MAX {
            let mut of_kind = record(5, &[mutation(1)]);
            of_kind[0] = kind;
            let expected = match kind {
                MUTATIONS => Ok((5, vec![mutation(1)])),
                PASSED_OVER.. => Ok((5, Vec::new())),
                _ => Err(RecordError::UnknownKind { kind }),
            };
            assert_eq!(decode(&of_kind), expected, "kind {kind}");
        }
        let of_later = [0x90, 7, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        assert_eq!(decode(&of_later), Ok((5, Vec::new())), "whatever it needs, and whatever is in it");
    }

    #[test]
    fn a_record_of_version_1_has_no_envelope() {
        let bare = record(5, &[mutation(1)]).split_off(ENVELOPE_BYTES);
        let LogRecord { last_timestamp, content } = LogRecord::decode(bare.into(), 1).expect("a record");
        let Content::Mutations(mutations) = content else { panic!("{content:?}") };
        assert_eq!((last_timestamp, mutations.len()), (5, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record_or_an_error(
            head in prop_oneof![Just(Vec::new()), Just(vec![1, 1, 8, 0]), Just(vec![0x80, 1, 9, 0])],
            rest in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..80),
            version in 0..2u8,
        ) {
            crate::hostile::read_record(&[vec![version], head, rest].concat());
        }
    }

    /// What the fuzzer begins with. `PERISTYLE_BLESS=1 cargo test -p peristyle-storage kept_records` writes it anew,
    /// after the format has changed.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "kept files of the repository")]
    fn kept_records_are_read() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/log_record");
        let both = [mutation(1), mutation(2)];
        let (whole, bare) = (record(5, &both), record(5, &both).split_off(ENVELOPE_BYTES));
        for (name, version, bytes) in [("version-2", 1, whole), ("version-1", 0, bare)] {
            if std::env::var_os("PERISTYLE_BLESS").is_some() {
                std::fs::write(folder.join(name), [&[version], &bytes[..]].concat()).expect("writes");
            }
            let kept = std::fs::read(folder.join(name)).expect("a kept record");
            crate::hostile::read_record(&kept);
            assert_eq!(kept[1..], bytes, "{name}");
        }
    }
}
