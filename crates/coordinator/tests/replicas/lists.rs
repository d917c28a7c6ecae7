//! Reads of several keys: those of the same replicas are read together, and the answer is that of each by itself.

use read::{ReadLimits, ReadPage};

use super::*;

/// Not in the order of the ring; of some there is nothing.
const KEYS: [i32; 24] =
    [7, 3, 21, 0, 15, 9, 40, 1, 12, 5, 18, 2, 41, 6, 20, 11, 4, 19, 8, 17, 10, 13, 16, 14];

fn of_list(limits: ReadLimits) -> ReadCommand {
    let target = ReadTarget::Keys(KEYS.into_iter().map(key).collect());
    ReadCommand { limits, ..ReadCommand::new(table(), target, NOW) }
}

fn shown(page: &ReadPage) -> impl Iterator<Item = (PartitionKey, String)> {
    page.partitions.iter().map(|partition| (partition.key.clone(), value(&partition.rows[0])))
}

/// All pages of it, one after the other.
async fn read_all(ring: &Ring, mut command: ReadCommand, level: Consistency) -> Vec<(PartitionKey, String)> {
    let mut rows = Vec::new();
    loop {
        let page = ring.replicas(0).read(&command, level, PATIENCE).await.expect("enough live");
        assert!(page.partitions.len() <= command.limits.row_count as usize);
        assert!(page.given().bytes <= command.limits.bytes_max);
        rows.extend(shown(&page));
        let Some(next) = page.next else { return rows };
        command.resume = Some(next);
    }
}

/// Five nodes: keys have several sets of replicas. Some have it all, some what is old, and some nothing.
async fn start() -> Ring {
    let ring = Ring::start(5, &["dc1"], None).await;
    for pk in 0..22 {
        ring.write(0, pk, "old", Consistency::All).await.expect("all are there");
        if pk % 3 != 0 {
            let node = pk as usize % 5;
            if ring.held(node, pk).await.is_some() {
                let alone = ring.nodes[node].0.handles()[0].local();
                alone.write(&[insert(pk, &format!("new {pk}"), 5)]).await.expect("writes");
            }
        }
    }
    ring
}

#[test]
fn a_list_shows_what_its_keys_show_one_by_one() {
    run(async {
        let (one_by_one, ring) = (start().await, start().await);
        let mut expected = Vec::new();
        for pk in KEYS {
            if let Some(v) = one_by_one.read(0, pk, Consistency::All).await.expect("all live") {
                expected.push((key(pk), v));
            }
        }
        assert_eq!(expected.len(), 22);
        let read = |level| {
            let command = of_list(ReadLimits::PAGE);
            let ring = &ring;
            async move { read_all(ring, command, level).await }
        };
        // Which of the replicas are asked is not said: some may have what is old.
        let of_some = read(Consistency::Quorum).await;
        for (pk, (of, v)) in KEYS.into_iter().filter(|pk| *pk < 22).zip(&of_some) {
            assert!(*of == key(pk) && (v == "old" || *v == format!("new {pk}")), "{pk}: {v}");
            assert!(ring.holders(pk, v).await.len() >= 2, "{pk}: two have what is shown");
        }
        assert_eq!(read(Consistency::All).await, expected);
        for (pk, (_, v)) in KEYS.into_iter().filter(|pk| *pk < 22).zip(&expected) {
            assert_eq!(ring.holders(pk, v).await.len(), 3);
        }
        assert_eq!(read(Consistency::One).await, expected, "all have the same now");
    });
}

#[test]
fn a_replica_that_is_away_stands_in_the_way_of_its_keys_alone() {
    run(async {
        let ring = start().await;
        let expected = read_all(&ring, of_list(ReadLimits::PAGE), Consistency::All).await;
        ring.lose(4).await;
        assert_eq!(read_all(&ring, of_list(ReadLimits::PAGE), Consistency::Quorum).await, expected);
        let mut command = of_list(ReadLimits::PAGE);
        let mut shown_count = 0;
        let refused = loop {
            match ring.replicas(0).read(&command, Consistency::All, PATIENCE).await {
                Ok(page) => {
                    shown_count += page.partitions.len();
                    command.resume = Some(page.next.expect("not all can be read"));
                }
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, ReplicaError::Unavailable { alive: 2, .. }), "{refused:?}");
        let mut before = 0;
        for pk in KEYS {
            match ring.read(0, pk, Consistency::All).await {
                Ok(row) => before += usize::from(row.is_some()),
                Err(_) => break,
            }
        }
        assert_eq!(shown_count, before, "all before the first of its keys");
    });
}

#[test]
fn its_pages_are_in_the_order_asked_for_and_no_larger_than_they_may_be() {
    run(async {
        let ring = start().await;
        let expected = read_all(&ring, of_list(ReadLimits::PAGE), Consistency::All).await;
        assert_eq!(expected.len(), 22);
        let row_limits = [1, 2, 5, 21, 22, 23].map(|row_count| ReadLimits { row_count, ..ReadLimits::PAGE });
        let room = [3_000, 9_000, 20_000, 60_000];
        let byte_limits =
            room.map(|bytes_max| ReadLimits { bytes: bytes_max / 3, bytes_max, ..ReadLimits::PAGE });
        for limits in row_limits.into_iter().chain(byte_limits) {
            let rows = read_all(&ring, of_list(limits), Consistency::All).await;
            assert_eq!(rows, expected, "{limits:?}");
        }
    });
}

/// Whoever asks allows as much as is said, and reads it then.
#[test]
fn a_large_row_in_a_list_says_what_it_needs() {
    run(async {
        let ring = start().await;
        let large = "x".repeat(30_000);
        let mutation = insert(KEYS[0], &large, 9);
        ring.replicas(0).write(vec![mutation], Consistency::All, PATIENCE).await.expect("all are there");
        let mut command = of_list(ReadLimits { bytes_max: 20_000, ..ReadLimits::PAGE });
        let refused = ring.replicas(0).read(&command, Consistency::Quorum, PATIENCE).await;
        let error = coordinator::CoordinatorError::from(refused.expect_err("there is no room for it"));
        let coordinator::CoordinatorError::Storage(storage::StorageError::RowTooLarge { bytes }) = error
        else {
            panic!("{error:?}")
        };
        command.limits.bytes_max = bytes;
        let rows = read_all(&ring, command, Consistency::Quorum).await;
        assert_eq!((rows.len(), &rows[0].1), (22, &large));
    });
}
