//! What requests may gather in memory for their answers, or read before they write.
//!
//! ```text
//!   a client's requests ─► its lane ─┬─► line of the small ─┐
//!                                    └─► line of the large ─┴─► AnswerMemory ─► AnswerRoom ─► rows, a page at a time
//! ```
//!
//! A request has a *room* before it reads, and what it reads is never more than its room has left. So the first guess
//! of how large an answer will be is a bound and not a hope: an answer that turns out larger takes more room when there
//! is some, ends its page early when there is none, and only one that can not be given in pages waits for the one room
//! of the node that holds the largest answer ([`LargeAnswer`]).
//!
//! What must hold:
//!
//! - Nobody waits for room in the common memory while holding some of it: so rooms come free by themselves.
//! - Lanes are served in turns, a request at a time: who asks much does not go before who asks little. Small rooms have
//!   a part of the memory for themselves.
//! - Answers that a client has not taken count too ([`AnswerMemory::hold_untaken`]), and while all memory is theirs
//!   small rooms are given beyond it, one at a time.

mod line;
mod room;
#[cfg(test)]
mod tests;

pub use line::{AnswerMemory, Lane};
pub(crate) use room::ReadRoom;
pub use room::{AnswerRoom, LargeAnswer, UntakenRoom};

/// Rooms of up to so many bytes are small.
pub(crate) const SMALL_BYTES: usize = 16 << 10;

/// No read is given less: about a row.
pub(crate) const READ_BYTES_MIN: usize = 4 << 10;

/// A page ends with so many bytes, however much memory there is: as much as a client needs to be kept busy.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Output is written when it has grown to this, even if more requests are at hand.
const OUTPUT_BYTES: usize = 64 << 10;

/// One room is at most one part in so many of a shard's memory, and a page one in twice as many.
const ROOM_PART: usize = 4;

/// Rooms that are not small leave one part in so many of the memory to those that are.
const SMALL_PART: usize = 4;
