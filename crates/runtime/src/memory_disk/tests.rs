//! What the simulated disk keeps and forgets; and that the real one behaves alike.

use super::*;
use crate::os_disk::OsDisk;

fn synced_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(path, OpenMode::CreateNew).expect("create");
    file.write_all_at(bytes, 0).expect("write");
    file.sync_data().expect("sync");
    disk.sync_dir(path.parent().expect("parent")).expect("sync directory");
    file
}

/// The same acts on the real disk and in memory show the same.
#[test]
fn memory_disk_behaves_as_the_real_one() {
    let directory = tempfile::tempdir().expect("directory");
    let disks: [(&dyn Disk, PathBuf); 2] =
        [(&OsDisk::new(), directory.path().to_owned()), (&MemoryDisk::new(), PathBuf::from("/data"))];
    for (disk, root) in disks {
        let deep = root.join("a/b/c");
        disk.create_dir_all(&deep).expect("create directories");
        disk.create_dir_all(&deep).expect("again");
        let file = synced_file(disk, &deep.join("one"), b"hello");
        file.write_all_at(b"world", 8).expect("write past the end");
        let mut buffer = [9; 16];
        assert_eq!(file.read_at(&mut buffer, 3).expect("read"), 10);
        assert_eq!(&buffer[..10], b"lo\0\0\0world");
        assert_eq!(file.read_at(&mut buffer, 100).expect("read"), 0);
        let short = file.read_exact_at(&mut buffer, 0).expect_err("too short");
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        file.set_len(4).expect("cut");
        file.allocate(6).expect("grow");
        assert_eq!(disk.read(&deep.join("one")).expect("read"), b"hell\0\0");

        let taken = disk.open(&deep.join("one"), OpenMode::CreateNew).expect_err("exists");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        let absent = disk.open(&deep.join("two"), OpenMode::Read).expect_err("missing");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(absent.to_string().contains("a/b/c/two"), "{absent}");

        disk.hard_link(&deep.join("one"), &deep.join("link")).expect("link");
        disk.rename(&deep.join("one"), &root.join("a/moved")).expect("rename");
        let names: Vec<String> =
            disk.list(&deep).expect("list").into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["link"]);
        assert_eq!(disk.file_bytes(&root.join("a/moved")).expect("length"), 6);
        disk.write_atomically(&root.join("a/moved"), b"new").expect("replace");
        disk.write_atomically(&root.join("a/moved"), b"newer").expect("replace");
        assert_eq!(disk.read(&root.join("a/moved")).expect("read"), b"newer");
        assert_eq!(disk.read(&deep.join("link")).expect("read"), b"hell\0\0");

        let held = disk.lock_dir(&root).expect("lock");
        assert_eq!(disk.lock_dir(&root).expect_err("held").kind(), io::ErrorKind::WouldBlock);
        drop(held);
        disk.lock_dir(&root).expect("free again");

        disk.remove_file(&deep.join("link")).expect("remove");
        disk.remove_dir_all(&root.join("a")).expect("remove all");
        assert!(!disk.exists(&deep).expect("look"));
        assert!(disk.free_space(&root).expect("space") > 0);
    }
}

#[test]
fn synced_bytes_survive_and_unsynced_sectors_are_torn() {
    let disk = MemoryDisk::new();
    let path = Path::new("/file");
    let file = synced_file(&disk, path, &[1; 4096]);
    file.write_all_at(&[2; 4096], 0).expect("overwrite");
    file.write_all_at(&[3; 4096], 4096).expect("append");
    let (mut torn, mut old, mut new) = (0, 0, 0);
    for seed in 0..200 {
        let left = disk.crash(seed).read(path).expect("read");
        assert!((4096..=8192).contains(&left.len()));
        for sector in left[..4096].chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is written whole");
            assert!(sector[0] == 1 || sector[0] == 2);
        }
        match left[..4096].iter().filter(|byte| **byte == 2).count() {
            0 => old += 1,
            4096 => new += 1,
            _ => torn += 1,
        }
    }
    assert!(torn > 20 && old > 20 && new > 20, "{torn} {old} {new}");
    let killed = disk.kill();
    assert_eq!(killed.read(path).expect("read").len(), 8192);
    assert!((0..200).any(|seed| killed.crash(seed).read(path).expect("read").len() < 8192));
}

#[test]
fn names_need_a_directory_sync_and_renames_are_atomic() {
    let disk = MemoryDisk::new();
    synced_file(&disk, Path::new("/old"), b"x");
    disk.rename(Path::new("/old"), Path::new("/new")).expect("rename");
    let mut renamed = 0;
    for seed in 0..100 {
        let image = disk.crash(seed);
        let there = |path| image.exists(Path::new(path)).expect("look");
        assert_ne!(there("/old"), there("/new"), "one of the two, whatever the seed");
        renamed += usize::from(there("/new"));
    }
    assert!((10..90).contains(&renamed), "{renamed}");
    disk.sync_dir(Path::new("/")).expect("sync");
    assert!((0..100).all(|seed| disk.crash(seed).exists(Path::new("/new")).expect("look")));
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let disk = MemoryDisk::new();
    for name in ["/a", "/b", "/c"] {
        let file = disk.open(Path::new(name), OpenMode::CreateNew).expect("create");
        file.write_all_at(&[7; 3000], 100).expect("write");
    }
    let look = |seed| {
        let image = disk.crash(seed);
        let entries = image.list(Path::new("/")).expect("list");
        entries
            .iter()
            .map(|entry| image.read(&Path::new("/").join(&entry.name)).expect("read"))
            .collect::<Vec<_>>()
    };
    assert_eq!(look(5), look(5));
    assert!((0..20).any(|seed| look(seed) != look(5)));
}

#[test]
fn a_failed_sync_is_not_mended_by_the_next() {
    let disk = MemoryDisk::new();
    let file = synced_file(&disk, Path::new("/f"), &[0; 512]);
    file.write_all_at(&[1; 512], 0).expect("write");
    disk.faults().fail_nth(Some(Operation::Sync), 0, Fault::InputOutput);
    assert!(file.sync_data().is_err());
    file.sync_data().expect("the second sync says yes");
    assert!((0..50).any(|seed| disk.crash(seed).read(Path::new("/f")).expect("read") == [0; 512]));
}

#[test]
fn ordered_faults_arrive() {
    let disk = MemoryDisk::new();
    let file = synced_file(&disk, Path::new("/f"), b"");
    disk.faults().fail_nth(Some(Operation::Write), 1, Fault::ShortWrite { written_bytes: 2 });
    file.write_all_at(b"aaaa", 0).expect("the first goes well");
    assert!(file.write_all_at(b"bbbb", 0).is_err());
    assert_eq!(disk.read(Path::new("/f")).expect("read"), b"bbaa");

    disk.faults().set_capacity_bytes(6);
    let full = file.write_all_at(b"cccc", 4).expect_err("too much");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);

    disk.faults().power_off_after(1);
    file.sync_data().expect("one more");
    assert!(file.sync_data().is_err());
    assert!(disk.read(Path::new("/f")).is_err());
    assert_eq!(disk.crash(1).read(Path::new("/f")).expect("read"), b"bbaa");
}
