//! Reads bytes that may be anything as what other nodes say about agreement, and as records of its log: what the fuzzer
//! calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and what is read can be written and read
//! again.

use bytes::BytesMut;

use super::contents::Record;
use super::message::{Answer, Ask};

/// Reads a request, an answer or a record, by what the first byte leaves when it is divided by three; the kind of a
/// record is the byte behind that.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_agreement(bytes: &[u8]) {
    let Some((which, body)) = bytes.split_first() else { return };
    let mut again = BytesMut::new();
    match which % 3 {
        0 => {
            let Ok(ask) = Ask::read(body) else { return };
            ask.put(&mut again);
            // Not all that it holds can be compared.
            let read = Ask::read(&again).expect("what was read can be written");
            assert_eq!(format!("{read:?}"), format!("{ask:?}"), "a request is read as it was written");
        }
        1 => {
            let Ok(answer) = Answer::read(body) else { return };
            answer.put(&mut again);
            assert_eq!(Answer::read(&again), Ok(answer), "an answer is read as it was written");
        }
        _ => {
            let Some((kind, payload)) = body.split_first() else { return };
            let Ok(record) = Record::read(u32::from(*kind), payload) else { return };
            record.put(&mut again);
            assert_eq!(Record::read(record.kind(), &again), Ok(record), "a record is read as it was written");
        }
    }
}
