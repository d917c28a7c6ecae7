//! Which ways requests took through nodes, and what came about: a run that never took one has not tried it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use server::RequestWays;
use storage::Shards;

/// A way through nodes, or what came about on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A prepared read of one row, answered in the turn in which it was read.
    PlainRead,
    /// A prepared write of one row, likewise.
    PlainWrite,
    /// A prepared read of one row that went to its shard with others.
    RemoteRead,
    /// A prepared write of one row, likewise.
    RemoteWrite,
    /// A request that took the full way.
    Full,
    /// A remote batch whose answers waited for those of others of its turn.
    AwaitingBatch,
    /// Others that it waited for in vain.
    LateBatch,
    /// A shard that did something on a sleeping shard's place.
    Visit,
    /// A read that was begun so, and that the shard went on with when it was awake.
    LeftRead,
    /// A page that was not the last.
    Page,
    /// A logged batch.
    LoggedBatch,
    /// A change of the schema.
    SchemaChange,
    /// A truncation.
    Truncation,
    /// A table that was dropped and made again.
    TableMadeAgain,
    /// A connection that broke while requests were under way.
    BrokenConnection,
    /// A write that ends by itself.
    TimeToLive,
    /// A cell of which a read told when it ends.
    Metadata,
    /// Something that was done over the management port.
    Managed,
    /// A file of which a byte was changed for a while.
    SpoiledFile,
    /// A read that was refused because the disk failed.
    RefusedRead,
    /// A life that was cut off.
    Crash,
    /// A write that was acknowledged and might be lost by `periodic`.
    MayBeLost,
    /// A request with an id that was asked again.
    AskedAgain,
    /// A change with a condition that held.
    Applied,
    /// A change with a condition that did not hold.
    NotApplied,
    /// Something that was added to a counter.
    Counted,
    /// The value of a counter.
    CounterShown,
    /// A prepared statement that the node did not know any more.
    Unprepared,
    /// A read of a whole table.
    Range,
    /// A deletion.
    Deletion,
    /// An unlogged batch.
    UnloggedBatch,
    /// A request for which too few replicas lived.
    Unavailable,
    /// A request of which too few replicas did their part.
    TooFew,
    /// A change of the schema that was refused.
    RefusedSchemaChange,
    /// A change of the schema of which nobody knows whether it is done.
    DoubtfulSchemaChange,
    /// A definition of a name that somebody else was quicker to take.
    LostName,
    /// A fault before all nodes were in the ring.
    FoundingFault,
    /// A node that started elsewhere than it was.
    OtherAddress,
    /// A node that lost its disk, and whose place an empty one took.
    LostDisk,
    /// A request at `EACH_QUORUM` in a ring of two data centres that was answered.
    EachQuorum,
    /// A node that stayed away, without which logged batches were whole or absent.
    StayedAway,
    /// A logged batch that was kept for a node which did not finish it, and was written by another one.
    ReplayedBatch,
    /// A mutation that was sent from a log to a node which had missed it.
    SentFromLog,
    /// A logged batch to a table that was dropped behind it, which was not said to be done.
    DroppedUnderWay,
    /// A partition that differed after a node was away, and was made equal.
    MendedPartition,
    /// A row that a node was asked to write shortly before it was killed, and that is there.
    Unsettled,
}

impl Way {
    /// Those through nodes that serve clients.
    pub const OF_SERVED: [Way; 25] = [
        Way::PlainRead,
        Way::PlainWrite,
        Way::RemoteRead,
        Way::RemoteWrite,
        Way::Full,
        Way::AwaitingBatch,
        Way::LateBatch,
        Way::Visit,
        Way::LeftRead,
        Way::Page,
        Way::LoggedBatch,
        Way::SchemaChange,
        Way::Truncation,
        Way::TableMadeAgain,
        Way::BrokenConnection,
        Way::TimeToLive,
        Way::Metadata,
        Way::Managed,
        Way::SpoiledFile,
        Way::RefusedRead,
        Way::Crash,
        Way::MayBeLost,
        Way::Applied,
        Way::NotApplied,
        Way::Unprepared,
    ];

    /// Those through a ring of nodes.
    pub const OF_RING: [Way; 28] = [
        Way::TimeToLive,
        Way::DroppedUnderWay,
        Way::Page,
        Way::LoggedBatch,
        Way::UnloggedBatch,
        Way::SchemaChange,
        Way::RefusedSchemaChange,
        Way::DoubtfulSchemaChange,
        Way::LostName,
        Way::BrokenConnection,
        Way::Crash,
        Way::Unprepared,
        Way::Range,
        Way::Deletion,
        Way::Unavailable,
        Way::TooFew,
        Way::FoundingFault,
        Way::OtherAddress,
        Way::LostDisk,
        Way::EachQuorum,
        Way::StayedAway,
        Way::ReplayedBatch,
        Way::SentFromLog,
        Way::MendedPartition,
        Way::Unsettled,
        Way::AskedAgain,
        Way::Applied,
        Way::NotApplied,
    ];

    /// Those through a ring in which clients only count together.
    pub const OF_RIVALS: [Way; 9] = [
        Way::Truncation,
        Way::Crash,
        Way::OtherAddress,
        Way::LostDisk,
        Way::AskedAgain,
        Way::Applied,
        Way::NotApplied,
        Way::Counted,
        Way::CounterShown,
    ];
}

/// How often each was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways(Rc<RefCell<BTreeMap<Way, Taken>>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    count: u64,
    /// In how many other runs that were added.
    run_count: u64,
}

impl Ways {
    pub(crate) fn add(&self, way: Way, count: u64) {
        self.0.borrow_mut().entry(way).or_default().count += count;
    }

    /// Adds what the requests of a node took.
    pub(crate) fn add_requests(&self, of_shards: &[Arc<RequestWays>]) {
        for ways in of_shards {
            self.add(Way::PlainRead, ways.plain_reads.get());
            self.add(Way::PlainWrite, ways.plain_writes.get());
            self.add(Way::RemoteRead, ways.remote_reads.get());
            self.add(Way::RemoteWrite, ways.remote_writes.get());
            self.add(Way::Full, ways.full.get());
            self.add(Way::AwaitingBatch, ways.awaiting_batches.get());
            self.add(Way::LateBatch, ways.late_batches.get());
        }
    }

    /// Adds what shards did in each other's place.
    pub(crate) async fn add_visits(&self, shards: &Shards) {
        for shard in 0..shards.count() {
            let visits = shards.on(shard, |shard| async move { shard.visits() }).await.unwrap_or_default();
            self.add(Way::Visit, visits.count);
            self.add(Way::LeftRead, visits.left_read_count);
        }
    }

    /// How often it was taken.
    pub fn count(&self, way: Way) -> u64 {
        self.0.borrow().get(&way).map_or(0, |taken| taken.count)
    }

    /// Adds what another run took.
    pub fn add_all(&self, other: &Ways) {
        for (way, taken) in other.0.borrow().iter().filter(|(_, taken)| taken.count > 0) {
            self.add(*way, taken.count);
            self.0.borrow_mut().entry(*way).or_default().run_count += 1;
        }
    }

    /// Those that were never taken.
    pub fn missing(&self, among: &[Way]) -> Vec<Way> {
        among.iter().copied().filter(|way| self.count(*way) == 0).collect()
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (way, Taken { count, run_count }) in self.0.borrow().iter() {
            let name = format!("{way:?}");
            writeln!(f, "  {name:<18} {count:>9} in {run_count} runs")?;
        }
        Ok(())
    }
}
