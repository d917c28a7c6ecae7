//! Power cuts at every moment, and every byte flipped.
//!
//! Not checked here: media that lose what was synced, two flipped bytes that cancel out in a CRC, and
//! that unacknowledged records which come back are a prefix of those appended.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogError, CommitLogOptions, LogPosition, SyncMode};
use common::{DIRECTORY, in_virtual_time, read_all, runtime_over};
use proptest::prelude::*;
use runtime::MemoryDisk;

/// What a run knows when the power goes.
#[derive(Debug, Default)]
struct History {
    appended: BTreeMap<(u32, LogPosition), Vec<u8>>,
    acknowledged: Vec<(u32, LogPosition)>,
    /// Of each stream, what is below may be gone, also when it is acknowledged only then.
    discarded_below: [Option<LogPosition>; 2],
}

impl History {
    fn discard(&mut self, stream: u32, below: LogPosition) {
        let discarded = &mut self.discarded_below[stream as usize];
        *discarded = (*discarded).max(Some(below));
        self.acknowledged.retain(|(other, position)| *other != stream || *position >= below);
    }

    /// May the record still be expected to be there?
    fn is_kept(&self, stream: u32, position: LogPosition) -> bool {
        self.discarded_below[stream as usize].is_none_or(|below| position >= below)
    }
}

#[derive(Clone, Debug)]
enum Act {
    Append { stream: u32, record_bytes: usize },
    Sleep { millis: u64 },
    Discard { stream: u32, segments: u64 },
    Close { stream: u32 },
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..2_u32, prop_oneof![0..80_usize, 400..1900_usize])
            .prop_map(|(stream, record_bytes)| Act::Append { stream, record_bytes }),
        4 => prop_oneof![Just(1_u64), 1..8_u64, Just(40)].prop_map(|millis| Act::Sleep { millis }),
        2 => (0..2_u32, 1..3_u64).prop_map(|(stream, segments)| Act::Discard { stream, segments }),
        1 => (0..2_u32).prop_map(|stream| Act::Close { stream }),
    ]
}

/// The first stream's segments are a page each, the second's several.
fn options(stream: u32) -> CommitLogOptions {
    let segment_bytes = if stream == 0 { 4096 } else { 16 * 1024 };
    let sync = SyncMode::Group { window: Duration::ZERO };
    CommitLogOptions { segment_bytes, sync, ..CommitLogOptions::default() }
}

/// Plays the acts until they or the power end. Records what was acknowledged as it happens, and
/// what was discarded as no longer expected.
async fn play(disk: &MemoryDisk, acts: &[Act], history: &Rc<RefCell<History>>, salt: u8) {
    let runtime = runtime_over(disk);
    let open =
        |stream| CommitLog::open(&runtime, Path::new(DIRECTORY), stream, options(stream)).ok().map(Rc::new);
    let mut logs = [open(0), open(1)];
    for (index, act) in acts.iter().enumerate() {
        match *act {
            Act::Append { stream, record_bytes } => {
                let Some(log) = &logs[stream as usize] else { continue };
                let payload = vec![(index as u8).wrapping_add(salt) | 1; record_bytes];
                let Ok(position) = log.append(&payload) else { continue };
                history.borrow_mut().appended.insert((stream, position), payload);
                let (log, history) = (Rc::clone(log), Rc::clone(history));
                tokio::task::spawn_local(async move {
                    if log.synced(position).await.is_ok() && history.borrow().is_kept(stream, position) {
                        history.borrow_mut().acknowledged.push((stream, position));
                    }
                });
            }
            Act::Sleep { millis } => tokio::time::sleep(Duration::from_millis(millis)).await,
            Act::Discard { stream, segments } => {
                let Some(log) = &logs[stream as usize] else { continue };
                let segment = log.end().segment.saturating_sub(segments);
                let below = LogPosition { segment, offset: 0 };
                history.borrow_mut().discard(stream, below);
                let _ = log.discard_below(below).await;
            }
            Act::Close { stream } => {
                if let Some(log) = logs[stream as usize].take() {
                    let _ = log.close().await;
                    drop(log);
                    logs[stream as usize] = open(stream);
                }
            }
        }
    }
}

/// Everything acknowledged is there; everything there was appended, and in order.
fn check(image: &MemoryDisk, history: &History, context: &str) {
    let found = read_all(image);
    assert!(found.errors.is_empty(), "{context}: {:?}", found.errors);
    let replayed: BTreeMap<(u32, LogPosition), Vec<u8>> =
        found.records.iter().map(|r| ((r.stream, r.position), r.payload.to_vec())).collect();
    let order: Vec<_> = found.records.iter().map(|r| (r.stream, r.position)).collect();
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{context}: out of order");
    for (place, payload) in &replayed {
        assert_eq!(Some(payload), history.appended.get(place), "{context}: {place:?} was never appended");
    }
    for place in &history.acknowledged {
        assert!(replayed.contains_key(place), "{context}: {place:?} was acknowledged and is lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_survives_any_power_cut(
        lives in prop::collection::vec(
            (prop::collection::vec(any_act(), 1..40), 0..60_u64, any::<u64>(), any::<bool>()),
            1..4,
        ),
    ) {
        let mut disk = MemoryDisk::new();
        let history = Rc::new(RefCell::new(History::default()));
        for (life, (acts, power_off_after, seed, is_power_cut)) in lives.iter().enumerate() {
            disk.faults().power_off_after(*power_off_after);
            in_virtual_time(play(&disk, acts, &history, life as u8 * 50));
            for other in 0..3 {
                check(&disk.crash(seed ^ (other + 1)), &history.borrow(), &format!("life {life}, image {other}"));
            }
            check(&disk.kill(), &history.borrow(), &format!("life {life}, killed"));
            disk = if *is_power_cut { disk.crash(*seed) } else { disk.kill() };
            check(&disk, &history.borrow(), &format!("life {life}"));
            // What this image holds is what the next life starts from: nothing more may come back.
            // Opened once, so that what was replayed is durable even if only the process was killed.
            in_virtual_time(play(&disk, &[], &history, 0));
            let found = read_all(&disk);
            let here: Vec<_> = found.records.iter().map(|r| (r.stream, r.position)).collect();
            history.borrow_mut().appended.retain(|place, _| here.contains(place));
            history.borrow_mut().acknowledged = here;
        }
    }
}

/// The head of a frame, or of none.
const BLANK_BYTES: u64 = 12;

/// A log of two finished segments and one under way, whose last group has no marker behind it.
fn a_log() -> (MemoryDisk, Vec<(LogPosition, Vec<u8>)>) {
    let disk = MemoryDisk::new();
    let mut records = Vec::new();
    in_virtual_time(async {
        let log = CommitLog::open(&runtime_over(&disk), Path::new(DIRECTORY), 0, options(0)).expect("open");
        for index in 0..24_u8 {
            let payload = vec![index + 1; 300 + usize::from(index)];
            let position = log.append(&payload).expect("append");
            log.synced(position).await.expect("durable");
            records.push((position, payload));
        }
    });
    (disk, records)
}

#[test]
fn every_flipped_byte_is_reported_and_never_returned() {
    let (disk, records) = a_log();
    let (last, payload) = records.last().expect("records");
    assert_eq!(last.segment, 3);
    // Behind the last frame there is a blank one, and then whatever was in the file.
    let end = u64::from(last.offset) + BLANK_BYTES + payload.len().next_multiple_of(4) as u64;
    for segment in 1..=3_u64 {
        let path = Path::new(DIRECTORY).join(format!("commitlog-0-{segment}.log"));
        let file_bytes = runtime::Disk::file_bytes(&disk, &path).expect("length");
        for offset in 0..file_bytes {
            let image = disk.kill();
            image.flip_bits(&path, offset, 1 << (offset % 8)).expect("flip");
            let found = read_all(&image);
            let context = format!("byte {offset} of segment {segment}");
            if segment == 3 && offset >= end + BLANK_BYTES {
                assert_eq!(found.records.len(), records.len(), "{context} is nothing that was written");
                continue;
            }
            assert!(!found.errors.is_empty() || !found.torn.is_empty(), "{context} is not reported");
            for record in &found.records {
                assert!(
                    records.contains(&(record.position, record.payload.to_vec())),
                    "{context} is returned"
                );
            }
            let lost = records.len() - found.records.len();
            if found.torn.is_empty() {
                assert!(lost <= 1, "{context}: {lost} records lost to one byte");
            } else {
                assert_eq!(segment, 3, "{context}: finished segments have no torn tail");
                assert!(lost <= 1, "{context}: a torn tail can reach the last group alone, lost {lost}");
            }
        }
    }
}

#[test]
fn a_cut_segment_is_reported() {
    let (disk, records) = a_log();
    for segment in 1..=3_u64 {
        let path = Path::new(DIRECTORY).join(format!("commitlog-0-{segment}.log"));
        let file_bytes = runtime::Disk::file_bytes(&disk, &path).expect("length");
        for length in (0..file_bytes).step_by(37) {
            let image = disk.kill();
            let file = runtime::Disk::open(&image, &path, runtime::OpenMode::ReadWrite).expect("open");
            file.set_len(length).expect("cut");
            let found = read_all(&image);
            let is_reported = found.errors.iter().any(CommitLogError::is_damage) && found.torn.is_empty();
            assert!(is_reported, "{length} of {segment}: {:?}", found.errors);
            assert!(found.records.len() <= records.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in the files, replay and open end, and return only what was appended.
    #[test]
    fn any_bytes_are_read_without_a_panic(
        garbage in prop::collection::vec((1..=4_u64, 0..4200_u64, prop::collection::vec(any::<u8>(), 0..64)), 0..8),
        cut in prop::option::of((1..=3_u64, 0..4200_u64)),
    ) {
        let (disk, records) = a_log();
        let image = disk.kill();
        for (segment, offset, bytes) in garbage {
            let path = Path::new(DIRECTORY).join(format!("commitlog-0-{segment}.log"));
            let file = match runtime::Disk::open(&image, &path, runtime::OpenMode::ReadWrite) {
                Ok(file) => file,
                Err(_) => runtime::Disk::open(&image, &path, runtime::OpenMode::CreateNew).expect("create"),
            };
            file.write_all_at(&bytes, offset).expect("write");
        }
        if let Some((segment, length)) = cut {
            let path = Path::new(DIRECTORY).join(format!("commitlog-0-{segment}.log"));
            runtime::Disk::open(&image, &path, runtime::OpenMode::ReadWrite).expect("open").set_len(length).expect("cut");
        }
        for record in read_all(&image).records {
            prop_assert!(records.contains(&(record.position, record.payload.to_vec())));
        }
        in_virtual_time(async {
            let log = CommitLog::open(&runtime_over(&image), Path::new(DIRECTORY), 0, options(0)).expect("open");
            log.append(b"on").expect("append");
            log.close().await.expect("close");
        });
        let found = read_all(&image);
        prop_assert_eq!(found.records.last().map(|record| record.payload.to_vec()), Some(b"on".to_vec()));
    }
}
