//! A node carries out what another one asks of it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use read::{
    Digester, PageDigest, ReadCommand, ReadTarget, TombstoneThresholds, UnfilteredPage, UnfilteredRows,
    merge_answers,
};
use rows::{Mutation, PartitionKey};
use runtime::Plant;
use schema::{Schema, TableId};
use stdx::index_set::IndexSet;
use storage::{
    HashedRow, LookupsSent, Replaced, Shard, ShardHandle, StorageError, Unit, Wait, outdated, unsettled,
};
use tokio::time::timeout;

use crate::agreeing::agree;
use crate::answer::{Answer, Told, Written};
use crate::committed::{note_committed, recall_accepted_of};
use crate::failure::Failure;
use crate::fits::{Cells, check_mutation, check_read};
use crate::request::{Asked, Request, Wanted};

/// What was accepted is written within that time, or somebody is away: another replica may be asked then.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// Carries out one request of another node on the shard that it is for. Whoever keeps logged batches of others answers
/// what is asked about those; here they are refused.
///
/// # Cancel safety
/// A write that has begun goes on.
pub async fn carry_out(shard: &ShardHandle, asked: Asked) -> Answer {
    match asked.request {
        Request::Write { unit, mutations } => Answer::Written(match check_mutations(shard, &mutations) {
            Ok(()) => write(shard, asked.planned_on.schema_epoch, unit, mutations).await,
            // None of them: who sent one that does not fit is behind, or wrong in all.
            Err(failure) => Written { failure: Some(failure), ..Written::default() },
        }),
        Request::Read { wanted, read } => {
            if let Some(error) = outdated(shard.local(), read.table, asked.planned_on.schema_epoch) {
                return Answer::Failed(Failure::from(&error));
            }
            let table = shard.local().with_schema(|schema| schema.table_by_id(read.table).cloned());
            match table.map(|table| check_read(&read, &table).map(|()| table)) {
                Some(Ok(table)) => self::read(shard, wanted, read.into_command(table)).await,
                Some(Err(failure)) => Answer::Failed(failure),
                None => Answer::Failed(Failure::NoTable { table: read.table }),
            }
        }
        Request::Compare { table, rows } => {
            match outdated(shard.local(), table, asked.planned_on.schema_epoch) {
                Some(error) => Answer::Failed(Failure::from(&error)),
                None => compare(shard, table, rows).await,
            }
        }
        Request::Paxos(request) => match agree(shard, asked.planned_on.schema_epoch, *request).await {
            Ok(answer) => Answer::Paxos(answer),
            Err(failure) => Answer::Failed(failure),
        },
        Request::Committed(committed) => Answer::Written(note_committed(shard, committed).await),
        Request::Count(mutation) => match count(shard, asked.planned_on.schema_epoch, *mutation).await {
            Ok(counted) => Answer::Counted(counted),
            Err(failure) => Answer::Failed(failure),
        },
        // Nor of statements.
        Request::Decide(_) => {
            Answer::Failed(Failure::Other { what: "conditional changes are not decided here".to_owned() })
        }
        // A shard knows nothing of when to write one again.
        Request::Batch(_) => {
            Answer::Failed(Failure::Other { what: "logged batches are not kept here".to_owned() })
        }
    }
}

/// What the shards that own some rows have of them: one shard, as a rule.
async fn compare(shard: &ShardHandle, table: TableId, rows: Vec<(PartitionKey, u128)>) -> Answer {
    let known = shard.local().with_schema(|schema| schema.table_by_id(table).cloned());
    let Some(table) = known.filter(|known| known.clustering_types().is_empty()) else {
        return Answer::Failed(Failure::NoTable { table });
    };
    let mut compared = vec![Told::Unknown; rows.len()];
    let mut by_owner: BTreeMap<usize, ToCompare> = BTreeMap::new();
    for (index, (key, hash)) in rows.into_iter().enumerate() {
        let part = by_owner.entry(shard.shards().owner(key.token)).or_default();
        part.indexes.push(index);
        part.keys.push(key);
        part.hashes.push(hash);
    }
    for (owner, ToCompare { indexes, keys, hashes }) in by_owner {
        // What expires is not told, so the moment makes no difference.
        let lookups = Arc::new(LookupsSent { table: Arc::clone(&table), keys, now: 0 });
        // A shard that is busy tells nothing: who asks finds out why.
        let Ok(here) = shard.send_hashed_lookups(owner, lookups).await else { continue };
        for ((index, here), hash) in indexes.into_iter().zip(here).zip(hashes) {
            compared[index] = told(here, hash);
        }
    }
    Answer::Compared(compared)
}

/// What one shard is to compare: the indexes of some rows, their keys and their hashes.
#[derive(Default)]
struct ToCompare {
    indexes: Vec<usize>,
    keys: Vec<PartitionKey>,
    hashes: Vec<u128>,
}

fn told(here: Option<HashedRow>, hash: u128) -> Told {
    match here {
        Some(here) if here.hash == hash => Told::Equal,
        Some(HashedRow { row: Some(row), .. }) => Told::Other(row),
        Some(_) | None => Told::Unknown,
    }
}

/// Do all of these, which another node has sent, fit their tables? Of one that is not known the write itself says so.
///
/// # Errors
/// What does not fit.
pub fn check_mutations<'m>(
    shard: &ShardHandle,
    mutations: impl IntoIterator<Item = &'m Mutation>,
) -> Result<(), Failure> {
    mutations.into_iter().try_for_each(|mutation| check(shard, mutation, Cells::Counted))
}

/// Is that what can be added to counters of its table as it is here?
///
/// # Errors
/// It does not fit.
pub fn check_increments(shard: &ShardHandle, mutation: &Mutation) -> Result<(), Failure> {
    check(shard, mutation, Cells::ToCount)
}

fn check(shard: &ShardHandle, mutation: &Mutation, cells: Cells) -> Result<(), Failure> {
    let fits = |schema: &Schema| match schema.table_by_id(mutation.table) {
        Some(table) => check_mutation(mutation, table, cells),
        None => Ok(()),
    };
    shard.local().with_schema(fits)
}

/// Counts what a mutation adds to counters that was planned on that epoch of the schema. Returns what it has written,
/// on its disk, for the other replicas.
///
/// # Errors
/// [`Failure::Other`] leaves it open whether it was counted. After others it was not.
///
/// # Cancel safety
/// Dropped, it may be counted or not.
pub async fn count(shard: &ShardHandle, planned_on: u64, mutation: Mutation) -> Result<Mutation, Failure> {
    check_increments(shard, &mutation)?;
    let owner = shard.shards().owner(mutation.key.token);
    // Others would have more than this node after a power cut: it would count on from less, and that be lost.
    let counted = shard.count(owner, Some(planned_on), mutation, Wait::Synced).await;
    counted.map_err(|error| Failure::from(&error))
}

/// Writes what was planned on that epoch of the schema to the shards that own it: to one, as a rule, since who asks
/// knows how many shards there are.
///
/// # Cancel safety
/// A write that has begun goes on.
pub async fn write(shard: &ShardHandle, planned_on: u64, unit: Unit, mutations: Vec<Mutation>) -> Written {
    let owners: Vec<usize> =
        mutations.iter().map(|mutation| shard.shards().owner(mutation.key.token)).collect();
    if let Some(owner) = only(&owners) {
        return shard.write_units(owner, Some(planned_on), unit, mutations).await.into();
    }
    // All of them at once: a part that is not begun could be left out.
    let parts = (0..shard.shards().count()).filter(|owner| owners.contains(owner)).map(|owner| {
        let indexes: Vec<usize> = (0..owners.len()).filter(|index| owners[*index] == owner).collect();
        let part = indexes.iter().map(|index| mutations[*index].clone()).collect();
        async move { (indexes, shard.write_units(owner, Some(planned_on), unit, part).await) }
    });
    let mut written = Gathered::default();
    for (indexes, part) in join_all(parts).await {
        written.add(&indexes, unit, part.into());
    }
    written.over(unit)
}

fn only(owners: &[usize]) -> Option<usize> {
    let (first, others) = owners.split_first()?;
    others.iter().all(|owner| owner == first).then_some(*first)
}

/// What several shards have made of one write.
#[derive(Default)]
struct Gathered {
    written: Written,
    /// Has a part of it not come out as done?
    is_lacking: bool,
}

impl Gathered {
    /// Takes in what one shard made of the units with these indexes.
    fn add(&mut self, indexes: &[usize], unit: Unit, part: Written) {
        let at = |index: usize| if unit == Unit::All { 0 } else { indexes[index] };
        part.done.iter().for_each(|index| self.written.done.insert(at(index)));
        part.doubtful.iter().for_each(|index| self.written.doubtful.insert(at(index)));
        self.is_lacking |= part.done.len() < unit.count(indexes.len());
        // Who was outdated has missed nothing; who had no room has.
        let is_less = |failure: &Failure| matches!(failure, Failure::Outdated { .. });
        self.written.failure = match (self.written.failure.take(), part.failure) {
            (Some(failure), Some(other)) if is_less(&failure) => Some(other),
            (failure, other) => failure.or(other),
        };
    }

    /// What it comes to. A unit of which one shard has a part and another has not is in doubt.
    fn over(mut self, unit: Unit) -> Written {
        if unit == Unit::All && self.is_lacking {
            self.written.doubtful = self.written.doubtful.union(self.written.done);
            self.written.done = IndexSet::EMPTY;
        }
        self.written
    }
}

/// What a read sees of what its node has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// What is written now.
    Now,
    /// All of it: it waits until that is written.
    Accepted,
}

/// Reads from the shards that have what is asked for.
pub async fn read(shard: &ShardHandle, wanted: Wanted, command: ReadCommand) -> Answer {
    let is_unheeded = shard.local().runtime().plants.has(Plant::AcceptedUnheeded);
    let sight = if wanted == Wanted::Rows || is_unheeded { Sight::Now } else { Sight::Accepted };
    look(shard, wanted, sight, command).await
}

/// What the shards have.
pub(crate) async fn look(shard: &ShardHandle, wanted: Wanted, sight: Sight, command: ReadCommand) -> Answer {
    let looked = match (owners_of(shard, &command).as_slice(), wanted) {
        ([owner], Wanted::Rows | Wanted::WrittenRows) => {
            rows_of(shard, *owner, sight, command).await.map(Answer::Rows)
        }
        ([owner], Wanted::Digest) => digest_of(shard, *owner, sight, command).await.map(Answer::Digest),
        (owners, wanted) => look_at_several(shard, owners, wanted, sight, command).await,
    };
    looked.unwrap_or_else(Answer::Failed)
}

/// Waits, on the shard that has these rows, until what was accepted of them is written.
async fn accepted_written(shard: &Shard, command: &ReadCommand) -> Result<(), Failure> {
    let (table, unsettled) = (command.table.id(), unsettled(shard));
    if let ReadTarget::Keys(keys) = &command.target
        && unsettled.is_unknown()
    {
        recall_accepted_of(shard, table, keys).await?;
    }
    let what = match timeout(WRITTEN_WITHIN, unsettled.written(table, &command.target)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Replaced)) => "a conditional change of the partition was written elsewhere",
        Err(_) => "a conditional change of the partition is neither written nor given up",
    };
    Err(Failure::Other { what: what.to_owned() })
}

/// The shards that may have what is asked for, each once.
fn owners_of(shard: &ShardHandle, command: &ReadCommand) -> Vec<usize> {
    match &command.target {
        ReadTarget::Keys(keys) => {
            let mut owners: Vec<usize> = keys.iter().map(|key| shard.shards().owner(key.token)).collect();
            owners.sort_unstable();
            owners.dedup();
            owners
        }
        ReadTarget::Range(range) => {
            shard.shards().sharding().shards_within(range.first_token(), range.last_token()).collect()
        }
    }
}

/// What a shard is asked of that. Of keys, which are in the order of the ring, those that are its own, from the
/// position on.
fn part_of(shard: &ShardHandle, owner: usize, command: &ReadCommand) -> ReadCommand {
    let ReadTarget::Keys(keys) = &command.target else { return command.clone() };
    let is_before = |key: &PartitionKey| command.resume.as_ref().is_some_and(|from| *key < from.key);
    let is_own = |key: &&PartitionKey| shard.shards().owner(key.token) == owner && !is_before(key);
    command.of_keys(keys.iter().filter(is_own).cloned().collect())
}

/// Each has read as if it were alone. What they have is apart, so it merges to what one would have said that has all.
async fn look_at_several(
    shard: &ShardHandle,
    owners: &[usize],
    wanted: Wanted,
    sight: Sight,
    command: ReadCommand,
) -> Result<Answer, Failure> {
    let reads = owners.iter().map(|owner| {
        let mut part = part_of(shard, *owner, &command);
        part.limits.bytes_max /= owners.len();
        rows_of(shard, *owner, sight, part)
    });
    let pages = join_all(reads).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    // Each has counted its tombstones, and the thresholds were theirs.
    let thresholds = TombstoneThresholds::NONE;
    let merged = match wanted {
        Wanted::Rows | Wanted::WrittenRows => {
            merge_answers(&command, pages, UnfilteredRows::new(&command, thresholds)).map(Answer::Rows)
        }
        Wanted::Digest => {
            merge_answers(&command, pages, Digester::new(&command, thresholds)).map(Answer::Digest)
        }
    };
    merged.map_err(|error| Failure::from(&StorageError::from(error)))
}

async fn rows_of(
    shard: &ShardHandle,
    owner: usize,
    sight: Sight,
    command: ReadCommand,
) -> Result<UnfilteredPage, Failure> {
    let read = move |shard: Rc<Shard>| async move {
        if sight == Sight::Accepted {
            accepted_written(&shard, &command).await?;
        }
        shard.read_unfiltered(&command).await.map_err(|error| Failure::from(&error))
    };
    shard.ask(owner, read).await.map_err(|error| Failure::from(&error))?
}

async fn digest_of(
    shard: &ShardHandle,
    owner: usize,
    sight: Sight,
    command: ReadCommand,
) -> Result<PageDigest, Failure> {
    let read = move |shard: Rc<Shard>| async move {
        if sight == Sight::Accepted {
            accepted_written(&shard, &command).await?;
        }
        shard.read_digest(&command).await.map_err(|error| Failure::from(&error))
    };
    shard.ask(owner, read).await.map_err(|error| Failure::from(&error))?
}
