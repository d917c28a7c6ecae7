//! Reads bytes that may be anything as another node's request, or answer: what the fuzzer calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and what is read can be written and read
//! again.

use bytes::{Bytes, BytesMut};

use crate::{Answer, Asked, BatchRequest, Request};

/// Reads a request when the first byte is even, else an answer.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_body(bytes: &[u8]) {
    let Some((which, body)) = bytes.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    if which & 1 == 0 {
        let mut again = BytesMut::new();
        let Ok(Asked { planned_on, is_traced, request }) = Asked::read(body.clone()) else { return };
        Asked::begin(planned_on, &mut again);
        if is_traced {
            Asked::put_traced(&mut again);
        }
        match request {
            Request::Write { unit, mutations } => Request::put_write(unit, &mutations, &mut again),
            Request::Compare { table, rows } => {
                let rows: Vec<_> = rows.iter().map(|(key, hash)| (key, *hash)).collect();
                Request::put_compare(table, &rows, &mut again);
            }
            Request::Batch(BatchRequest::Keep { id, mutations }) => {
                Request::put_keep_batch(id, &mutations, &mut again);
            }
            Request::Batch(BatchRequest::Drop { ids }) => Request::put_drop_batches(&ids, &mut again),
            Request::Paxos(request) => Request::put_paxos(&request, &mut again),
            Request::Committed(committed) => Request::put_committed(&committed, &mut again),
            Request::Decide(deciding) => Request::put_decide(&deciding, &mut again),
            Request::Count(mutation) => Request::put_count(&mutation, &mut again),
            Request::Read { .. } => return,
        }
        assert_eq!(again, body, "it is written as it was read");
    } else if let Ok(answer) = Answer::read(body.clone()) {
        let mut again = BytesMut::new();
        answer.put(&mut again);
        assert_eq!(Answer::read(again.freeze()), Ok(answer), "an answer is read as it was written");
    } else if let Ok((steps, answer)) = Answer::read_traced(body.clone()) {
        let mut again = BytesMut::new();
        Answer::put_steps(&steps, &mut again);
        answer.put(&mut again);
        let read = Answer::read_traced(again.freeze());
        assert_eq!(read, Ok((steps, answer)), "and one with steps");
    }
}
