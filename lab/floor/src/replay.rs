//! A proxy that forwards everything, learns the answer to the first prepared statement that is
//! executed often, and from then on replays that one answer whatever the bound values are: what a perfect
//! cache in front of the server would spend. (Often, because drivers execute statements of their own first.)
//!
//! A thread for each core.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};

use crate::Outcome;
use crate::frame::{self, ERROR, EXECUTE, Frame, HEADER_BYTES};
use crate::serve::{Answerer, serve};

/// So many answers to a statement on one connection, and the next is kept.
const LEARNT_AFTER: u32 = 100;

/// Serves until killed.
pub(crate) fn run(port: u16, upstream: u16) -> Outcome<()> {
    let learned = Arc::new(OnceLock::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    serve(port, threads, move || {
        let socket = TcpStream::connect(("127.0.0.1", upstream))?;
        socket.set_nodelay(true)?;
        Ok(Replay { socket, counts: HashMap::new(), learned: learned.clone() })
    })
}

/// The statement, and a whole answer to it.
struct Learned {
    /// The id with its length.
    id: Vec<u8>,
    answer: Vec<u8>,
}

struct Replay {
    socket: TcpStream,
    /// How often each statement was executed before one was learnt.
    counts: HashMap<Vec<u8>, u32>,
    learned: Arc<OnceLock<Learned>>,
}

impl Answerer for Replay {
    fn answer(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Outcome<()> {
        if frame.opcode == EXECUTE
            && let Some(learned) = self.learned.get()
            && frame.body.starts_with(&learned.id)
        {
            let start = out.len();
            out.extend_from_slice(&learned.answer);
            out[start + 2..start + 4].copy_from_slice(&frame.stream.to_be_bytes());
            return Ok(());
        }
        let answer = self.forward(frame)?;
        out.extend_from_slice(&answer);
        if frame.opcode == EXECUTE && answer[4] != ERROR {
            let length = frame.body.first_chunk::<2>().map_or(0, |length| u16::from_be_bytes(*length));
            let Some(id) = frame.body.get(..2 + usize::from(length)) else { return Ok(()) };
            let count = self.counts.entry(id.to_vec()).or_default();
            *count += 1;
            if *count > LEARNT_AFTER {
                // Somebody else may have learned first: one answer is as good as another.
                let _ = self.learned.set(Learned { id: id.to_vec(), answer });
            }
        }
        Ok(())
    }
}

impl Replay {
    /// Asks the server and waits: only before the answer is learned, and for other statements.
    fn forward(&mut self, frame: Frame<'_>) -> Outcome<Vec<u8>> {
        let mut request = Vec::new();
        frame::put(&mut request, frame.version, frame.stream, frame.opcode, |out| {
            out.extend_from_slice(frame.body);
        });
        self.socket.write_all(&request)?;
        let mut answer = vec![0; HEADER_BYTES];
        self.socket.read_exact(&mut answer)?;
        let length = u32::from_be_bytes([answer[5], answer[6], answer[7], answer[8]]) as usize;
        if length > frame::BODY_BYTES_MAX {
            return Err("an answer of more bytes than any has".into());
        }
        answer.resize(HEADER_BYTES + length, 0);
        self.socket.read_exact(&mut answer[HEADER_BYTES..])?;
        Ok(answer)
    }
}
