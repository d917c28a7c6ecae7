//! A node's storage on a memory disk: what is written is read, whatever happens in between.
//!
//! | file | asks |
//! |---|---|
//! | `given.rs` | (a node, a table, writes and reads in few words) |
//! | `reading.rs` | do reads see memory and files as one? |
//! | `answers.rs` | do answers for other replicas merge to what one that has all would say? |
//! | `scanning.rs` | does a scan give what reads of each key give? |
//! | `large_rows.rs` | are large rows, which other threads read, what small ones would be? |
//! | `cold.rs` | how often does a read go to the disk? |
//! | `chunk_lengths.rs` | are chunks as long as reads ask for? |
//! | `prefetching.rs` | what is in memory before anybody asks? |
//! | `errands.rs` | does what one shard asks of another come back? |
//! | `visits.rs` | and what one does in another's place? |
//! | `left_reads.rs` | and reads that one has begun there? |
//! | `lookups.rs` | does a read go on where a lookup that could not wait has stopped? |
//! | `groups.rs` | what is there of a group that is cut off on its way to its shard? |
//! | `pressure.rs` | what when memory, log or disk are full? |
//! | `failing.rs` | what when the disk fails? |
//! | `broken.rs` | what when our own code is at fault? |
//! | `directories.rs` | what are several data directories good for? |
//! | `emptied.rs` | what when a table can not be kept before it is emptied? |
//! | `compacting.rs` | do files become fewer, and stay what they were? |
//! | `replaying.rs` | what when the log is larger than the memory it is replayed into? |
//! | `housekeeping.rs` | what does a node do as time goes by? |
//! | `importing.rs` | do files from elsewhere become part of a table, and do snapshots keep it? |
//! | `rewriting.rs` | do files become what the table asks for? |
//! | `kept.rs` | do directories of earlier versions become ours, with every row? |
//! | `starting.rs` | what when a shard can not start? |
//! | `scopes.rs` | of which files do not all partitions count? |
//! | `restarts.rs` | what is there after a power cut, at any point, and with other shards? |

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]

mod answers;
mod broken;
mod chunk_lengths;
mod cold;
mod compacting;
mod directories;
mod emptied;
mod errands;
mod failing;
mod given;
mod groups;
mod housekeeping;
mod importing;
mod kept;
mod large_rows;
mod left_reads;
mod lookups;
mod prefetching;
mod pressure;
mod reading;
mod replaying;
mod restarts;
mod rewriting;
mod scanning;
mod scopes;
mod starting;
mod visits;
