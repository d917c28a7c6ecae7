//! The same reads by every way of reading.

use super::*;
use crate::{MemoryDisk, OpenMode, OsDisk};
use std::path::Path;

fn content() -> Vec<u8> {
    (0..300_001usize).map(|index| (index * index / 7) as u8).collect()
}

async fn check(disk: &dyn Disk, folder: &Path) -> ColdReader {
    let io = Io::pool(2).expect("threads");
    let path = folder.join("file");
    let written = disk.open(&path, OpenMode::CreateNew).expect("create");
    written.write_all_at(&content(), 0).expect("write");
    written.sync_data().expect("sync");
    let reader = ColdReader::start(disk, &io).expect("a way to read");
    let file = disk.open(&path, OpenMode::Read).expect("open");
    for (offset, length) in
        [(0, 1), (0, 4096), (511, 2), (4095, 20_000), (299_000, 1001), (300_000, 1), (77, 0)]
    {
        let bytes = reader.read(&file, offset, length).await.expect("read");
        assert!(*bytes == content()[offset as usize..offset as usize + length], "{offset} {length}");
    }
    for (offset, length) in [(300_001, 1), (299_999, 5), (1 << 40, 7)] {
        let error = reader.read(&file, offset, length).await.expect_err("beyond the end");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{offset} {length}");
        assert!(error.to_string().contains("file"), "{error} names it");
    }
    assert_eq!(
        reader.read(&file, 0, READ_BYTES_MAX + 1).await.expect_err("too long").kind(),
        io::ErrorKind::InvalidInput
    );
    // A file that has lost its name is still read.
    disk.remove_file(&path).expect("remove");
    assert!(*reader.read(&file, 3, 5).await.expect("read") == content()[3..8]);
    assert_eq!(
        reader.stats(),
        ColdStats { read_count: 11, read_bytes: 1 + 4096 + 2 + 20_000 + 1001 + 1 + 1 + 5 + 7 + 5 }
    );
    reader
}

#[tokio::test]
async fn every_way_of_reading_gives_the_same_bytes_and_errors() {
    let local = tokio::task::LocalSet::new();
    let all = async {
        for access in [DiskAccess::Auto, DiskAccess::Pread, DiskAccess::Buffered] {
            let folder = tempfile::tempdir().expect("folder");
            let reader = check(&OsDisk::with_access(access), folder.path()).await;
            assert!(reader.access() == access || access == DiskAccess::Auto);
            assert_ne!(reader.access(), DiskAccess::Auto);
        }
        let reader = check(&MemoryDisk::new(), Path::new("/")).await;
        assert_eq!(reader.access(), DiskAccess::Buffered);
    };
    local.run_until(all).await;
}
