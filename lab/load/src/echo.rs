//! `load echo`: a server without a database. It reads frames by their headers and answers each request with
//! as many bytes as it was told, which is what a database would have sent: the limit of loopback.
//!
//! Words: `port`, `answer_bytes=100` (frame header included), `threads=` (default: one per core).

use crate::Outcome;
use crate::frame::{
    self, ANSWER_VERSION, EXECUTE, Frame, HEADER_BYTES, OPTIONS, PREPARE, READY, REGISTER, RESULT, STARTUP,
    SUPPORTED,
};
use crate::serve::{Answerer, serve};
use crate::words::Words;

/// Serves until killed.
pub(crate) fn run(words: &Words) -> Outcome<()> {
    let answer_bytes = words.number("answer_bytes", 100usize)?;
    let body: Vec<u8> = rows_of(answer_bytes.saturating_sub(HEADER_BYTES));
    serve(words.number("port", 9042)?, words.number("threads", cores())?, move || {
        Ok(Echo { body: body.clone() })
    })
}

/// One thread for each.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

struct Echo {
    body: Vec<u8>,
}

/// Bytes that begin as a result of rows does.
fn rows_of(length: usize) -> Vec<u8> {
    let mut body = vec![0; length];
    if let Some(kind) = body.first_chunk_mut::<4>() {
        *kind = 2u32.to_be_bytes();
    }
    body
}

impl Answerer for Echo {
    fn answer(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Outcome<()> {
        let mut put = |opcode: u8, body: &[u8]| {
            frame::put(out, ANSWER_VERSION, frame.stream, opcode, |out| out.extend_from_slice(body));
        };
        match frame.opcode {
            EXECUTE => put(RESULT, &self.body),
            STARTUP | REGISTER => put(READY, &[]),
            OPTIONS => put(SUPPORTED, &[0, 0]),
            // An id of sixteen bytes, no variables, no columns.
            PREPARE => {
                let mut body = vec![0, 0, 0, 4, 0, 16];
                body.extend_from_slice(&[7; 16]);
                body.extend_from_slice(&[0; 12]);
                body.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0]);
                put(RESULT, &body);
            }
            // Void.
            _ => put(RESULT, &[0, 0, 0, 1]),
        }
        Ok(())
    }
}
