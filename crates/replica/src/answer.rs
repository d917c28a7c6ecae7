//! What a replica answers.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use read::{PageDigest, UnfilteredPage};
use rows::{Mutation, Row};
use runtime::trace::TraceEvent;
use stdx::index_set::IndexSet;
use storage::Outcomes;

use crate::body::{BodyError, Reader, put_bytes, put_list, put_option, put_row};
use crate::failure::Failure;
use crate::page::{page, put_page};
use crate::paxos::PaxosAnswer;

const WRITTEN: u8 = 1;
const ROWS: u8 = 2;
const DIGEST: u8 = 3;
const FAILED: u8 = 4;
const COMPARED: u8 = 5;
/// Before another answer: what was done for it.
const STEPS: u8 = 6;
const PAXOS: u8 = 7;
const COUNTED: u8 = 8;
const DECIDED: u8 = 9;

/// An answer to a [`Request`](crate::Request).
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To a write: how its units have come out.
    Written(Written),
    /// To a read of rows.
    Rows(UnfilteredPage),
    /// To a read of a digest.
    Digest(PageDigest),
    /// To a comparison: of each row.
    Compared(Vec<Told>),
    /// To what was asked about an agreement.
    Paxos(PaxosAnswer),
    /// To a count: what was written, and is to be written on the other replicas.
    Counted(Mutation),
    /// To what was to be decided, as whoever carries out statements writes it.
    Decided(Bytes),
    /// To a read, a part in an agreement, or a count, that failed.
    Failed(Failure),
}

/// What a replica says of a row that another one has.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It is equal here.
    Equal,
    /// Here it is this one.
    Other(Row),
    /// There is none here, or what there is can not be told at once.
    Unknown,
}

/// How the units of a write have come out. Of those that are in neither set nothing was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// They are durable in the sense of the replica's sync mode.
    pub done: IndexSet,
    /// They may or may not survive.
    pub doubtful: IndexSet,
    /// Why the first that is not done is not.
    pub failure: Option<Failure>,
}

impl From<Outcomes> for Written {
    fn from(outcomes: Outcomes) -> Written {
        let Outcomes { done, doubtful, error } = outcomes;
        Written { done, doubtful, failure: error.as_ref().map(Failure::from) }
    }
}

impl Answer {
    /// Appends it.
    pub fn put(&self, out: &mut BytesMut) {
        match self {
            Answer::Written(Written { done, doubtful, failure }) => {
                out.put_u8(WRITTEN);
                out.put_u32_le(done.bits());
                out.put_u32_le(doubtful.bits());
                put_option(out, failure.as_ref(), |out, failure| failure.put(out));
            }
            Answer::Rows(rows) => {
                out.put_u8(ROWS);
                put_page(out, rows);
            }
            Answer::Digest(digest) => {
                out.put_u8(DIGEST);
                out.put_u128_le(digest.0);
            }
            Answer::Compared(rows) => {
                out.put_u8(COMPARED);
                put_list(out, rows, |out, told| match told {
                    Told::Equal => out.put_u8(0),
                    Told::Other(row) => {
                        out.put_u8(1);
                        put_row(out, row);
                    }
                    Told::Unknown => out.put_u8(2),
                });
            }
            Answer::Paxos(answer) => {
                out.put_u8(PAXOS);
                answer.put(out);
            }
            Answer::Counted(mutation) => {
                out.put_u8(COUNTED);
                put_bytes(out, mutation.as_encoded());
            }
            Answer::Decided(decision) => {
                out.put_u8(DECIDED);
                put_bytes(out, decision);
            }
            Answer::Failed(failure) => {
                out.put_u8(FAILED);
                failure.put(out);
            }
        }
    }

    /// Appends what was done for a request that wants it told; the answer follows.
    pub fn put_steps(steps: &[TraceEvent], out: &mut BytesMut) {
        out.put_u8(STEPS);
        put_list(out, steps, |out, step| {
            out.put_slice(step.id.as_bytes());
            out.put_u32_le(u32::try_from(step.elapsed.as_micros()).unwrap_or(u32::MAX));
            put_bytes(out, step.thread.as_bytes());
            put_bytes(out, step.activity.as_bytes());
        });
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It is none of these.
    pub fn read(body: Bytes) -> Result<Answer, BodyError> {
        let reader = &mut Reader::new(body);
        let kind = reader.u8("answer")?;
        Answer::read_rest(kind, reader)
    }

    /// Reads the body of an answer to a request that wanted it told what is done.
    ///
    /// # Errors
    /// It is no such answer.
    pub fn read_traced(body: Bytes) -> Result<(Vec<TraceEvent>, Answer), BodyError> {
        let reader = &mut Reader::new(body);
        if reader.u8("answer")? != STEPS {
            return Err(reader.wrong("steps"));
        }
        let steps = reader.list("steps", step)?;
        let kind = reader.u8("answer")?;
        Ok((steps, Answer::read_rest(kind, reader)?))
    }

    fn read_rest(kind: u8, reader: &mut Reader) -> Result<Answer, BodyError> {
        let answer = match kind {
            WRITTEN => Answer::Written(Written {
                done: IndexSet::of_bits(reader.u32("outcomes")?),
                doubtful: IndexSet::of_bits(reader.u32("outcomes")?),
                failure: reader.option("failure", Failure::read)?,
            }),
            ROWS => Answer::Rows(page(reader)?),
            DIGEST => Answer::Digest(PageDigest(reader.u128("digest")?)),
            COMPARED => Answer::Compared(reader.list("rows", told)?),
            PAXOS => Answer::Paxos(PaxosAnswer::read(reader)?),
            COUNTED => Answer::Counted(reader.mutation()?),
            DECIDED => Answer::Decided(reader.bytes("decision")?),
            FAILED => Answer::Failed(Failure::read(reader)?),
            _ => return Err(reader.wrong("answer")),
        };
        reader.end()?;
        Ok(answer)
    }
}

fn step(reader: &mut Reader) -> Result<TraceEvent, BodyError> {
    Ok(TraceEvent {
        id: reader.uuid("step")?,
        elapsed: Duration::from_micros(u64::from(reader.u32("step")?)),
        thread: reader.text("thread")?,
        activity: reader.text("activity")?,
        node: None,
    })
}

fn told(reader: &mut Reader) -> Result<Told, BodyError> {
    match reader.u8("comparison")? {
        0 => Ok(Told::Equal),
        1 => Ok(Told::Other(reader.row()?)),
        2 => Ok(Told::Unknown),
        _ => Err(reader.wrong("comparison")),
    }
}
