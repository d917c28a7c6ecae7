//! Timestamps, local deletion times and TTLs as their differences to the least ones of the file.
//!
//! The differences wrap: what is below the least, or the "none" of a live deletion, takes nine
//! bytes and comes back all the same. Deletion times and TTLs are 32 bits, and their differences
//! are written as Java writes an `int`: with the sign drawn into the upper half.

use rows::{DeletionTime, EncodingStats};
use stdx::cursor::{Cursor, EndOfInput};
use stdx::vint;

use super::ParseError;
use crate::Version;

/// Times as their differences to the least ones of a file.
pub(crate) trait RelativeTimes {
    fn write_timestamp(&self, timestamp: i64, out: &mut Vec<u8>);
    fn read_timestamp(&self, input: &mut Cursor<'_>) -> Result<i64, EndOfInput>;
    fn write_local_deletion_time(&self, seconds: u32, out: &mut Vec<u8>);
    fn read_local_deletion_time(&self, input: &mut Cursor<'_>) -> Result<u32, EndOfInput>;
    fn write_ttl(&self, ttl: u32, out: &mut Vec<u8>);
    fn read_ttl(&self, input: &mut Cursor<'_>) -> Result<u32, EndOfInput>;
    fn write_deletion(&self, deletion: DeletionTime, out: &mut Vec<u8>);
    fn read_deletion(&self, input: &mut Cursor<'_>) -> Result<DeletionTime, EndOfInput>;
}

impl RelativeTimes for EncodingStats {
    fn write_timestamp(&self, timestamp: i64, out: &mut Vec<u8>) {
        vint::write_unsigned(timestamp.wrapping_sub(self.min_timestamp) as u64, out);
    }

    fn read_timestamp(&self, input: &mut Cursor<'_>) -> Result<i64, EndOfInput> {
        Ok((input.vint()? as i64).wrapping_add(self.min_timestamp))
    }

    fn write_local_deletion_time(&self, seconds: u32, out: &mut Vec<u8>) {
        write_difference(seconds, self.min_local_deletion_time, out);
    }

    fn read_local_deletion_time(&self, input: &mut Cursor<'_>) -> Result<u32, EndOfInput> {
        Ok((input.vint()? as u32).wrapping_add(self.min_local_deletion_time))
    }

    fn write_ttl(&self, ttl: u32, out: &mut Vec<u8>) {
        write_difference(ttl, self.min_ttl, out);
    }

    fn read_ttl(&self, input: &mut Cursor<'_>) -> Result<u32, EndOfInput> {
        Ok((input.vint()? as u32).wrapping_add(self.min_ttl))
    }

    fn write_deletion(&self, deletion: DeletionTime, out: &mut Vec<u8>) {
        self.write_timestamp(deletion.timestamp, out);
        self.write_local_deletion_time(deletion.local_deletion_time, out);
    }

    fn read_deletion(&self, input: &mut Cursor<'_>) -> Result<DeletionTime, EndOfInput> {
        let timestamp = self.read_timestamp(input)?;
        let local_deletion_time = self.read_local_deletion_time(input)?;
        Ok(normal(DeletionTime { timestamp, local_deletion_time }))
    }
}

fn write_difference(value: u32, least: u32, out: &mut Vec<u8>) {
    vint::write_unsigned(i64::from(value.wrapping_sub(least) as i32) as u64, out);
}

/// Cassandra 4 has its own number for the local deletion time of what is not deleted.
const NO_DELETION_TIME_OF_4: u32 = i32::MAX as u32;

fn normal(deletion: DeletionTime) -> DeletionTime {
    let is_live = deletion.timestamp == i64::MIN && deletion.local_deletion_time == NO_DELETION_TIME_OF_4;
    if is_live { DeletionTime::LIVE } else { deletion }
}

/// The first byte of a deletion that is none.
const LIVE: u8 = 0x80;
/// Bytes of a deletion that is one.
pub(crate) const DELETION_BYTES: usize = 12;

/// Appends a deletion of a partition, or one open at an index block: one byte when live. Not
/// relative, as it is read without the file's header.
pub(crate) fn write_whole_deletion(deletion: DeletionTime, out: &mut Vec<u8>) {
    if deletion.is_live() {
        out.push(LIVE);
        return;
    }
    // The sign bit means "live".
    assert!(deletion.timestamp >= 0, "the writer tells a deletion at a negative timestamp in other words");
    out.extend_from_slice(&deletion.timestamp.to_be_bytes());
    out.extend_from_slice(&deletion.local_deletion_time.to_be_bytes());
}

/// Reads what [`write_whole_deletion`] wrote; `Ok(None)` when it is none of it. Without the first byte that one is
/// all that is asked for: it may be the last of the file.
pub(crate) fn read_whole_deletion(input: &mut Cursor<'_>) -> Result<Option<DeletionTime>, EndOfInput> {
    let mut behind_first = *input;
    let first = behind_first.u8()?;
    if first & LIVE != 0 {
        *input = behind_first;
        return Ok((first == LIVE).then_some(DeletionTime::LIVE));
    }
    let timestamp = input.i64()?;
    Ok(Some(DeletionTime { timestamp, local_deletion_time: input.u32()? }))
}

/// Reads a deletion of a partition as that version has it; `nb` keeps the local time, signed, first.
pub(crate) fn read_deletion_of(
    version: Version,
    input: &mut Cursor<'_>,
) -> Result<Option<DeletionTime>, EndOfInput> {
    if version.has_unsigned_times() {
        return read_whole_deletion(input);
    }
    let (local_deletion_time, timestamp) = (input.i32()?, input.i64()?);
    let local_deletion_time = u32::try_from(local_deletion_time).ok();
    Ok(local_deletion_time.map(|local_deletion_time| normal(DeletionTime { timestamp, local_deletion_time })))
}

/// Reads what a partition begins with: its key, and its deletion.
pub(crate) fn read_partition_head<'a>(
    version: Version,
    input: &mut Cursor<'a>,
) -> Result<(&'a [u8], DeletionTime), ParseError> {
    let length = usize::from(input.u16()?);
    let key = input.take(length)?;
    let deletion = read_deletion_of(version, input)?;
    Ok((key, deletion.ok_or(ParseError::Malformed("deletion of a partition"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_and_extreme_times_come_back() {
        let stats = EncodingStats {
            min_timestamp: 1_700_000_000_000_000,
            min_local_deletion_time: 1_700_000_000,
            min_ttl: 60,
        };
        let deletions = [
            DeletionTime::LIVE,
            DeletionTime { timestamp: 0, local_deletion_time: 0 },
            DeletionTime { timestamp: i64::MAX, local_deletion_time: u32::MAX - 1 },
            DeletionTime { timestamp: -5, local_deletion_time: 1_700_000_001 },
        ];
        for deletion in deletions {
            let mut out = Vec::new();
            stats.write_deletion(deletion, &mut out);
            stats.write_ttl(deletion.local_deletion_time, &mut out);
            let mut input = Cursor::new(&out);
            assert_eq!(stats.read_deletion(&mut input), Ok(deletion));
            assert_eq!(stats.read_ttl(&mut input), Ok(deletion.local_deletion_time));
        }
    }

    /// Who fetches what is asked for must not be sent beyond the end of the file.
    #[test]
    fn a_whole_deletion_cut_off_asks_for_no_more_than_it_has() {
        for deletion in [DeletionTime::LIVE, DeletionTime { timestamp: 5, local_deletion_time: 6 }] {
            let mut out = Vec::new();
            write_whole_deletion(deletion, &mut out);
            for at_hand in 0..out.len() {
                let end = read_whole_deletion(&mut Cursor::new(&out[..at_hand])).expect_err("it is cut off");
                assert!(end.offset + end.wanted_bytes <= out.len(), "{deletion:?}, {at_hand} at hand: {end}");
            }
        }
    }

    #[test]
    fn whole_deletions_come_back() {
        let deletion = DeletionTime { timestamp: 5, local_deletion_time: u32::MAX - 1 };
        for (deletion, bytes) in [(DeletionTime::LIVE, 1), (deletion, DELETION_BYTES)] {
            let mut out = Vec::new();
            write_whole_deletion(deletion, &mut out);
            assert_eq!(out.len(), bytes);
            assert_eq!(read_whole_deletion(&mut Cursor::new(&out)), Ok(Some(deletion)));
        }
        assert_eq!(read_whole_deletion(&mut Cursor::new(&[0x81; 12])), Ok(None));
    }
}
