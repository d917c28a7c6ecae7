//! Directories of the memory disk: as seen, as durable, and the changes between.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};

use super::content::FileState;
use super::toss;
use crate::pool::lock;
use crate::random::SeededRandom;

const ROOT: u64 = 0;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Entry {
    File(Arc<Mutex<FileState>>),
    Directory(u64),
}

/// A place for an entry: directory and name.
type Slot = (u64, String);

/// All directories by number. A removed one stays until it is reachable from nowhere.
#[derive(Clone, Default)]
struct Tree {
    directories: BTreeMap<u64, BTreeMap<String, Entry>>,
}

/// A change of names that is not durable yet. Invariant: applied in order to the durable tree, the
/// pending changes give the tree as seen.
#[derive(Clone)]
struct Change {
    emptied: Option<Slot>,
    filled: Option<(Slot, Entry)>,
}

/// The names of a disk.
pub(super) struct Names {
    seen: Tree,
    durable: Tree,
    pending: Vec<Change>,
    next_directory: u64,
}

impl Names {
    pub(super) fn new() -> Names {
        let root = Tree { directories: BTreeMap::from([(ROOT, BTreeMap::new())]) };
        Names { seen: root.clone(), durable: root, pending: Vec::new(), next_directory: ROOT + 1 }
    }

    pub(super) fn find(&self, path: &Path) -> Option<Entry> {
        let mut entry = Entry::Directory(ROOT);
        for name in parts(path).ok()? {
            let Entry::Directory(directory) = entry else { return None };
            entry = self.seen.directories.get(&directory)?.get(&name)?.clone();
        }
        Some(entry)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<(String, Entry)>> {
        let directory = self.directory(path)?;
        let entries = self.seen.directories.get(&directory).ok_or_else(missing)?;
        Ok(entries.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect())
    }

    /// Puts an entry at a path that must be free.
    pub(super) fn link(&mut self, path: &Path, entry: Entry) -> io::Result<()> {
        let slot = self.slot(path)?;
        if self.find(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(Change { emptied: None, filled: Some((slot, entry)) });
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let slot = self.slot(path)?;
        self.find(path).ok_or_else(missing)?;
        self.change(Change { emptied: Some(slot), filled: None });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let entry = self.find(from).ok_or_else(missing)?;
        match (&entry, self.find(to)) {
            (Entry::File(_), Some(Entry::Directory(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Entry::Directory(_), Some(Entry::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Entry::Directory(_), Some(Entry::Directory(other)))
                if self.seen.directories.get(&other).is_some_and(|entries| !entries.is_empty()) =>
            {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        let (emptied, filled) = (self.slot(from)?, self.slot(to)?);
        if emptied != filled {
            self.change(Change { emptied: Some(emptied), filled: Some((filled, entry)) });
        }
        Ok(())
    }

    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<()> {
        for (name, entry) in self.list(path)? {
            match entry {
                Entry::File(_) => self.unlink(&path.join(name))?,
                Entry::Directory(_) => self.remove_dir_all(&path.join(name))?,
            }
        }
        self.unlink(path)
    }

    /// Creates what is missing, durably: what it needs of the parents is synced too.
    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let mut above = std::path::PathBuf::new();
        for name in parts(path)? {
            let parent = self.directory(&above)?;
            above.push(&name);
            match self.find(&above) {
                Some(Entry::Directory(_)) => {}
                Some(Entry::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    let directory = self.next_directory;
                    self.next_directory += 1;
                    for tree in [&mut self.seen, &mut self.durable] {
                        tree.directories.insert(directory, BTreeMap::new());
                    }
                    let filled = Some(((parent, name), Entry::Directory(directory)));
                    self.change(Change { emptied: None, filled });
                    self.sync_directory(parent);
                }
            }
        }
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let directory = self.directory(path)?;
        self.sync_directory(directory);
        Ok(())
    }

    /// Makes durable what touches the directory, and the earlier changes that those build on.
    fn sync_directory(&mut self, directory: u64) {
        let mut needed = BTreeSet::new();
        let mut chosen = vec![false; self.pending.len()];
        for (index, change) in self.pending.iter().enumerate().rev() {
            let touches = change.slots().any(|slot| slot.0 == directory || needed.contains(slot));
            if touches {
                chosen[index] = true;
                needed.extend(change.slots().cloned());
            }
        }
        let pending = std::mem::take(&mut self.pending);
        for (change, chosen) in pending.into_iter().zip(chosen) {
            if chosen {
                self.durable.apply(&change);
            } else {
                self.pending.push(change);
            }
        }
    }

    /// The names and files a power cut leaves.
    pub(super) fn crash(&self, random: &SeededRandom) -> Names {
        let mut left = self.durable.clone();
        let mut tainted: BTreeSet<Slot> = BTreeSet::new();
        for change in &self.pending {
            if change.slots().any(|slot| tainted.contains(slot)) || toss(random) {
                tainted.extend(change.slots().cloned());
            } else {
                left.apply(change);
            }
        }
        let mut anew = Anew::new(|file| file.crash(random));
        let seen = anew.tree(&left);
        Names { durable: seen.clone(), seen, pending: Vec::new(), next_directory: self.next_directory }
    }

    /// The same names over copies of the files, with what is not durable still not durable.
    pub(super) fn kill(&self) -> Names {
        let mut anew = Anew::new(FileState::clone);
        let (seen, durable) = (anew.tree(&self.seen), anew.tree(&self.durable));
        let pending = self.pending.iter().map(|change| Change {
            emptied: change.emptied.clone(),
            filled: change.filled.as_ref().map(|(slot, entry)| (slot.clone(), anew.entry(entry))),
        });
        Names { seen, durable, pending: pending.collect(), next_directory: self.next_directory }
    }

    pub(super) fn for_each_file(&self, visit: &mut dyn FnMut(&Arc<Mutex<FileState>>)) {
        let mut seen = BTreeSet::new();
        for entry in self.seen.directories.values().flat_map(BTreeMap::values) {
            if let Entry::File(file) = entry
                && seen.insert(Arc::as_ptr(file) as usize)
            {
                visit(file);
            }
        }
    }

    fn change(&mut self, change: Change) {
        self.seen.apply(&change);
        self.pending.push(change);
    }

    fn directory(&self, path: &Path) -> io::Result<u64> {
        match self.find(path) {
            Some(Entry::Directory(directory)) => Ok(directory),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(missing()),
        }
    }

    fn slot(&self, path: &Path) -> io::Result<Slot> {
        let mut names = parts(path)?;
        let name = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.directory(path.parent().unwrap_or(Path::new("")))?;
        Ok((parent, name))
    }
}

/// Copies trees onto files of their own. A file is made anew once, so that two names of it stay so.
struct Anew<Make> {
    make: Make,
    made: BTreeMap<usize, Arc<Mutex<FileState>>>,
}

impl<Make: FnMut(&FileState) -> FileState> Anew<Make> {
    fn new(make: Make) -> Anew<Make> {
        Anew { make, made: BTreeMap::new() }
    }

    /// Copies what can be reached, in an order that depends on the names alone, for the seed's sake.
    fn tree(&mut self, tree: &Tree) -> Tree {
        let mut copy = Tree::default();
        let mut waiting = vec![ROOT];
        while let Some(directory) = waiting.pop() {
            let mut entries = BTreeMap::new();
            for (name, entry) in tree.directories.get(&directory).into_iter().flatten() {
                if let Entry::Directory(below) = entry {
                    waiting.push(*below);
                }
                entries.insert(name.clone(), self.entry(entry));
            }
            copy.directories.insert(directory, entries);
        }
        copy
    }

    fn entry(&mut self, entry: &Entry) -> Entry {
        let Entry::File(file) = entry else { return entry.clone() };
        let made = match self.made.entry(Arc::as_ptr(file) as usize) {
            btree_map::Entry::Occupied(made) => Arc::clone(made.get()),
            btree_map::Entry::Vacant(place) => {
                Arc::clone(place.insert(Arc::new(Mutex::new((self.make)(&lock(file))))))
            }
        };
        Entry::File(made)
    }
}

impl Change {
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.emptied.iter().chain(self.filled.iter().map(|(slot, _)| slot))
    }
}

impl Tree {
    fn apply(&mut self, change: &Change) {
        if let Some((directory, name)) = &change.emptied
            && let Some(entries) = self.directories.get_mut(directory)
        {
            entries.remove(name);
        }
        if let Some(((directory, name), entry)) = &change.filled
            && let Some(entries) = self.directories.get_mut(directory)
        {
            entries.insert(name.clone(), entry.clone());
        }
    }
}

/// The error of a path that leads nowhere.
pub(super) fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// The names along a path; `/a`, `a` and `./a` are the same place.
fn parts(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}
