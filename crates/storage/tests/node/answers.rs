//! Do answers for other replicas merge to what one that has everything would say, and do their hashes agree?

use std::rc::Rc;
use std::sync::Arc;

use read::{
    Digester, LivePage, PageDigest, PartitionRows, ReadCommand, ReadTarget, TombstoneThresholds,
    UnfilteredPage, UnfilteredRows, merge_answers, missing,
};
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, DeletionTime, Liveness,
    Mutation, MutationBuilder, RangeTombstone, RingRange, RowBuilder, Slice, Slices,
};
use runtime::MemoryDisk;
use schema::Table;
use storage::{Overlay, Shard};

use crate::given::*;

const KEY_COUNT: i32 = 5;
const NOW: u32 = 1_704_067_300;
const REPLICAS: usize = 3;

/// A linear congruential generator, as in `scanning.rs`.
struct Picks {
    state: u64,
    /// Are some clusterings equal in order, and not in bytes? Which bytes stay depends on what came first.
    has_twins: bool,
}

impl Picks {
    fn new(state: u64) -> Self {
        Picks { state, has_twins: false }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// The first so many of two components; the second is a decimal.
    fn prefix(&mut self, component_count: u64) -> Clustering {
        let mut clustering = ClusteringBuilder::new();
        if component_count > 0 {
            clustering.push(Some(&(self.below(3) as i32).to_be_bytes()));
        }
        if component_count > 1 {
            let twin: &[u8] = if self.has_twins { &[0, 0, 0, 2, 100] } else { &[0, 0, 0, 2, 101] };
            let decimals: [&[u8]; 4] = [&[0, 0, 0, 1, 10], twin, &[0, 0, 0, 0, 2], &[0, 0, 0, 0, 3]];
            clustering.push(Some(decimals[self.below(4) as usize]));
        }
        clustering.finish()
    }

    fn bound(&mut self, kinds: [BoundKind; 2]) -> Bound {
        let component_count = self.below(3);
        let kind = kinds[if component_count == 0 { 0 } else { self.below(2) as usize }];
        Bound { kind, prefix: self.prefix(component_count) }
    }

    fn slice(&mut self) -> Slice {
        let start = self.bound([BoundKind::InclusiveStart, BoundKind::ExclusiveStart]);
        Slice { start, end: self.bound([BoundKind::InclusiveEnd, BoundKind::ExclusiveEnd]) }
    }
}

fn rich() -> Arc<Table> {
    named("rich")
}

/// A change of `k.rich` of whatever kind. Timestamps collide, but for those of what expires: which of two cells of one
/// time wins depends on whether compaction has seen that one has expired.
fn change(picks: &mut Picks, number: i64) -> Mutation {
    let table = rich();
    let id = |name: &str| table.column(name).expect("a column").id;
    let timestamp = 1 + picks.below(60) as i64;
    let deletion = DeletionTime { timestamp, local_deletion_time: NOW - picks.below(50) as u32 };
    let value = vec![b'a' + picks.below(3) as u8; picks.below(200) as usize];
    let mut mutation = MutationBuilder::new(table.id(), key(picks.below(KEY_COUNT as u64) as i32));
    let at = picks.prefix(2);
    let row = |liveness, deletion| RowBuilder::new(&at, liveness, deletion);
    match picks.below(16) {
        0 => _ = mutation.partition_deletion(DeletionTime { timestamp: timestamp / 4, ..deletion }),
        1..=3 => _ = mutation.range(RangeTombstone { slice: picks.slice(), deletion }),
        4 => _ = mutation.row(row(Liveness::NONE, deletion).finish()),
        5 => {
            let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
            row.cell(id("s"), CellRef::live(timestamp, &value));
            mutation.static_row(row.finish());
        }
        6 => {
            let mut row = row(Liveness::NONE, DeletionTime::LIVE);
            row.cell(id("v"), CellRef::tombstone(timestamp, deletion.local_deletion_time));
            mutation.row(row.finish());
        }
        7 | 8 => {
            let (timestamp, ends) = (1000 + number, NOW - 60 + picks.below(120) as u32);
            let mut row = row(Liveness::expiring(timestamp, 90, ends), DeletionTime::LIVE);
            row.cell(id("v"), CellRef::expiring(timestamp, 90, ends, &value));
            mutation.row(row.finish());
        }
        9 | 10 => {
            let deletion = if picks.one_in(3) { deletion } else { DeletionTime::LIVE };
            let mut row = row(Liveness::NONE, DeletionTime::LIVE);
            let path = (picks.below(3) as i32).to_be_bytes();
            let cell = CellRef::live(timestamp, &value).with_path(&path);
            row.complex(id("m"), deletion, [cell]);
            mutation.row(row.finish());
        }
        11 | 12 => {
            let mut row = row(Liveness::NONE, DeletionTime::LIVE);
            row.cell(id("v"), CellRef::live(timestamp, &value));
            mutation.row(row.finish());
        }
        _ => {
            let mut row = row(Liveness::at(timestamp), DeletionTime::LIVE);
            row.cell(id("v"), CellRef::live(timestamp, &value));
            mutation.row(row.finish());
        }
    }
    mutation.finish()
}

/// A node that has taken these changes in whatever order, and has flushed and compacted meanwhile.
async fn replica(picks: &mut Picks, changes: &[Mutation]) -> Node {
    let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
    let mut left: Vec<&Mutation> = changes.iter().collect();
    while !left.is_empty() {
        let next = left.swap_remove(picks.below(left.len() as u64) as usize);
        node.shard(0).write(std::slice::from_ref(next)).await.expect("writes");
        if picks.one_in(15) {
            node.shard(0).flush(next.table).await.expect("flushes");
        }
        if picks.one_in(60) {
            node.shard(0).compact(next.table).await.expect("compacts");
        }
    }
    node
}

/// Reads of everything, of a part of each partition, backwards, a few rows of each.
fn commands(picks: &mut Picks) -> Vec<ReadCommand> {
    let comparator = ClusteringComparator::new(Arc::clone(rich().clustering_types()));
    let mut commands = vec![command(&rich(), ReadTarget::Range(RingRange::ALL))];
    for pk in 0..KEY_COUNT {
        let mut read = command(&rich(), ReadTarget::Keys(vec![key(pk)]));
        read.reversed = picks.one_in(2);
        if picks.one_in(2) {
            read.slices = Slices::new(vec![picks.slice(), picks.slice()], &comparator);
        }
        commands.push(read);
    }
    commands
}

fn live(read: &ReadCommand, answers: Vec<UnfilteredPage>) -> Vec<PartitionRows> {
    let page = LivePage::new(read, TombstoneThresholds::NONE);
    merge_answers(read, answers, page).expect("merges").partitions
}

fn digest(read: &ReadCommand, answers: Vec<UnfilteredPage>) -> PageDigest {
    merge_answers(read, answers, Digester::new(read, TombstoneThresholds::NONE)).expect("merges")
}

async fn unfiltered(shard: &Rc<Shard>, read: &ReadCommand) -> UnfilteredPage {
    shard.read_unfiltered(read).await.expect("reads")
}

#[test]
fn answers_of_replicas_merge_to_what_one_that_has_all_would_say() {
    for seed in 0..30 {
        let mut picks = Picks::new(seed);
        let changes: Vec<Mutation> = (0..120).map(|number| change(&mut picks, number)).collect();
        let mut parts: [Vec<Mutation>; REPLICAS] = Default::default();
        for change in &changes {
            let sure = picks.below(REPLICAS as u64) as usize;
            for (index, part) in parts.iter_mut().enumerate() {
                if index == sure || picks.one_in(2) {
                    part.push(change.clone());
                }
            }
        }
        run(async {
            let whole = replica(&mut picks, &changes).await;
            let mut replicas = Vec::new();
            for part in &parts {
                replicas.push(replica(&mut picks, part).await);
            }
            for read in commands(&mut picks) {
                let mut answers = Vec::new();
                for replica in &replicas {
                    answers.push(unfiltered(replica.shard(0), &read).await);
                }
                let expected = whole.shard(0).read(&read).await.expect("reads").partitions;
                assert_eq!(live(&read, answers.clone()), expected, "seed {seed}, {read:?}");
                let expected = whole.shard(0).read_digest(&read).await.expect("reads");
                assert_eq!(digest(&read, answers.clone()), expected, "seed {seed}, {read:?}");
                // And once more: an answer made of answers says the same.
                let rows = UnfilteredRows::new(&read, TombstoneThresholds::NONE);
                let again = merge_answers(&read, answers, rows).expect("merges");
                assert_eq!(digest(&read, vec![again]), expected, "seed {seed}, {read:?}");
            }
        });
    }
}

#[test]
fn replicas_with_the_same_writes_agree_and_one_cell_makes_the_difference() {
    for seed in 0..30 {
        let mut picks = Picks { has_twins: true, ..Picks::new(1000 + seed) };
        let changes: Vec<Mutation> = (0..100).map(|number| change(&mut picks, number)).collect();
        run(async {
            let one = replica(&mut picks, &changes).await;
            let other = replica(&mut picks, &changes).await;
            for read in commands(&mut picks) {
                let digests =
                    (one.shard(0).read_digest(&read).await, other.shard(0).read_digest(&read).await);
                assert_eq!(digests.0.expect("reads"), digests.1.expect("reads"), "seed {seed}, {read:?}");
            }
            let mut late = change(&mut picks, 0);
            while late.rows.is_empty() || late.rows[0].liveness().is_none() {
                late = change(&mut picks, 0);
            }
            let mut row = RowBuilder::new(&late.rows[0].clustering(), Liveness::NONE, DeletionTime::LIVE);
            row.cell(rich().column("v").expect("v").id, CellRef::live(5000, b"late"));
            let mut mutation = MutationBuilder::new(rich().id(), late.key.clone());
            mutation.row(row.finish());
            other.shard(0).write(&[mutation.finish()]).await.expect("writes");
            let all = command(&rich(), ReadTarget::Range(RingRange::ALL));
            let digests = (one.shard(0).read_digest(&all).await, other.shard(0).read_digest(&all).await);
            assert_ne!(digests.0.expect("reads"), digests.1.expect("reads"), "seed {seed}");
        });
    }
}

#[test]
fn page_by_page_an_answer_goes_as_far_as_its_hash_and_as_a_page_of_live_rows() {
    for seed in 0..20 {
        let mut picks = Picks::new(2000 + seed);
        let changes: Vec<Mutation> = (0..120).map(|number| change(&mut picks, number)).collect();
        run(async {
            let one = replica(&mut picks, &changes).await;
            let other = replica(&mut picks, &changes).await;
            for mut read in commands(&mut picks) {
                read.limits.row_count = 1 + picks.below(4) as u32;
                read.limits.rows_per_partition = 1 + picks.below(8) as u32;
                loop {
                    let page = one.shard(0).read(&read).await.expect("reads");
                    let answer = unfiltered(one.shard(0), &read).await;
                    let hash = other.shard(0).read_digest(&read).await.expect("reads");
                    assert_eq!(answer.next, page.next, "seed {seed}, {read:?}");
                    assert_eq!(answer.tombstones, page.tombstones, "seed {seed}, {read:?}");
                    assert_eq!(digest(&read, vec![answer.clone()]), hash, "seed {seed}, {read:?}");
                    let merged = live(&read, vec![answer.clone(), unfiltered(other.shard(0), &read).await]);
                    assert_eq!(merged, page.partitions, "seed {seed}, {read:?}");
                    let Some(next) = page.next else { break };
                    read.resume = Some(next);
                }
            }
        });
    }
}

/// Each replica is given what it lacks of a page, and has what the others have; page after page until there is none.
#[test]
fn who_is_given_what_it_lacks_has_what_all_have() {
    for seed in 0..12 {
        let mut picks = Picks { has_twins: seed % 2 == 0, ..Picks::new(4000 + seed) };
        let changes: Vec<Mutation> = (0..120).map(|number| change(&mut picks, number)).collect();
        run(async {
            for mut read in commands(&mut picks) {
                if picks.one_in(2) {
                    read.limits.row_count = 1 + picks.below(4) as u32;
                }
                let mut replicas = Vec::new();
                for _ in 0..REPLICAS {
                    let part: Vec<Mutation> = changes.iter().filter(|_| picks.one_in(2)).cloned().collect();
                    replicas.push(replica(&mut picks, &part).await);
                }
                loop {
                    let answers = answers_of(&replicas, &read).await;
                    let rows = UnfilteredRows::new(&read, TombstoneThresholds::NONE);
                    let whole = merge_answers(&read, answers.clone(), rows).expect("merges");
                    for (replica, answer) in replicas.iter().zip(&answers) {
                        for mutation in missing(&read, &whole, answer) {
                            replica.shard(0).write(&[mutation]).await.expect("writes");
                        }
                    }
                    let expected = digest(&read, vec![whole.clone()]);
                    for answer in answers_of(&replicas, &read).await {
                        // A page of several may end where the first of them did, and now there is more.
                        if answer.next == whole.next {
                            assert_eq!(
                                digest(&read, vec![answer.clone()]),
                                expected,
                                "seed {seed}, {read:?}"
                            );
                        }
                        assert_eq!(missing(&read, &whole, &answer), [], "seed {seed}, {read:?}");
                    }
                    let Some(next) = whole.next else { break };
                    read.resume = Some(next);
                }
            }
        });
    }
}

async fn answers_of(replicas: &[Node], read: &ReadCommand) -> Vec<UnfilteredPage> {
    let mut answers = Vec::new();
    for replica in replicas {
        answers.push(unfiltered(replica.shard(0), read).await);
    }
    answers
}

/// What compaction may drop, and has dropped on one of two replicas, is not what they differ by.
#[test]
fn what_compaction_has_dropped_makes_no_difference() {
    for seed in 0..20 {
        let mut picks = Picks::new(3000 + seed);
        run(async {
            let (one, other) = (replica(&mut picks, &[]).await, replica(&mut picks, &[]).await);
            for number in 0..60 {
                let (pk, timestamp) = (picks.below(20) as i32, 1 + number);
                let ends = NOW - 100 + picks.below(200) as u32;
                let (liveness, cell) = match picks.below(4) {
                    0 => (Liveness::NONE, CellRef::tombstone(timestamp, NOW - 200)),
                    1 => (Liveness::NONE, CellRef::expiring(timestamp, 90, ends, b"w")),
                    _ => (Liveness::at(timestamp), CellRef::live(timestamp, b"v")),
                };
                let mut row = RowBuilder::new(&Clustering::EMPTY, liveness, DeletionTime::LIVE);
                row.cell(lone().column("v").expect("v").id, cell);
                let mut mutation = MutationBuilder::new(lone().id(), key(pk));
                match picks.below(5) {
                    0 => {
                        _ = mutation
                            .partition_deletion(DeletionTime { timestamp, local_deletion_time: NOW - 200 })
                    }
                    _ => _ = mutation.row(row.finish()),
                }
                let mutation = mutation.finish();
                for node in [&one, &other] {
                    node.shard(0).write(std::slice::from_ref(&mutation)).await.expect("writes");
                    if picks.one_in(10) {
                        node.shard(0).flush(lone().id()).await.expect("flushes");
                    }
                }
            }
            one.shard(0).flush(lone().id()).await.expect("flushes");
            one.shard(0).compact(lone().id()).await.expect("compacts");
            let all = command(&lone(), ReadTarget::Range(RingRange::ALL));
            let keys = command(&lone(), ReadTarget::Keys((0..20).map(key).collect()));
            for read in [all, keys] {
                let digests =
                    (one.shard(0).read_digest(&read).await, other.shard(0).read_digest(&read).await);
                assert_eq!(digests.0.expect("reads"), digests.1.expect("reads"), "seed {seed}, {read:?}");
            }
        });
    }
}

/// An answer takes no more memory than it may, however much of it is dead.
#[test]
fn an_answer_for_a_replica_is_bounded_and_goes_on_where_it_ended() {
    run(async {
        let mut picks = Picks::new(7);
        let changes: Vec<Mutation> = (0..400).map(|number| change(&mut picks, number)).collect();
        let node = replica(&mut picks, &changes).await;
        for mut read in commands(&mut picks) {
            let (all, expected) = (read.clone(), node.shard(0).read(&read).await.expect("reads").partitions);
            read.limits.bytes_max = 2 << 10;
            let (mut answers, mut page_count) = (Vec::new(), 0);
            loop {
                let answer = unfiltered(node.shard(0), &read).await;
                let next = answer.next.clone();
                answers.push(without_end(answer));
                page_count += 1;
                let Some(next) = next else { break };
                read.resume = Some(next);
            }
            assert_eq!(live(&all, answers), expected, "{all:?}");
            assert!(page_count > 1 || expected.len() < 2, "it takes several");
        }
    });
}

/// A page as if there were nothing behind it: to be put together with those that follow.
fn without_end(mut page: UnfilteredPage) -> UnfilteredPage {
    page.partitions.iter_mut().for_each(|partition| partition.is_cut = false);
    UnfilteredPage { next: None, ..page }
}

/// Rows that one replica told behind the end of another's answer were believed once, although the other one had what
/// hides them, or rows that come before.
#[test]
fn page_by_page_replicas_that_differ_say_what_one_would_that_has_all() {
    for seed in 0..20 {
        let mut picks = Picks::new(5000 + seed);
        let changes: Vec<Mutation> = (0..120).map(|number| change(&mut picks, number)).collect();
        run(async {
            let whole = replica(&mut picks, &changes).await;
            let mut replicas = Vec::new();
            for index in 0..REPLICAS {
                let has = |number: usize| number % REPLICAS == index || number.is_multiple_of(7);
                let part: Vec<Mutation> = (0..changes.len())
                    .filter(|number| has(*number))
                    .map(|number| changes[number].clone())
                    .collect();
                replicas.push(replica(&mut picks, &part).await);
            }
            for mut read in commands(&mut picks) {
                read.limits.rows_per_partition = 1 + picks.below(8) as u32;
                let expected = whole.shard(0).read(&read).await.expect("reads").partitions;
                read.limits.row_count = 1 + picks.below(3) as u32;
                let mut found: Vec<PartitionRows> = Vec::new();
                loop {
                    let answers = answers_of(&replicas, &read).await;
                    let page = LivePage::new(&read, TombstoneThresholds::NONE);
                    let page = merge_answers(&read, answers, page).expect("merges");
                    for partition in page.partitions {
                        match found.last_mut().filter(|last| last.key == partition.key) {
                            Some(last) => last.rows.extend(partition.rows),
                            None => found.push(partition),
                        }
                    }
                    let Some(next) = page.next else { break };
                    assert_ne!(read.resume.as_ref(), Some(&next), "seed {seed}: it gets on, {read:?}");
                    read.resume = Some(next);
                }
                assert_eq!(found, expected, "seed {seed}, {read:?}");
            }
        });
    }
}

/// What is decided together is read so: what is on the disk, and what those before would change.
#[test]
fn changes_that_lie_over_a_read_make_what_they_would_make_when_written() {
    for seed in 0..20 {
        let mut picks = Picks::new(6000 + seed);
        let changes: Vec<Mutation> = (0..120).map(|number| change(&mut picks, number)).collect();
        run(async {
            let whole = replica(&mut picks, &changes).await;
            let half = replica(&mut picks, &changes[..60]).await;
            for mut read in commands(&mut picks) {
                let ReadTarget::Keys(keys) = read.target.clone() else { continue };
                read.reversed = false;
                read.limits.row_count = 1 + picks.below(6) as u32;
                let mut overlay = Overlay::new(rich());
                changes[60..]
                    .iter()
                    .filter(|change| change.key == keys[0])
                    .for_each(|change| overlay.add(change));
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                for rows in pages(whole.shard(0), read.clone()).await {
                    expected.extend(rows.rows);
                }
                loop {
                    let page = overlay.read(half.shard(0), &read).await.expect("reads");
                    found.extend(page.partitions.into_iter().flat_map(|partition| partition.rows));
                    let Some(next) = page.next else { break };
                    read.resume = Some(next);
                }
                assert_eq!(found, expected, "seed {seed}, {read:?}");
            }
        });
    }
}
