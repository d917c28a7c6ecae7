//! Completions of all kinds, played to a slot; and readers that go away.

use super::*;
use crate::disk::{Disk, OpenMode};
use crate::os_disk::OsDisk;

/// A file to be read past the page cache; `None` where the file system of temporary files refuses that.
fn file_of(bytes: usize) -> Option<(tempfile::TempDir, Arc<DirectFile>)> {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    let disk = OsDisk::new();
    let file = disk.open(&path, OpenMode::CreateNew).expect("create");
    let content: Vec<u8> = (0..bytes).map(|index| (index / 3) as u8).collect();
    file.write_all_at(&content, 0).expect("write");
    file.sync_data().expect("sync");
    let direct = disk.open(&path, OpenMode::Read).expect("open").direct()?;
    Some((folder, direct))
}

fn slot(file: &Arc<DirectFile>, needed: usize) -> Slot {
    Slot {
        file: Arc::clone(file),
        buffer: AlignedBuffer::with_capacity(64 * 1024),
        capacity_bytes: 64 * 1024,
        start: 0,
        needed,
        attempt_count: 0,
        in_flight_bytes: 0,
        outcome: Outcome::Pending(None),
    }
}

#[test]
fn a_short_read_goes_on_and_an_error_or_the_end_of_the_file_ends_it() {
    let Some((_folder, file)) = file_of(100) else { return };
    let mut short = slot(&file, 20_000);
    short.buffer.spare().fill(std::mem::MaybeUninit::new(7));
    assert!(matches!(short.settle(8192), Settled::Again));
    assert!(matches!(short.settle(8192), Settled::Again));
    assert!(matches!(short.settle(3616), Settled::Done(Ok(()))));
    assert_eq!(short.buffer.filled(), 20_000);

    let mut ended = slot(&file, 20_000);
    let Settled::Done(Err(error)) = ended.settle(100) else { panic!("the file has ended") };
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let Settled::Done(Err(error)) = slot(&file, 1).settle(0) else { panic!("nothing there") };
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);

    let errno = rustix::io::Errno::IO.raw_os_error();
    let Settled::Done(Err(error)) = slot(&file, 1).settle(-errno) else { panic!("an error is one") };
    assert_eq!(error.raw_os_error(), Some(errno));

    let again = -rustix::io::Errno::AGAIN.raw_os_error();
    let mut put_off = slot(&file, 1);
    let attempts = (0..).take_while(|_| matches!(put_off.settle(again), Settled::Again)).count();
    assert_eq!(attempts as u32, ATTEMPT_COUNT_MAX - 1, "it does not try for ever");
}

#[tokio::test]
async fn readers_may_go_away_at_any_moment_and_slots_are_used_again() {
    let Some((_folder, file)) = file_of(1 << 20) else { return };
    let local = tokio::task::LocalSet::new();
    let reads = async {
        let Ok(ring) = Ring::start() else { return };
        for round in 0..50u64 {
            let mut reads = Vec::new();
            for index in 0..40u64 {
                let offset = (round * 8191 + index * 12_345) % ((1 << 20) - 5000);
                reads.push((offset, Box::pin(ring.read(&file, offset, 5000))));
            }
            // Begun, and then every third is dropped: before it is submitted, or while it is read.
            for (_, read) in &mut reads {
                assert!(futures_util::poll!(read.as_mut()).is_pending());
            }
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            for (index, (offset, read)) in reads.into_iter().enumerate() {
                if index % 3 == 0 {
                    drop(read);
                    continue;
                }
                let bytes = read.await.expect("read");
                let expected = (offset as usize..offset as usize + 5000).map(|at| (at / 3) as u8);
                assert!(bytes.iter().copied().eq(expected), "round {round}, offset {offset}");
            }
        }
        assert!(ring.inner.borrow().slots.len() <= 200, "slots are used again");
        // What is in flight when the ring goes is waited for.
        let mut last = Box::pin(ring.read(&file, 0, 5000));
        assert!(futures_util::poll!(last.as_mut()).is_pending());
        tokio::task::yield_now().await;
    };
    local.run_until(reads).await;
}
