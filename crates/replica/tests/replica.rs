//! A node that is asked by bytes does what it would have done if it had been asked directly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use read::{
    Digester, LivePage, ReadColumns, ReadCommand, ReadPosition, ReadTarget, TombstoneThresholds,
    UnfilteredPage, merge_answers,
};
use replica::{
    Answer, Asked, BatchRequest, Failure, PlannedOn, READ_KEYS_MAX, Request, Wanted, carry_out, is_in_order,
};
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, DeletionTime, Liveness,
    Mutation, MutationBuilder, PartitionKey, RangeTombstone, RingPlace, RingRange, RowBuilder, Slice, Slices,
};
use runtime::trace::TraceEvent;
use runtime::{ManualClock, MemoryDisk, Runtime};
use schema::{
    ClusteringOrder, ColumnId, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId,
};
use stdx::index_set::IndexSet;
use storage::{Directory, Emptying, LocalShards, StorageOptions, Unit};
use types::{CqlType, Token};
use uuid::Uuid;

/// That of the schema on which all is planned here.
const EPOCH: u64 = 7;
const PLANNED_ON: PlannedOn = PlannedOn { schema_epoch: EPOCH, truncated_at: 0, ring_epoch: 0 };
const NOW: u32 = 1_704_067_300;
const KEYS: i32 = 40;

/// `k.t (pk int, c int, s text static, v text, PRIMARY KEY (pk, c))`
fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("s", ColumnKind::Static, CqlType::Text)
        .column("v", ColumnKind::Regular, CqlType::Text);
    Arc::new(table.build().expect("a sound table"))
}

fn schema() -> Arc<Schema> {
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "k".into(),
        replication: Replication { class: "org.apache.cassandra.locator.SimpleStrategy".into(), options },
        durable_writes: true,
        tables: [("t".to_owned(), table())].into_iter().collect(),
        types: BTreeMap::new(),
    };
    Arc::new(Schema::new(1, [keyspace]))
}

fn start(shard_count: u16) -> LocalShards {
    let mut runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), 1);
    runtime.clock = Arc::new(ManualClock::default());
    let options =
        StorageOptions { segment_bytes: 64 << 10, ..StorageOptions::new("/node", shard_count, 32 << 20) };
    let directory = Directory::open(&runtime, options).expect("opens");
    directory.recover(&schema()).expect("recovers").start_local(&schema()).expect("starts")
}

fn run(story: impl Future<Output = ()>) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&tokio.expect("a runtime"), story);
}

fn key(pk: i32) -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&pk.to_be_bytes()))
}

fn at(c: i32) -> Clustering {
    let mut clustering = ClusteringBuilder::new();
    clustering.push(Some(&c.to_be_bytes()));
    clustering.finish()
}

fn slice(first: i32, last: i32) -> Slice {
    let bound = |kind, c| Bound { kind, prefix: at(c) };
    Slice { start: bound(BoundKind::InclusiveStart, first), end: bound(BoundKind::ExclusiveEnd, last) }
}

/// Rows, static ones, deletions of every kind.
fn changes() -> Vec<Mutation> {
    let column = |name: &str| table().column(name).expect("a column").id;
    let mut changes = Vec::new();
    for pk in 0..KEYS {
        for c in 0..6 {
            let mut row = RowBuilder::new(&at(c), Liveness::at(10), DeletionTime::LIVE);
            row.cell(column("v"), CellRef::live(10, format!("{pk}.{c}").as_bytes()));
            let mut mutation = MutationBuilder::new(table().id(), key(pk));
            mutation.row(row.finish());
            if pk % 3 == 0 {
                let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
                row.cell(column("s"), CellRef::live(11 + i64::from(c), b"static"));
                mutation.static_row(row.finish());
            }
            changes.push(mutation.finish());
        }
        let deletion = DeletionTime { timestamp: 20, local_deletion_time: NOW - 5 };
        let mut mutation = MutationBuilder::new(table().id(), key(pk));
        match pk % 5 {
            0 => _ = mutation.partition_deletion(DeletionTime { timestamp: 9, ..deletion }),
            1 => _ = mutation.range(RangeTombstone { slice: slice(2, 4), deletion }),
            2 => _ = mutation.row(RowBuilder::new(&at(3), Liveness::NONE, deletion).finish()),
            _ => continue,
        }
        changes.push(mutation.finish());
    }
    changes
}

/// A request as another node would send it.
fn asked(put: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut body = BytesMut::new();
    Asked::begin(PLANNED_ON, &mut body);
    put(&mut body);
    body
}

/// Asks as another node would: by bytes, and is answered by bytes.
async fn ask(node: &LocalShards, put: impl FnOnce(&mut BytesMut)) -> Answer {
    let body = asked(put).freeze();
    let answer = carry_out(&node.handles()[0], Asked::read(body).expect("it makes sense")).await;
    let mut back = BytesMut::new();
    answer.put(&mut back);
    assert_eq!(Answer::read(back.freeze()).as_ref(), Ok(&answer), "it comes as it was sent");
    answer
}

async fn write(node: &LocalShards, unit: Unit, mutations: &[Mutation]) -> replica::Written {
    match ask(node, |out| Request::put_write(unit, mutations, out)).await {
        Answer::Written(written) => written,
        other => panic!("{other:?}"),
    }
}

async fn filled(shard_count: u16) -> LocalShards {
    let node = start(shard_count);
    for group in changes().chunks(16) {
        let written = write(&node, Unit::Each, group).await;
        assert_eq!(written, replica::Written { done: IndexSet::first(group.len()), ..Default::default() });
    }
    node
}

async fn rows(node: &LocalShards, command: &ReadCommand) -> UnfilteredPage {
    match ask(node, |out| Request::put_read(Wanted::Rows, command, out)).await {
        Answer::Rows(page) => {
            assert!(is_in_order(&page, command), "{command:?}");
            page
        }
        other => panic!("{other:?}"),
    }
}

fn commands() -> Vec<ReadCommand> {
    let of = |target| ReadCommand::new(table(), target, NOW);
    let comparator = ClusteringComparator::new(Arc::clone(table().clustering_types()));
    let range = |start, end| of(ReadTarget::Range(RingRange { start, end }));
    let mut commands = vec![
        range(RingPlace::Start, RingPlace::End),
        range(RingPlace::AfterToken(Token(0)), RingPlace::BeforeToken(Token(i64::MAX / 2))),
        range(RingPlace::BeforeKey(key(3)), RingPlace::AfterKey(key(3))),
    ];
    let mut all: Vec<PartitionKey> = (0..6).map(key).collect();
    all.sort();
    let targets = (0..6).map(|pk| vec![key(pk)]).chain([all[1..4].to_vec(), all]);
    for keys in targets {
        let last = keys[keys.len() / 2].clone();
        let mut command = of(ReadTarget::Keys(keys));
        commands.push(command.clone());
        command.reversed = true;
        command.slices = Slices::new(vec![slice(0, 1), slice(2, 5)], &comparator);
        command.columns = ReadColumns::Some([table().column("v").expect("v").id].into());
        command.limits.row_count = 2;
        commands.push(command.clone());
        command.resume = Some(ReadPosition { key: last, clustering: Some(at(3)), row_count: 1 });
        commands.push(command.clone());
        command.slices = Slices::none();
        commands.push(command);
    }
    commands
}

#[test]
fn what_is_asked_by_bytes_is_what_the_shard_would_have_said() {
    run(async {
        let node = filled(1).await;
        for command in commands() {
            let direct = node.handles()[0].local().read_unfiltered(&command).await.expect("reads");
            assert!(!direct.partitions.is_empty() || command.slices.as_slice().is_empty(), "{command:?}");
            assert_eq!(rows(&node, &command).await, direct, "{command:?}");
            let digest = node.handles()[0].local().read_digest(&command).await.expect("reads");
            let answer = ask(&node, |out| Request::put_read(Wanted::Digest, &command, out)).await;
            assert_eq!(answer, Answer::Digest(digest), "{command:?}");
        }
    });
}

/// What asks for several keys is written as if it were for one of a network.
#[test]
fn keys_in_another_order_or_too_many_are_refused() {
    let mut keys: Vec<PartitionKey> = (0..=READ_KEYS_MAX as i32).map(|pk| key(0x5a5a_0000 + pk)).collect();
    keys.sort();
    let beyond = keys.pop().expect("one more");
    let of = |keys: &[PartitionKey]| ReadCommand::new(table(), ReadTarget::Keys(keys.to_vec()), NOW);
    let body = asked(|out| Request::put_read(Wanted::Rows, &of(&keys), out)).freeze();
    assert!(Asked::read(body.clone()).is_ok());
    let place = |key: &PartitionKey| {
        body.windows(key.bytes.len()).position(|window| *window == key.bytes[..]).expect("it is in there")
    };
    // The last key in the place of the first; twice the same one.
    for (from, to) in [(&keys[keys.len() - 1], &keys[0]), (&keys[0], &keys[1])] {
        let mut wrong = body.to_vec();
        let to = place(to);
        wrong[to..to + from.bytes.len()].copy_from_slice(&from.bytes);
        assert!(Asked::read(wrong.into()).is_err());
    }
    // One more than there may be: its number stands before the first key's length.
    let (first, mut many) = (place(&keys[0]) - 8, body.to_vec());
    many[first] += 1;
    let one_more = [4, 0, 0, 0].into_iter().chain(beyond.bytes.iter().copied());
    let behind = place(&keys[keys.len() - 1]) + 4;
    many.splice(behind..behind, one_more);
    assert!(Asked::read(many.into()).is_err());
    many = body.to_vec();
    many[first..first + 4].fill(0);
    assert!(Asked::read(many.into()).is_err(), "there is none");
}

#[test]
fn a_logged_batch_comes_as_it_was_sent_and_a_shard_alone_keeps_none() {
    run(async {
        let (node, id) = (start(1), Uuid::from_u128(9));
        let keep = asked(|out| Request::put_keep_batch(id, &changes(), out)).freeze();
        let read = Asked::read(keep.clone()).expect("it makes sense");
        let expected = Request::Batch(BatchRequest::Keep { id, mutations: changes() });
        assert_eq!((read.planned_on.schema_epoch, &read.request), (EPOCH, &expected));
        let refused = carry_out(&node.handles()[0], read).await;
        assert!(matches!(refused, Answer::Failed(Failure::Other { .. })), "{refused:?}");
        let drop = asked(|out| Request::put_drop_batches(&[id, id], out)).freeze();
        let read = Asked::read(drop.clone()).expect("it makes sense");
        assert_eq!(read.request, Request::Batch(BatchRequest::Drop { ids: vec![id, id] }));
        for body in [keep, drop] {
            for end in 0..body.len() {
                assert!(Asked::read(body.slice(..end)).is_err(), "it is cut off at {end}");
            }
        }
        let none = [(6, 20), (7, 4)].map(|(kind, zeros)| {
            asked(|out| {
                out.extend([kind]);
                out.extend(std::iter::repeat_n(0, zeros));
            })
        });
        none.into_iter()
            .for_each(|none| assert!(Asked::read(none.freeze()).is_err(), "there is nothing in it"));
    });
}

#[test]
fn a_node_of_several_shards_says_what_one_of_one_shard_does() {
    run(async {
        let (one, several) = (filled(1).await, filled(3).await);
        for mut command in commands() {
            command.limits.row_count = command.limits.row_count.min(7);
            loop {
                let expected = rows(&one, &command).await;
                let found = rows(&several, &command).await;
                assert_eq!(found.next, expected.next, "{command:?}");
                let none = TombstoneThresholds::NONE;
                let live =
                    |page| merge_answers(&command, [page], LivePage::new(&command, none)).expect("merges");
                assert_eq!(live(found).partitions, live(expected.clone()).partitions, "{command:?}");
                let answer = ask(&several, |out| Request::put_read(Wanted::Digest, &command, out)).await;
                let next = expected.next.clone();
                let digest =
                    merge_answers(&command, [expected], Digester::new(&command, none)).expect("merges");
                assert_eq!(answer, Answer::Digest(digest), "{command:?}");
                let Some(next) = next else { break };
                command.resume = Some(next);
            }
        }
    });
}

#[test]
fn a_write_to_several_shards_is_done_as_a_whole() {
    run(async {
        let node = start(3);
        let all = changes();
        let written = write(&node, Unit::All, &all).await;
        assert_eq!(written, replica::Written { done: IndexSet::first(1), ..Default::default() });
        let command = ReadCommand::new(table(), ReadTarget::Range(RingRange::ALL), NOW);
        assert_eq!(rows(&node, &command).await, rows(&filled(3).await, &command).await);
    });
}

#[test]
fn a_table_that_is_not_known_is_told() {
    run(async {
        let node = start(1);
        let unknown = TableId(Uuid::from_u128(8));
        let mut mutation = MutationBuilder::new(unknown, key(1));
        mutation.partition_deletion(DeletionTime { timestamp: 1, local_deletion_time: NOW });
        let written = write(&node, Unit::Each, &[changes()[0].clone(), mutation.finish()]).await;
        let failure = Some(Failure::NoTable { table: unknown });
        assert_eq!(
            written,
            replica::Written { done: IndexSet::first(1), doubtful: IndexSet::EMPTY, failure }
        );
        let table = TableBuilder::new(unknown, "k", "unknown")
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .build()
            .expect("a sound table");
        let command = ReadCommand::new(Arc::new(table), ReadTarget::Keys(vec![key(1)]), NOW);
        let answer = ask(&node, |out| Request::put_read(Wanted::Rows, &command, out)).await;
        assert_eq!(answer, Answer::Failed(Failure::NoTable { table: unknown }));
    });
}

#[test]
fn a_row_that_is_too_large_for_the_page_is_told_with_its_size() {
    run(async {
        let node = filled(1).await;
        let mut command = ReadCommand::new(table(), ReadTarget::Keys(vec![key(4)]), NOW);
        command.limits.bytes_max = 10;
        let answer = ask(&node, |out| Request::put_read(Wanted::Rows, &command, out)).await;
        assert!(matches!(answer, Answer::Failed(Failure::RowTooLarge { bytes: 11.. })), "{answer:?}");
    });
}

/// A change that a later definition of the table allows would be lost with the next flush.
#[test]
fn what_does_not_fit_the_table_is_refused() {
    run(async {
        let node = start(1);
        let column = |name: &str| table().column(name).expect("a column").id;
        let write_of = |clustering: &Clustering, id: ColumnId| {
            let mut row = RowBuilder::new(clustering, Liveness::at(1), DeletionTime::LIVE);
            row.cell(id, CellRef::live(1, b"value"));
            let mut mutation = MutationBuilder::new(table().id(), key(1));
            mutation.row(row.finish());
            mutation.finish()
        };
        let later = ColumnId(100);
        let behind = Some(Failure::NoTable { table: table().id() });
        assert_eq!(write(&node, Unit::Each, &[write_of(&at(1), later)]).await.failure, behind);
        let mut two = ClusteringBuilder::new();
        two.push(Some(b"1")).push(Some(b"2"));
        let mut of_map = RowBuilder::new(&at(1), Liveness::at(1), DeletionTime::LIVE);
        of_map.complex(column("v"), DeletionTime::LIVE, [CellRef::live(1, b"v").with_path(b"p")]);
        let mut map = MutationBuilder::new(table().id(), key(1));
        map.row(of_map.finish());
        let mut range = MutationBuilder::new(table().id(), key(1));
        let deletion = DeletionTime { timestamp: 1, local_deletion_time: NOW };
        range.range(RangeTombstone { slice: Slice::prefix(two.finish()), deletion });
        let wrong = [
            write_of(&Clustering::EMPTY, column("v")),
            write_of(&at(1), column("s")),
            map.finish(),
            range.finish(),
        ];
        for mutation in wrong {
            let written = write(&node, Unit::Each, &[changes()[0].clone(), mutation.clone()]).await;
            assert!(matches!(written.failure, Some(Failure::Other { .. })), "{mutation:?}");
            assert!(written.done.is_empty(), "none of them: {mutation:?}");
        }
        let mut read = ReadCommand::new(table(), ReadTarget::Keys(vec![key(1)]), NOW);
        read.resume = Some(ReadPosition { key: key(1), clustering: Some(Clustering::EMPTY), row_count: 1 });
        let answer = ask(&node, |out| Request::put_read(Wanted::Rows, &read, out)).await;
        assert!(matches!(answer, Answer::Failed(Failure::Other { .. })), "{answer:?}");
    });
}

fn steps() -> Vec<TraceEvent> {
    let step = |number: u8| TraceEvent {
        id: Uuid::from_u128(u128::from(number)),
        activity: "é".repeat(usize::from(number)),
        elapsed: Duration::from_micros(1_000_000_007),
        thread: format!("shard-{number}"),
        node: None,
    };
    (0..3).map(step).collect()
}

#[test]
fn steps_come_before_the_answer_to_who_wants_them_told_and_to_nobody_else() {
    let request = |is_traced: bool| {
        asked(|out| {
            if is_traced {
                Asked::put_traced(out);
            }
            Request::put_drop_batches(&[Uuid::from_u128(7)], out);
        })
    };
    let [plain, traced] =
        [false, true].map(|is_traced| Asked::read(request(is_traced).freeze()).expect("one"));
    assert_eq!((plain.is_traced, traced.is_traced), (false, true));
    assert_eq!((plain.request, plain.planned_on), (traced.request, traced.planned_on));
    let answer = Answer::Written(replica::Written::default());
    let mut body = BytesMut::new();
    Answer::put_steps(&steps(), &mut body);
    answer.put(&mut body);
    let body = body.freeze();
    assert_eq!(Answer::read_traced(body.clone()), Ok((steps(), answer.clone())));
    assert!(Answer::read(body).is_err(), "nobody has asked for steps");
    let mut body = BytesMut::new();
    answer.put(&mut body);
    assert!(Answer::read_traced(body.freeze()).is_err(), "there are none");
}

/// Everything cut off somewhere, or with a byte that is another one: told, or read as something else, never a panic.
#[test]
fn a_body_that_was_spoiled_is_told() {
    run(async {
        let node = filled(1).await;
        let mut bodies = Vec::new();
        for command in commands() {
            bodies.push((0, asked(|out| Request::put_read(Wanted::Rows, &command, out))));
        }
        bodies.push((0, asked(|out| Request::put_write(Unit::Each, &changes()[..16], out))));
        bodies.push((
            0,
            asked(|out| {
                Asked::put_traced(out);
                Request::put_write(Unit::All, &changes()[..2], out);
            }),
        ));
        let command = ReadCommand::new(table(), ReadTarget::Keys(vec![key(1)]), NOW);
        let mut body = BytesMut::new();
        Answer::Rows(rows(&node, &command).await).put(&mut body);
        let mut traced = BytesMut::new();
        Answer::put_steps(&steps(), &mut traced);
        Answer::Failed(Failure::NoTable { table: table().id() }).put(&mut traced);
        bodies.extend([(1, body), (1, traced)]);
        for (which, body) in bodies {
            for cut in 0..body.len() {
                let rest = || body.clone().freeze().slice(..cut);
                let is_told = match which {
                    0 => Asked::read(rest()).is_err(),
                    _ => Answer::read(rest()).is_err() && Answer::read_traced(rest()).is_err(),
                };
                assert!(is_told, "cut off at {cut}");
                let mut spoiled = vec![which];
                spoiled.extend_from_slice(&body);
                spoiled[1 + cut] ^= 1 << (cut % 8);
                replica::hostile::read_body(&spoiled);
            }
        }
    });
}

/// What was planned before a table was emptied is refused behind that, whenever it arrives.
#[test]
fn what_was_planned_before_a_truncation_is_refused() {
    for unit in [Unit::All, Unit::Each] {
        run(async move {
            let node = filled(1).await;
            let truncate = async |epoch| {
                let store = node.handles()[0].local().table(table().id()).expect("a table");
                store.truncate(Emptying::Agreed { epoch }).await
            };
            let range = ReadCommand::new(table(), ReadTarget::Range(RingRange::ALL), NOW);
            let read = |out: &mut BytesMut| Request::put_read(Wanted::Rows, &range, out);
            let later = async |body: BytesMut| {
                let asked = Asked::read(body.freeze()).expect("it makes sense");
                carry_out(
                    &node.handles()[0],
                    Asked { planned_on: PlannedOn { schema_epoch: EPOCH + 1, ..PLANNED_ON }, ..asked },
                )
                .await
            };
            let outdated = Failure::Outdated { epoch: EPOCH + 1 };
            truncate(EPOCH + 1).await.expect("empties");
            // An older one changes nothing.
            truncate(EPOCH - 1).await.expect("empties");
            let written = write(&node, unit, &changes()[..3]).await;
            assert_eq!((written.done, written.failure), (IndexSet::EMPTY, Some(outdated.clone())));
            assert_eq!(ask(&node, read).await, Answer::Failed(outdated));
            later(asked(|out| Request::put_write(unit, &changes()[..3], out))).await;
            match later(asked(read)).await {
                Answer::Rows(page) => assert!(!page.partitions.is_empty(), "it came behind"),
                other => panic!("{other:?}"),
            }
        });
    }
}

#[test]
fn a_page_out_of_order_is_noticed() {
    run(async {
        let node = filled(1).await;
        let range = ReadCommand::new(table(), ReadTarget::Range(RingRange::ALL), NOW);
        let page = rows(&node, &range).await;
        let spoiled = |spoil: &dyn Fn(&mut UnfilteredPage)| {
            let mut page = page.clone();
            spoil(&mut page);
            is_in_order(&page, &range)
        };
        assert!(spoiled(&|_| {}));
        assert!(!spoiled(&|page| page.partitions.reverse()));
        assert!(!spoiled(&|page| page.partitions.push(page.partitions[0].clone())));
        assert!(!spoiled(&|page| page.partitions[0].items.reverse()));
        assert!(!spoiled(&|page| {
            let twice = page.partitions[0].items[0].clone();
            page.partitions[0].items.insert(0, twice);
        }));
        let first = page.partitions[0].header.key.clone();
        assert!(!spoiled(&|page| page.next = Some(ReadPosition::behind(first.clone()))), "before its end");
        let other = ReadCommand::new(table(), ReadTarget::Keys(vec![key(1)]), NOW);
        let mut of_key = rows(&node, &other).await;
        of_key.next = Some(ReadPosition::behind(key(2)));
        assert!(!is_in_order(&of_key, &other), "it goes on in another partition");
        assert!(!is_in_order(&page, &other), "of keys that were not asked for");
    });
}

/// Appends a body.
type Put<'a> = &'a dyn Fn(&mut BytesMut);

/// Bodies that were kept when they were made: what is written now is the same, or an older node could not read it.
#[test]
#[expect(clippy::disallowed_methods, reason = "kept bytes are files beside the code")]
fn bodies_are_what_they_were() {
    run(async {
        let node = filled(1).await;
        let command = commands().swap_remove(5);
        let page = rows(&node, &ReadCommand::new(table(), ReadTarget::Keys(vec![key(6)]), NOW)).await;
        let written = replica::Written {
            done: IndexSet::first(2),
            doubtful: IndexSet::EMPTY,
            failure: Some(Failure::Overloaded { what: "no room".into() }),
        };
        // What follows a seed's first byte is the body: see `hostile`.
        let cases: [(&str, u8, Put<'_>); 4] = [
            ("write", 0, &|out| Request::put_write(Unit::Each, &changes()[..3], out)),
            ("read", 0, &|out| Request::put_read(Wanted::Rows, &command, out)),
            ("rows", 1, &|out| Answer::Rows(page.clone()).put(out)),
            ("written", 1, &|out| Answer::Written(written.clone()).put(out)),
        ];
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/bodies");
        for (name, which, put) in cases {
            let mut bytes = BytesMut::from(&[which][..]);
            if which == 0 {
                Asked::begin(PLANNED_ON, &mut bytes);
            }
            put(&mut bytes);
            let kept = std::fs::read(folder.join(name)).expect("it was kept");
            assert_eq!(bytes, kept, "{name}");
        }
    });
}
