//! Looks for the only rows of partitions by their keys, in memtables and files.
//!
//! ```text
//!   keys ─► memtables ─► filters ─► pages of indexes ─► chunks of Data ─► key by key: its row in place, or versions
//!           └ at each step all keys, before any goes further ┘     │
//!                                                 a chunk is lacking
//!                                                                  ▼
//!                          left with the table, as it stands ─► a read that waits for the chunk goes on there
//! ```
//!
//! To find a row among millions is to wait for memory some ten times, one after the other. The waits of
//! several keys have nothing to do with each other: so the keys go step by step together, and what the
//! next step reads of each is fetched while the others are looked at. Nothing here waits for the disk: a read of
//! the shard that does so takes the same steps, each as soon as its chunk is there.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cache::{CacheView, ChunkCache};
use memtable::{KEYS_TOGETHER, Memtable, SingleRowLookup};
use rows::{CellMerge, DeletionTime, PartitionKey, Row, RowInPlace, RowVersions, ValuesInPlace};
use smallvec::SmallVec;
use sstable::{
    Chunk, ChunkId, ChunkNeed, ChunkSource, FileCursor, ForCursor, PartitionSearch, RowReader, SearchKey,
    SingleRowFound, SstableError, TableFile,
};

use super::TableStore;
use super::memtables::{Frozen, Memtables};
use super::row_versions::{VersionsStep, take_versions};
use crate::metrics::TableMetrics;

/// Lookups that are left with a table at most: those that were left last.
const LEFT_MAX: usize = 4 * KEYS_TOGETHER;

/// A search in one file: by reference to the file and its chunk, or with its own.
pub struct Probe<File, Held> {
    /// Which key.
    index: usize,
    file: File,
    search: PartitionSearch,
    /// The chunk that the search goes on in, or has ended in, and where.
    chunk: Option<(Held, usize)>,
}

type Probes<'a> = SmallVec<[Probe<&'a Arc<TableFile>, &'a Chunk>; 2 * KEYS_TOGETHER]>;

/// A key that is looked for.
struct Sought<'m> {
    in_memory: SmallVec<[&'m Row; 4]>,
    deletion: DeletionTime,
    standing: Standing,
}

/// How it stands with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing is in the way yet.
    Sought,
    /// A chunk is not in memory.
    LacksChunk,
    /// A memtable has more of it than a row.
    HasManyRows,
}

/// What there is of one partition.
pub struct Found<'f> {
    /// The row in memtables.
    in_memory: &'f [&'f Row],
    /// The latest deletion in memtables.
    deletion: DeletionTime,
    /// Which of the keys.
    index: usize,
    searched: &'f Searched<'f>,
}

/// How searches in files have ended.
struct Searched<'f> {
    keys: &'f [SearchKey<'f>],
    probes: &'f [Probe<&'f Arc<TableFile>, &'f Chunk>],
    /// For what is more than a row.
    chunks: CachedChunks<'f>,
}

impl TableStore {
    /// Tells what there is of up to [`KEYS_TOGETHER`] keys, each by its index, until it is told to stop. A key is
    /// passed over when memtables and cached chunks do not hold the whole answer; that a cursor has to read its row
    /// is only noticed by [`Found::into_versions`].
    pub fn look_up(
        &self,
        cache: &ChunkCache,
        keys: &[&PartitionKey],
        mut tell: impl FnMut(usize, Found<'_>) -> ControlFlow<()>,
    ) {
        let (frozen, active) = self.memtables.for_reads();
        let active = active.look();
        let mut sought = gather(&frozen, &active, keys);
        let files = self.files.for_reads();
        let view = cache.view();
        // What files look for is of no use without any.
        let keys_in_files = if files.is_empty() { &[][..] } else { keys };
        let search_keys: SmallVec<[SearchKey<'_>; KEYS_TOGETHER]> =
            keys_in_files.iter().copied().map(SearchKey::new).collect();
        let mut probes = self.begin_probes(&files, &search_keys, &sought);
        if step_all(&mut probes, &search_keys, &mut sought, &view, &self.metrics) {
            self.unfinished.leave_all(&self.files.all(), keys, &sought, &probes);
        }
        let chunks = CachedChunks { cache, metrics: &self.metrics };
        let searched = Searched { keys: &search_keys, probes: &probes, chunks };
        for (index, sought) in sought.iter().enumerate().filter(|(_, sought)| sought.is_sought()) {
            let Sought { in_memory, deletion, .. } = sought;
            let found = Found { in_memory, deletion: *deletion, index, searched: &searched };
            if tell(index, found).is_break() {
                return;
            }
        }
    }

    /// The searches that have to be made.
    fn begin_probes<'a>(
        &self,
        files: &'a [Arc<TableFile>],
        keys: &[SearchKey<'_>],
        sought: &[Sought<'_>],
    ) -> Probes<'a> {
        let mut probes = Probes::new();
        let sought = || keys.iter().zip(sought).enumerate().filter(|(_, (_, sought))| sought.is_sought());
        for file in files {
            sought().for_each(|(_, (key, _))| file.fetch_filter(key.key, key.hash));
        }
        for file in files {
            for (index, (key, _)) in sought() {
                if self.files.may_show(file, key.key, key.hash) {
                    probes.push(Probe::new(index, file, file.begin_search(key)));
                }
            }
        }
        probes
    }

    /// The searches for the row of one key, for a read that waits: where an earlier lookup left them, or at their
    /// beginning.
    pub fn probes_of(&self, key: &SearchKey<'_>) -> SmallVec<[Probe<Arc<TableFile>, Chunk>; 2]> {
        let probe = |file: &Arc<TableFile>, search| Probe::new(0, Arc::clone(file), search);
        let files = self.files.all();
        if let Some(left) = self.unfinished.take(&files, key.key) {
            return left.into_iter().map(|(index, search)| probe(&files[index], search)).collect();
        }
        let files = self.files.for_reads();
        let asked = files.iter().filter(|file| self.files.may_show(file, key.key, key.hash));
        asked.map(|file| probe(file, file.begin_search(key))).collect()
    }
}

/// What memtables have of keys.
#[inline]
fn gather<'m>(
    frozen: &'m [Frozen],
    active: &'m Memtable,
    keys: &[&PartitionKey],
) -> SmallVec<[Sought<'m>; KEYS_TOGETHER]> {
    let mut sought: SmallVec<[Sought<'m>; KEYS_TOGETHER]> = keys.iter().map(|_| Sought::new()).collect();
    for memtable in frozen.iter().map(|frozen| &*frozen.memtable).chain([active]) {
        memtable.single_rows(keys).zip(&mut sought).for_each(|(single, sought)| sought.add(single));
    }
    sought
}

/// Takes all searches to where their partitions are, as far as chunks are there. Is one lacking?
fn step_all<'a>(
    probes: &mut Probes<'a>,
    keys: &[SearchKey<'_>],
    sought: &mut [Sought<'_>],
    chunks: &'a CacheView<'_>,
    metrics: &TableMetrics,
) -> bool {
    let find = |_: &Arc<TableFile>, id| {
        let chunk = chunks.get(id)?;
        TableMetrics::add(&metrics.cache_hit_count, 1);
        Some(chunk)
    };
    let (mut is_under_way, mut is_lacking) = (true, false);
    while is_under_way {
        for probe in probes.iter_mut() {
            let sought = &mut sought[probe.index];
            if sought.is_sought() && !probe.take_chunk(find) {
                sought.standing = Standing::LacksChunk;
                is_lacking = true;
            }
        }
        // Not in the same loop: so the processor looks for several chunks before it needs the first.
        probes.iter().for_each(Probe::fetch);
        is_under_way = false;
        for probe in probes.iter_mut() {
            is_under_way |= probe.go_on(&keys[probe.index]);
        }
    }
    is_lacking
}

impl<File: Borrow<Arc<TableFile>>, Held: Borrow<Chunk>> Probe<File, Held> {
    fn new(index: usize, file: File, search: PartitionSearch) -> Self {
        Probe { index, file, search, chunk: None }
    }

    /// Finds the chunk that it goes on in, unless it has that or needs none; is it at hand?
    pub fn take_chunk(&mut self, find: impl FnOnce(&Arc<TableFile>, ChunkId) -> Option<Held>) -> bool {
        let file = self.file.borrow();
        if self.chunk.is_none()
            && let Some((id, offset)) = file.wanted_chunk(self.search)
        {
            self.chunk = find(file, id).map(|chunk| (chunk, offset));
            return self.chunk.is_some();
        }
        true
    }

    /// What to read from the disk for a chunk that is not at hand.
    pub fn need(&self) -> Option<ChunkNeed> {
        self.file.borrow().chunk_need(self.search)
    }

    /// Has the processor fetch what will be read of the chunk.
    fn fetch(&self) {
        if let Some((chunk, offset)) = &self.chunk {
            self.file.borrow().fetch_wanted(self.search, chunk.borrow(), *offset);
        }
    }

    /// Goes on in the page of the index that it has; `false` when it has none.
    pub fn go_on(&mut self, key: &SearchKey<'_>) -> bool {
        if !matches!(self.search, PartitionSearch::Page { .. }) {
            return false;
        }
        let Some((page, _)) = self.chunk.take() else { return false };
        self.search = self.file.borrow().go_on(self.search, key, page.borrow());
        true
    }

    /// What the file has of the partition, where it lies.
    fn partition(&self, key: &SearchKey<'_>) -> SingleRowFound<'_> {
        match &self.chunk {
            _ if self.search == PartitionSearch::Absent => SingleRowFound::Absent,
            Some((chunk, offset)) => self.file.borrow().single_row_at(key, chunk.borrow(), *offset),
            None => SingleRowFound::ForCursor(ForCursor::NotAtHand),
        }
    }

    /// Adds what the file has to the versions of the row; `false` when a cursor has to read it.
    pub fn add_to(&self, key: &SearchKey<'_>, versions: &mut RowVersions) -> bool {
        match self.partition(key) {
            SingleRowFound::Absent => true,
            SingleRowFound::Partition(partition) => {
                let Ok(row) = partition.row() else { return false };
                versions.add(partition.deletion(), row);
                true
            }
            SingleRowFound::ForCursor(_) => false,
        }
    }

    /// A cursor over the partition from where the search stands.
    pub fn cursor<S: ChunkSource>(&self, source: S, key: &SearchKey<'_>) -> FileCursor<S> {
        self.file.borrow().searched_partition_cursor(source, key, self.search)
    }
}

impl<'m> Sought<'m> {
    #[inline]
    fn new() -> Self {
        Sought { in_memory: SmallVec::new(), deletion: DeletionTime::LIVE, standing: Standing::Sought }
    }

    #[inline]
    fn is_sought(&self) -> bool {
        self.standing == Standing::Sought
    }

    /// Adds what a memtable has.
    #[inline]
    fn add(&mut self, single: SingleRowLookup<'m>) {
        match single {
            SingleRowLookup::Absent => {}
            SingleRowLookup::Row(single) => {
                self.deletion = self.deletion.max(single.deletion);
                self.in_memory.extend(single.row);
            }
            SingleRowLookup::Many => self.standing = Standing::HasManyRows,
        }
    }
}

impl<'f> Found<'f> {
    /// Searches in files that did not end with nothing.
    #[inline]
    fn probes(&self) -> impl Iterator<Item = &'f Probe<&'f Arc<TableFile>, &'f Chunk>> {
        let (probes, index) = (self.searched.probes, self.index);
        probes.iter().filter(move |probe| probe.index == index && probe.search != PartitionSearch::Absent)
    }

    /// The row where it lies, if nothing was deleted of it and nothing expires; `values` has room for what lies in
    /// files or in several places.
    #[inline]
    pub fn in_place<'v>(&self, values: &'v mut ValuesInPlace<'f>) -> Option<RowInPlace<'v>>
    where
        'f: 'v,
    {
        let mut probes = self.probes();
        *values = match (self.in_memory, probes.next(), probes.next()) {
            _ if !self.deletion.is_live() => return None,
            ([row], None, _) => return row.is_plain().then_some(RowInPlace::Encoded(row)),
            ([], Some(probe), None) => {
                let SingleRowFound::Partition(partition) = probe.partition(self.key()) else { return None };
                partition.values().or_else(|| self.merged_in_place())?
            }
            _ => self.merged_in_place()?,
        };
        Some(RowInPlace::Values(values))
    }

    fn merged_in_place(&self) -> Option<ValuesInPlace<'f>> {
        let mut merge = CellMerge::of_values();
        self.in_memory.iter().try_for_each(|row| merge.add_encoded(row))?;
        self.probes().try_for_each(|probe| match probe.partition(self.key()) {
            SingleRowFound::Absent => Some(()),
            SingleRowFound::Partition(partition) => partition.merge_into(&mut merge),
            SingleRowFound::ForCursor(_) => None,
        })?;
        merge.values()
    }

    #[inline]
    fn key(&self) -> &'f SearchKey<'f> {
        &self.searched.keys[self.index]
    }

    /// All versions, in memory that they hold; `None` when they can not be told at once.
    pub fn into_versions(self) -> Option<RowVersions> {
        let mut versions = RowVersions { deletion: self.deletion, ..RowVersions::none() };
        for probe in self.probes() {
            if !probe.add_to(self.key(), &mut versions) {
                let mut cursor = probe.cursor(&self.searched.chunks, self.key());
                let step = take_versions(&mut cursor, &mut versions);
                step.ok().filter(|step| matches!(step, VersionsStep::Whole))?;
            }
        }
        versions.rows.extend(self.in_memory.iter().copied().cloned());
        Some(versions)
    }
}

impl Memtables {
    /// What they have of the row of one key; `None` when one has more of it than a row.
    #[inline]
    pub fn row_versions(&self, key: &PartitionKey) -> Option<RowVersions> {
        let (frozen, active) = self.for_reads();
        let active = active.look();
        let sought = gather(&frozen, &active, &[key]).pop()?;
        let rows = || sought.in_memory.iter().copied().cloned().collect();
        sought.is_sought().then(|| RowVersions { deletion: sought.deletion, rows: rows() })
    }
}

/// Searches in a table's files that lack a chunk, each where it stands.
#[derive(Default)]
pub(crate) struct Unfinished(RefCell<VecDeque<Left>>);

/// How far the lookup of one key has come in files.
struct Left {
    /// In memory of its own: a client's key is a part of all the input that came with it.
    key: PartitionKey,
    /// The files of the moment. Those of another moment are to be searched anew.
    files: Weak<Vec<Arc<TableFile>>>,
    searches: Searches,
}

/// Of some of a table's files, by their index, how far the search has come.
type Searches = SmallVec<[(usize, PartitionSearch); 2]>;

impl Unfinished {
    /// Keeps those that lack a chunk.
    fn leave_all(
        &self,
        files: &Rc<Vec<Arc<TableFile>>>,
        keys: &[&PartitionKey],
        sought: &[Sought<'_>],
        probes: &Probes<'_>,
    ) {
        let place =
            |probe: &Probe<&Arc<TableFile>, _>| files.iter().position(|file| Arc::ptr_eq(file, probe.file));
        for (index, key) in keys.iter().enumerate() {
            if sought[index].standing == Standing::LacksChunk {
                let of_key = probes.iter().filter(|probe| probe.index == index);
                let searches = of_key.filter_map(|probe| Some((place(probe)?, probe.search))).collect();
                self.leave(files, key, searches);
            }
        }
    }

    /// Keeps those of one key, in place of what was kept of it before.
    fn leave(&self, files: &Rc<Vec<Arc<TableFile>>>, key: &PartitionKey, searches: Searches) {
        let mut left = self.0.borrow_mut();
        left.retain(|left| left.key != *key);
        if left.len() == LEFT_MAX {
            left.pop_front();
        }
        left.push_back(Left { key: key.copied(), files: Rc::downgrade(files), searches });
    }

    /// What was left of the lookup of a key in these files.
    fn take(&self, files: &Rc<Vec<Arc<TableFile>>>, key: &PartitionKey) -> Option<Searches> {
        let mut left = self.0.borrow_mut();
        let place = left.iter().position(|left| left.key == *key)?;
        let left = left.remove(place)?;
        (left.files.as_ptr() == Rc::as_ptr(files)).then_some(left.searches)
    }
}

/// The cache alone.
struct CachedChunks<'a> {
    cache: &'a ChunkCache,
    metrics: &'a TableMetrics,
}

impl ChunkSource for CachedChunks<'_> {
    fn get(&self, _file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let found = self.cache.get(id);
        if found.is_some() {
            TableMetrics::add(&self.metrics.cache_hit_count, 1);
        }
        Ok(found)
    }

    fn large_row(&self, _file: &TableFile, _position: u64) -> RowReader {
        // Somebody who can wait has it read.
        RowReader::Other(None)
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn key(number: usize) -> PartitionKey {
        PartitionKey::new(number.to_be_bytes().to_vec().into())
    }

    fn search(position: u64) -> Searches {
        smallvec![(0, PartitionSearch::Data { position })]
    }

    #[test]
    fn the_last_lookups_that_were_left_are_kept_each_for_one_read_of_the_same_files() {
        let (unfinished, files) = (Unfinished::default(), Rc::new(Vec::new()));
        for number in 0..=LEFT_MAX {
            unfinished.leave(&files, &key(number), search(number as u64));
        }
        assert_eq!(unfinished.0.borrow().len(), LEFT_MAX);
        assert_eq!(unfinished.take(&files, &key(0)), None, "the oldest has made room");
        unfinished.leave(&files, &key(7), search(1_000));
        assert_eq!(unfinished.take(&files, &key(7)), Some(search(1_000)), "in place of the one before");
        assert_eq!(unfinished.take(&files, &key(7)), None);
        assert_eq!(unfinished.take(&files, &key(8)), Some(search(8)));
        assert_eq!(unfinished.take(&Rc::new(Vec::new()), &key(9)), None, "the files are others");
        assert_eq!(unfinished.0.borrow().len() + 3, LEFT_MAX);
    }
}
