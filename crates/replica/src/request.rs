//! What one replica asks another.

use std::borrow::Borrow;

use bytes::{BufMut, Bytes, BytesMut};
use read::ReadCommand;
use rows::{Mutation, PartitionKey};
use schema::TableId;
use storage::{KEYS_TOGETHER, Unit};
use uuid::Uuid;

use crate::body::{BodyError, Reader, put_bool, put_bytes, put_key, put_list, put_option};
use crate::committed::CommittedIn;
use crate::paxos::PaxosRequest;
use crate::read_request::ReadRequest;

const WRITE_ALL: u8 = 1;
const WRITE_EACH: u8 = 2;
const READ_ROWS: u8 = 3;
const READ_DIGEST: u8 = 4;
const COMPARE: u8 = 5;
const KEEP_BATCH: u8 = 6;
const DROP_BATCHES: u8 = 7;
/// Before another request: what is done for it is to be told.
const TRACED: u8 = 8;
const PAXOS: u8 = 9;
const COUNT: u8 = 10;
const DECIDE: u8 = 11;
const READ_WRITTEN_ROWS: u8 = 12;
const COMMITTED: u8 = 13;

/// So many logged batches are let go by one message, at most.
pub const DROPPED_TOGETHER_MAX: usize = 1_024;

/// A request of another node, and what it was made on.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What it was planned on.
    pub planned_on: PlannedOn,
    /// Is what is done for it to be told with the answer?
    pub is_traced: bool,
    /// What is asked for.
    pub request: Request,
}

/// What whoever asks knew when it chose the replicas: epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedOn {
    /// That of the schema that the sender's shard had. What is asked of a table that was emptied since is refused:
    /// whoever asks comes so far, and asks again.
    pub schema_epoch: u64,
    /// That at which, as the sender knows, a table of the request was emptied last. A replica that is behind comes so
    /// far first.
    pub truncated_at: u64,
    /// How often the ring had changed. The frame says that, too, but of when it was sealed: members may have changed in
    /// between.
    pub ring_epoch: u64,
}

/// What another node asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Write these.
    Write {
        /// What of them is whole or absent.
        unit: Unit,
        /// One at least; of those that are units of their own no more than are done in one go.
        mutations: Vec<Mutation>,
    },
    /// Read this.
    Read {
        /// Rows, or their hash?
        wanted: Wanted,
        /// Of what.
        read: Box<ReadRequest>,
    },
    /// Compare the only rows that partitions have.
    Compare {
        /// Of this table.
        table: TableId,
        /// Keys, and the hashes of their rows: one at least, and no more than are done in one go.
        rows: Vec<(PartitionKey, u128)>,
    },
    /// Do something for the logged batches of who asks.
    Batch(BatchRequest),
    /// Take part in agreeing on a conditional change.
    Paxos(Box<PaxosRequest>),
    /// Write down that these are committed, which the replica has written: one at least, and no more than are done in
    /// one go.
    Committed(Vec<CommittedIn>),
    /// Decide about a conditional change, and have the replicas agree on it.
    Decide(Box<Deciding>),
    /// Count what this adds to counters, and tell what others are to write.
    Count(Box<Mutation>),
}

/// What one replica decides for all who change a partition by conditions: so they need not outbid each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The table.
    pub table: TableId,
    /// The partition.
    pub key: PartitionKey,
    /// Do only the replicas of the data centre agree?
    pub is_local: bool,
    /// The statement, as whoever carries out statements writes it; `None` when all that was agreed on is to be written,
    /// and nothing else.
    pub change: Option<Bytes>,
}

/// What is asked of a node that keeps logged batches of others.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchRequest {
    /// Keep this one, durably, and write it when nobody has let it go for long.
    Keep {
        /// Which.
        id: Uuid,
        /// What it writes: something.
        mutations: Vec<Mutation>,
    },
    /// These are whole, or will never be: let them go.
    Drop {
        /// One at least, [`DROPPED_TOGETHER_MAX`] at most. Some may not be there.
        ids: Vec<Uuid>,
    },
}

/// What a read is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Rows with all their tombstones.
    Rows,
    /// The same, once what the replica has accepted of them is written: see [`storage::Unsettled`].
    WrittenRows,
    /// The hash of those, to be compared with another replica's.
    Digest,
}

impl Asked {
    /// Begins a body; a request follows.
    pub fn begin(planned_on: PlannedOn, out: &mut BytesMut) {
        let PlannedOn { schema_epoch, truncated_at, ring_epoch } = planned_on;
        [schema_epoch, truncated_at, ring_epoch].into_iter().for_each(|epoch| out.put_u64_le(epoch));
    }

    /// Appends, behind its beginning, that what is done for the request that follows is to be told.
    pub fn put_traced(out: &mut BytesMut) {
        out.put_u8(TRACED);
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It is none of these.
    pub fn read(body: Bytes) -> Result<Asked, BodyError> {
        let reader = &mut Reader::new(body);
        let (schema_epoch, truncated_at) = (reader.u64("epoch")?, reader.u64("epoch")?);
        let planned_on = PlannedOn { schema_epoch, truncated_at, ring_epoch: reader.u64("epoch")? };
        let first = reader.u8("request")?;
        let is_traced = first == TRACED;
        let kind = if is_traced { reader.u8("request")? } else { first };
        let asked = Asked { planned_on, is_traced, request: Request::read(kind, reader)? };
        reader.end()?;
        Ok(asked)
    }
}

impl Request {
    /// Appends a request to write.
    ///
    /// # Panics
    /// When there is nothing to write, or more units than are done in one go.
    pub fn put_write<M: Borrow<Mutation>>(unit: Unit, mutations: &[M], out: &mut BytesMut) {
        assert!(may_be_written(unit, mutations.len()), "some mutations, and no more than a replica takes");
        out.put_u8(match unit {
            Unit::All => WRITE_ALL,
            Unit::Each => WRITE_EACH,
        });
        put_mutations(out, mutations);
    }

    /// Appends a request to keep a logged batch. The epoch that the body begins with is the one that it was planned on.
    ///
    /// # Panics
    /// When it writes nothing.
    pub fn put_keep_batch(id: Uuid, mutations: &[Mutation], out: &mut BytesMut) {
        assert!(!mutations.is_empty(), "a batch writes something");
        out.put_u8(KEEP_BATCH);
        out.put_slice(id.as_bytes());
        put_mutations(out, mutations);
    }

    /// Appends a request to let logged batches go.
    ///
    /// # Panics
    /// When there are none, or more than [`DROPPED_TOGETHER_MAX`].
    pub fn put_drop_batches(ids: &[Uuid], out: &mut BytesMut) {
        assert!((1..=DROPPED_TOGETHER_MAX).contains(&ids.len()), "some batches, and not too many");
        out.put_u8(DROP_BATCHES);
        put_list(out, ids, |out, id| out.put_slice(id.as_bytes()));
    }

    /// Appends a request to read one key, or a range.
    ///
    /// # Panics
    /// When the command is of no key, or of several.
    pub fn put_read(wanted: Wanted, command: &ReadCommand, out: &mut BytesMut) {
        out.put_u8(match wanted {
            Wanted::Rows => READ_ROWS,
            Wanted::WrittenRows => READ_WRITTEN_ROWS,
            Wanted::Digest => READ_DIGEST,
        });
        ReadRequest::put(command, out);
    }

    /// Appends a request to compare rows, by their keys and hashes.
    ///
    /// # Panics
    /// When there are none, or more than are done in one go.
    pub fn put_compare(table: TableId, rows: &[(&PartitionKey, u128)], out: &mut BytesMut) {
        assert!((1..=KEYS_TOGETHER).contains(&rows.len()), "some rows, and no more than a replica takes");
        out.put_u8(COMPARE);
        out.put_slice(table.0.as_bytes());
        put_list(out, rows, |out, (key, hash)| {
            put_key(out, key);
            out.put_u128_le(*hash);
        });
    }

    /// Appends a request about an agreement.
    pub fn put_paxos(request: &PaxosRequest, out: &mut BytesMut) {
        out.put_u8(PAXOS);
        request.put(out);
    }

    /// Appends a request to write down what is committed.
    ///
    /// # Panics
    /// When that is nothing, or more than is done in one go.
    pub fn put_committed(committed: &[CommittedIn], out: &mut BytesMut) {
        assert!(may_be_written(Unit::Each, committed.len()), "something, and no more than a replica takes");
        out.put_u8(COMMITTED);
        put_list(out, committed, |out, committed| committed.put(out));
    }

    /// Appends a request to decide.
    pub fn put_decide(deciding: &Deciding, out: &mut BytesMut) {
        out.put_u8(DECIDE);
        out.put_slice(deciding.table.0.as_bytes());
        put_key(out, &deciding.key);
        put_bool(out, deciding.is_local);
        put_option(out, deciding.change.as_ref(), |out, change| put_bytes(out, change));
    }

    /// Appends a request to count.
    pub fn put_count(mutation: &Mutation, out: &mut BytesMut) {
        out.put_u8(COUNT);
        put_bytes(out, mutation.as_encoded());
    }

    /// What Cassandra calls such a message, without its `_REQ`.
    pub fn verb(&self) -> &'static str {
        match self {
            Request::Write { .. } => "MUTATION",
            Request::Read { read, .. } if read.is_of_range() => "RANGE",
            Request::Read { .. } | Request::Compare { .. } => "READ",
            Request::Batch(BatchRequest::Keep { .. }) => "BATCH_STORE",
            Request::Batch(BatchRequest::Drop { .. }) => "BATCH_REMOVE",
            Request::Paxos(request) => request.verb(),
            Request::Committed(_) => "PAXOS_COMMIT",
            Request::Decide(_) => "PAXOS_DECIDE",
            Request::Count(_) => "COUNTER_MUTATION",
        }
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Request, BodyError> {
        Ok(match kind {
            WRITE_ALL => write(Unit::All, reader)?,
            WRITE_EACH => write(Unit::Each, reader)?,
            READ_ROWS => read(Wanted::Rows, reader)?,
            READ_WRITTEN_ROWS => read(Wanted::WrittenRows, reader)?,
            READ_DIGEST => read(Wanted::Digest, reader)?,
            COMPARE => {
                let table = TableId(reader.uuid("table id")?);
                let rows = reader.list("rows", |reader| Ok((reader.key()?, reader.u128("hash")?)))?;
                if !(1..=KEYS_TOGETHER).contains(&rows.len()) {
                    return Err(reader.wrong("rows"));
                }
                Request::Compare { table, rows }
            }
            KEEP_BATCH => {
                let (id, mutations) = (reader.uuid("batch id")?, mutations(reader)?);
                if mutations.is_empty() {
                    return Err(reader.wrong("mutations"));
                }
                Request::Batch(BatchRequest::Keep { id, mutations })
            }
            DROP_BATCHES => {
                let ids = reader.list("batch ids", |reader| reader.uuid("batch id"))?;
                if !(1..=DROPPED_TOGETHER_MAX).contains(&ids.len()) {
                    return Err(reader.wrong("batch ids"));
                }
                Request::Batch(BatchRequest::Drop { ids })
            }
            PAXOS => Request::Paxos(Box::new(PaxosRequest::read(reader)?)),
            COMMITTED => {
                let committed = reader.list("what is committed", CommittedIn::read)?;
                if !may_be_written(Unit::Each, committed.len()) {
                    return Err(reader.wrong("what is committed"));
                }
                Request::Committed(committed)
            }
            DECIDE => Request::Decide(Box::new(Deciding {
                table: TableId(reader.uuid("table id")?),
                key: reader.key()?,
                is_local: reader.bool("level")?,
                change: reader.option("change", |reader| reader.bytes("change"))?,
            })),
            COUNT => Request::Count(Box::new(reader.mutation()?)),
            _ => return Err(reader.wrong("request")),
        })
    }
}

fn read(wanted: Wanted, reader: &mut Reader) -> Result<Request, BodyError> {
    Ok(Request::Read { wanted, read: Box::new(ReadRequest::read(reader)?) })
}

fn may_be_written(unit: Unit, count: usize) -> bool {
    match unit {
        Unit::All => count > 0,
        Unit::Each => (1..=KEYS_TOGETHER).contains(&count),
    }
}

fn put_mutations<M: Borrow<Mutation>>(out: &mut BytesMut, mutations: &[M]) {
    put_list(out, mutations, |out, mutation| put_bytes(out, mutation.borrow().as_encoded()));
}

fn mutations(reader: &mut Reader) -> Result<Vec<Mutation>, BodyError> {
    reader.list("mutations", Reader::mutation)
}

fn write(unit: Unit, reader: &mut Reader) -> Result<Request, BodyError> {
    let mutations = mutations(reader)?;
    match may_be_written(unit, mutations.len()) {
        true => Ok(Request::Write { unit, mutations }),
        false => Err(reader.wrong("mutations")),
    }
}
