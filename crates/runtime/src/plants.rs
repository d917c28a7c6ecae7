//! Faults that are planted to see that they are found.
//!
//! A check that can not fail proves nothing. So code that promises something has a place where a test makes it break
//! the promise; and one of them only does what no promise hangs on. The places cost nothing in a release: without the
//! feature `plants`, which only tests and the simulator turn on, no fault can be planted and [`Plants::has`] is `false`
//! when the compiler sees it.

#[cfg(feature = "plants")]
use std::sync::Arc;
#[cfg(feature = "plants")]
use std::sync::atomic::{AtomicU64, Ordering};

/// Lists faults, each with what goes wrong.
macro_rules! plants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A fault that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Plant {
            $($(#[$doc])* $name,)*
        }

        impl Plant {
            /// All of them.
            pub const ALL: &[Plant] = &[$(Plant::$name,)*];
        }
    };
}

plants! {
    /// The first mutation of a record stands in the log and is not merged into the memtable.
    UnappliedMutation,
    /// A compaction takes a file out that the manifest does not name.
    UnnamedFileRemoved,
    /// A merge leaves a partition out.
    PartitionLost,
    /// Files that a table has are deleted instead of those that it has no more.
    FileDeletedEarly,
    /// A memtable's memory is counted twice when it is let go.
    MemoryGivenBackTwice,
    /// A write is acknowledged before its sync.
    UnsyncedAcknowledgement,
    /// What a visitor wrote is acknowledged before its sync.
    VisitorDoesNotWait,
    /// Of writes that went to their shard together only the first is done.
    GroupLost,
    /// A write is merged into the memtable and not logged.
    UnloggedWrite,
    /// A visitor comes to the shard beside the one that it means.
    WrongShardVisited,
    /// A page that is not the last says that it is.
    ShortRead,
    /// Reads pass over memtables that are being flushed.
    FrozenMemtablePassedOver,
    /// Reads pass over a table's first file, where there are several.
    FilePassedOver,
    /// A flush says of writes that came after it that they are in its file.
    FlushedTooFar,
    /// Segments of the log go before their writes are in files.
    SegmentDiscardedEarly,
    /// A truncation leaves the first shard out.
    HalfTruncation,
    /// A truncation that was cut off is not finished at the start.
    TruncationForgotten,
    /// A logged batch over several shards has no record.
    BatchUnrecorded,
    /// Batches that were cut off are not finished, at the start or later.
    BatchesForgotten,
    /// A plain write does not know the client's timestamp.
    TimestampIgnored,
    /// Rows that were read together answer each other's requests.
    AnswersSwapped,
    /// A write is answered twice.
    AnsweredTwice,
    /// The plan of a prepared statement is used on after the schema has changed.
    StalePlan,
    /// What is written to live for a while lives for ever.
    TimeToLiveForgotten,
    /// A condition is decided while a change of the same partition, whose own was decided before, is not written yet.
    ClaimIgnored,
    /// A change with a condition is told before it is on the disk.
    ConditionalUnsynced,
    /// A condition that does not hold is told before what it read is on the disk.
    UnsyncedReadTold,
    /// A write that was planned before its table was emptied is taken all the same.
    OutdatedTaken,
    /// A replica that is behind does not come as far as the schema on which it is asked.
    EpochUnawaited,
    /// One replica is enough at every level.
    OneIsEnough,
    /// Replicas that lack something are not made equal before a read is answered.
    UnrepairedRead,
    /// A plain read takes another row of a replica for its own.
    OtherRowTakenForEqual,
    /// A write that too few replicas have acknowledged is said to be refused.
    SentCalledRefused,
    /// A node does not advance its timestamps past those that it hears.
    TimestampUnheard,
    /// Of what a node has missed and is sent to it together, only the first is sent.
    MissedUnsent,
    /// What a node that was killed had not settled on the other replicas is not sent to them again.
    UnsettledForgotten,
    /// What another node had begun to write when it was killed is not sent on by those who got it.
    LivesUnwatched,
    /// What stands in the log of a table that was emptied since is sent all the same.
    EmptiedSent,
    /// A node that has taken the place of a lost one is read before it has its rows.
    UnfilledTakenForFull,
    /// A node that is elsewhere now does not tell the others.
    ElsewhereUntold,
    /// A node that does not reach its seeds founds a ring of its own.
    FoundsAlone,
    /// Entries of the history are said to be durable before they are.
    EntryUnsynced,
    /// What a node has missed that is gone for good is kept for it.
    GoneRemembered,
    /// A batch that is tried again holds what it writes to a table that was dropped.
    DroppedStaysInBatch,
    /// A replica that lacks a deletion of several rows is not given it when a read finds that out.
    DeletionUnrepaired,
    /// Cells that have expired are compared as they were written, whatever has become of them on some replicas.
    ExpiredCompared,
    /// An answer of a replica that was cut off by its limits is taken for all that it has.
    CutTakenForWhole,
    /// A part of the ring is read from the replicas of its end.
    OneSetOfReplicas,
    /// Timestamps of other nodes are believed, however far ahead they are.
    SkewBelieved,
    /// A node that is elsewhere is asked where it was.
    GhostAddressKept,
    /// A shard goes on with the ring as it was, whatever has become of that.
    StaleRingKept,
    /// In a ring a logged batch is recorded on no other node than the one that was asked.
    BatchKeptNowhereElse,
    /// A replica does not remember that it has promised a ballot.
    PromiseForgotten,
    /// What replicas have accepted and nobody has made good is passed over.
    AcceptedPassedOver,
    /// A condition that does not hold is told, and what a replica has accepted before may come true after it.
    RefusedUnproposed,
    /// A replica accepts whatever was decided on rows that it does not have so.
    SeenUncompared,
    /// Replicas accept what is proposed for an operation of which they know that something has come already.
    OperationUncompared,
    /// Reads do not wait for what a replica has accepted and not written yet.
    AcceptedUnheeded,
    /// Who was asked to count and is silent is taken not to have counted: another replica counts, too.
    SilentTakenForUncounted,
    /// Who has proposed what others have emptied takes it for made.
    EmptiedTakenForMade,
    /// No fault, and not to be found: nodes that see the same ring choose different replicas to decide about a
    /// partition. What replicas promise holds whoever decides.
    DecidersDiffer,
}

impl Plant {
    /// Those that only nodes of a ring can show, and those that they show as well as one that is alone.
    pub const OF_RING: &[Plant] = &[
        Plant::OutdatedTaken,
        Plant::EpochUnawaited,
        Plant::OneIsEnough,
        Plant::UnrepairedRead,
        Plant::OtherRowTakenForEqual,
        Plant::SentCalledRefused,
        Plant::TimestampUnheard,
        Plant::MissedUnsent,
        Plant::UnsettledForgotten,
        Plant::LivesUnwatched,
        Plant::EmptiedSent,
        Plant::UnfilledTakenForFull,
        Plant::ElsewhereUntold,
        Plant::FoundsAlone,
        Plant::EntryUnsynced,
        Plant::GoneRemembered,
        Plant::DroppedStaysInBatch,
        Plant::DeletionUnrepaired,
        Plant::ExpiredCompared,
        Plant::CutTakenForWhole,
        Plant::OneSetOfReplicas,
        Plant::SkewBelieved,
        Plant::GhostAddressKept,
        Plant::StaleRingKept,
        Plant::BatchKeptNowhereElse,
        Plant::PromiseForgotten,
        Plant::AcceptedPassedOver,
        Plant::RefusedUnproposed,
        Plant::SeenUncompared,
        Plant::OperationUncompared,
        Plant::AcceptedUnheeded,
        Plant::SilentTakenForUncounted,
        Plant::EmptiedTakenForMade,
        Plant::UnsyncedAcknowledgement,
        Plant::BatchesForgotten,
        Plant::UnappliedMutation,
        Plant::FrozenMemtablePassedOver,
    ];

    /// Those that changes with a condition and counters in a ring can show.
    pub const OF_RIVALS: &[Plant] = &[
        Plant::PromiseForgotten,
        Plant::AcceptedPassedOver,
        Plant::RefusedUnproposed,
        Plant::SeenUncompared,
        Plant::OperationUncompared,
        Plant::AcceptedUnheeded,
        Plant::SilentTakenForUncounted,
        Plant::EmptiedTakenForMade,
        Plant::ConditionalUnsynced,
        Plant::TimestampUnheard,
    ];

    /// Can one node alone show it?
    pub fn is_of_lone_node(self) -> bool {
        (self as u32) < Plant::OutdatedTaken as u32
    }
}

const _: () = assert!(Plant::ALL.len() <= u64::BITS as usize, "each has a bit");

/// The variable of the environment that names a fault for a process, where faults can be planted.
#[cfg(feature = "plants")]
const VARIABLE: &str = "PERISTYLE_PLANT";

/// The faults that are planted in a node. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Plants {
    #[cfg(feature = "plants")]
    planted: Arc<AtomicU64>,
}

impl Plants {
    /// None; or, where faults can be planted, the one that the process was started with.
    pub fn of_process() -> Plants {
        let plants = Plants::default();
        #[cfg(feature = "plants")]
        if let Ok(name) = std::env::var(VARIABLE) {
            let plant = Plant::ALL.iter().find(|plant| format!("{plant:?}") == name);
            plants.plant(*plant.unwrap_or_else(|| panic!("{VARIABLE}: there is no fault {name}")));
        }
        plants
    }

    /// Is that fault to show?
    #[cfg(feature = "plants")]
    pub fn has(&self, plant: Plant) -> bool {
        self.planted.load(Ordering::Relaxed) & bit(plant) != 0
    }

    /// Is that fault to show?
    #[cfg(not(feature = "plants"))]
    #[inline]
    pub fn has(&self, _: Plant) -> bool {
        false
    }

    /// Plants a fault.
    #[cfg(feature = "plants")]
    pub fn plant(&self, plant: Plant) {
        self.planted.fetch_or(bit(plant), Ordering::Relaxed);
    }
}

#[cfg(feature = "plants")]
fn bit(plant: Plant) -> u64 {
    1 << plant as u32
}

#[cfg(all(test, feature = "plants"))]
mod tests {
    use super::*;

    #[test]
    fn a_planted_fault_shows_in_all_clones_and_no_other_does() {
        let plants = Plants::default();
        plants.clone().plant(Plant::PartitionLost);
        let shown: Vec<_> = Plant::ALL.iter().filter(|plant| plants.has(**plant)).collect();
        assert_eq!(shown, [&Plant::PartitionLost]);
    }
}
