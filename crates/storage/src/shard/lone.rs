//! What memtables and files have of several partitions of one row each.
//!
//! ```text
//!   keys ─► memtables ─► filters ─► pages of indexes ─► chunks of Data ─► key by key: its row in place, or versions
//!           └ at each step all keys, before any goes further ┘
//! ```
//!
//! To find a row among millions is to wait for memory some ten times, one after the other. The waits of
//! several keys have nothing to do with each other: so the keys go step by step together, and what the
//! next step reads of each is fetched while the others are looked at. Nothing here waits for the disk.

use std::ops::ControlFlow;
use std::sync::Arc;

use cache::{CacheView, ChunkCache};
use memtable::{KEYS_TOGETHER, Lone};
use rows::{CellMerge, DeletionTime, PartitionKey, Row, RowInPlace, Slices, ValuesInPlace};
use smallvec::SmallVec;
use sstable::{
    Chunk, ChunkId, ChunkSource, LonePartition, LoneSearch, RowReader, SearchKey, SstableError, TableFile,
};

use super::TableStore;
use super::lone_versions::{LoneStep, LoneVersions};
use crate::metrics::TableMetrics;

/// What there is of one partition.
pub(super) struct LoneFound<'f> {
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
    probes: &'f [Probe<'f>],
    /// For what is more than a row.
    chunks: CachedChunks<'f>,
}

/// A key that is looked for.
struct Wanted<'m> {
    in_memory: SmallVec<[&'m Row; 4]>,
    deletion: DeletionTime,
    /// Can it be told?
    is_told: bool,
}

/// A search in one file.
struct Probe<'a> {
    /// Which key.
    index: usize,
    file: &'a Arc<TableFile>,
    search: LoneSearch,
    /// The chunk that the search goes on in, and where.
    chunk: Option<(&'a Chunk, usize)>,
}

impl TableStore {
    /// Tells what there is of up to [`KEYS_TOGETHER`] keys, each by its index, until it is told to stop. A key is
    /// passed over when memtables and cached chunks do not hold the whole answer; that its row is an unusual one is
    /// only noticed by [`LoneFound::into_versions`].
    pub(super) fn each_lone(
        &self,
        cache: &ChunkCache,
        keys: &[&PartitionKey],
        mut tell: impl FnMut(usize, LoneFound<'_>) -> ControlFlow<()>,
    ) {
        let (frozen, active) = (self.frozen.borrow(), self.active.borrow());
        let active = active.look();
        let nothing = || Wanted { in_memory: SmallVec::new(), deletion: DeletionTime::LIVE, is_told: true };
        let mut wanted: SmallVec<[Wanted<'_>; KEYS_TOGETHER]> = keys.iter().map(|_| nothing()).collect();
        for memtable in frozen.iter().map(|frozen| &*frozen.memtable).chain([&*active]) {
            memtable.lone_rows(keys).zip(&mut wanted).for_each(|(lone, wanted)| wanted.add(lone));
        }
        let files = self.files.borrow();
        let view = cache.view();
        // What files look for is of no use without any.
        let keys_in_files = if files.is_empty() { &[][..] } else { keys };
        let search_keys: SmallVec<[SearchKey<'_>; KEYS_TOGETHER]> =
            keys_in_files.iter().copied().map(SearchKey::new).collect();
        let mut probes = self.probes(&files, &search_keys, &wanted);
        search_all(&mut probes, &search_keys, &mut wanted, &view, &self.metrics);
        let chunks = CachedChunks { cache, metrics: &self.metrics };
        let searched = Searched { keys: &search_keys, probes: &probes, chunks };
        for (index, wanted) in wanted.iter().enumerate().filter(|(_, wanted)| wanted.is_told) {
            let Wanted { in_memory, deletion, .. } = wanted;
            let found = LoneFound { in_memory, deletion: *deletion, index, searched: &searched };
            if tell(index, found).is_break() {
                return;
            }
        }
    }

    /// The searches that have to be made.
    fn probes<'a>(
        &self,
        files: &'a [Arc<TableFile>],
        searched: &[SearchKey<'_>],
        wanted: &[Wanted<'_>],
    ) -> Probes<'a> {
        let mut probes = Probes::new();
        let sought = || searched.iter().zip(wanted).enumerate().filter(|(_, (_, wanted))| wanted.is_told);
        for file in files {
            sought().for_each(|(_, (key, _))| file.fetch_filter(key.key, key.hash));
        }
        for file in files {
            for (index, (key, _)) in sought() {
                if self.may_show(file, key.key, key.hash) {
                    let search = file.begin_search(key);
                    probes.push(Probe { index, file, search, chunk: None });
                }
            }
        }
        probes
    }
}

impl Searched<'_> {
    /// Adds what a search found that did not end with nothing; `false` when that cannot be told at once.
    fn take(&self, probe: &Probe<'_>, versions: &mut LoneVersions) -> bool {
        let key = &self.keys[probe.index];
        let found = match probe.place() {
            Some((chunk, offset)) => probe.file.read_lone(key, chunk, offset),
            None => LonePartition::Unusual,
        };
        match found {
            LonePartition::Absent => true,
            LonePartition::Row(deletion, row) => {
                versions.deletion = versions.deletion.max(deletion);
                versions.rows.extend(row);
                true
            }
            LonePartition::Unusual => {
                let SearchKey { key, hash, .. } = *key;
                let mut cursor = probe.file.partition_cursor(&self.chunks, key, hash, &Slices::all(), false);
                matches!(versions.take_from(&mut cursor), Ok(LoneStep::Whole))
            }
        }
    }
}

impl<'f> LoneFound<'f> {
    /// Searches in files that did not end with nothing.
    fn probes(&self) -> impl Iterator<Item = &'f Probe<'f>> {
        let (probes, index) = (self.searched.probes, self.index);
        probes.iter().filter(move |probe| probe.index == index && probe.search != LoneSearch::Absent)
    }

    /// The row where it lies, if nothing was deleted of it and nothing expires; `values` has room for what lies in
    /// files or in several places.
    pub(super) fn in_place<'v>(&self, values: &'v mut ValuesInPlace<'f>) -> Option<RowInPlace<'v>>
    where
        'f: 'v,
    {
        let mut probes = self.probes();
        *values = match (self.in_memory, probes.next(), probes.next()) {
            _ if !self.deletion.is_live() => return None,
            ([row], None, _) => return row.is_plain().then_some(RowInPlace::Encoded(row)),
            ([], Some(probe), None) => {
                let (chunk, offset) = probe.place()?;
                probe.file.lone_values(self.key(), chunk, offset).or_else(|| self.merged_in_place())?
            }
            _ => self.merged_in_place()?,
        };
        Some(RowInPlace::Values(values))
    }

    fn merged_in_place(&self) -> Option<ValuesInPlace<'f>> {
        let mut merge = CellMerge::of_values();
        self.in_memory.iter().try_for_each(|row| merge.add_encoded(row))?;
        self.probes().try_for_each(|probe| {
            let (chunk, offset) = probe.place()?;
            probe.file.merge_lone(self.key(), chunk, offset, &mut merge)
        })?;
        merge.values()
    }

    fn key(&self) -> &'f SearchKey<'f> {
        &self.searched.keys[self.index]
    }

    /// All versions, in memory that they hold; `None` when they can not be told at once.
    pub(super) fn into_versions(self) -> Option<LoneVersions> {
        let mut versions = LoneVersions { deletion: self.deletion, ..LoneVersions::none() };
        if !self.probes().all(|probe| self.searched.take(probe, &mut versions)) {
            return None;
        }
        versions.rows.extend(self.in_memory.iter().copied().cloned());
        Some(versions)
    }
}

type Probes<'a> = SmallVec<[Probe<'a>; 2 * KEYS_TOGETHER]>;

impl<'m> Wanted<'m> {
    /// Adds what a memtable has.
    fn add(&mut self, lone: Lone<'m>) {
        match lone {
            Lone::Absent => {}
            Lone::Row(lone) => {
                self.deletion = self.deletion.max(lone.deletion);
                self.in_memory.extend(lone.row);
            }
            Lone::Many => self.is_told = false,
        }
    }
}

impl<'a> Probe<'a> {
    /// Where in Data it has ended, if it has.
    fn place(&self) -> Option<(&'a Chunk, usize)> {
        self.chunk.filter(|_| matches!(self.search, LoneSearch::Data { .. }))
    }

    /// Finds the next chunk; `false` when it is not there.
    fn ask(&mut self, chunks: &'a CacheView<'_>, metrics: &TableMetrics) -> bool {
        let Some((id, offset)) = self.file.wanted_chunk(self.search) else { return true };
        let Some(chunk) = chunks.get(id) else { return false };
        TableMetrics::add(&metrics.cache_hit_count, 1);
        self.chunk = Some((chunk, offset));
        true
    }

    /// Has what will be read of the chunk fetched.
    fn fetch(&self) {
        if let Some((chunk, offset)) = self.chunk {
            self.file.fetch_wanted(self.search, chunk, offset);
        }
    }

    /// Goes on in the page of the index that was asked for; `false` when it was none.
    fn go_on(&mut self, key: &SearchKey<'_>) -> bool {
        if !matches!(self.search, LoneSearch::Page { .. }) {
            return false;
        }
        let Some((page, _)) = self.chunk.take() else { return false };
        self.search = self.file.go_on(self.search, key, page);
        true
    }
}

/// Takes all searches to where their partitions are. What lacks a chunk ends, and is not told.
fn search_all<'a>(
    probes: &mut Probes<'a>,
    searched: &[SearchKey<'_>],
    wanted: &mut [Wanted<'_>],
    chunks: &'a CacheView<'_>,
    metrics: &TableMetrics,
) {
    let mut is_under_way = true;
    while is_under_way {
        for probe in probes.iter_mut().filter(|probe| probe.chunk.is_none()) {
            if !probe.ask(chunks, metrics) {
                probe.search = LoneSearch::Absent;
                wanted[probe.index].is_told = false;
            }
        }
        // Not in the same loop: so the processor looks for several chunks before it needs the first.
        probes.iter().for_each(Probe::fetch);
        is_under_way = false;
        for probe in probes.iter_mut() {
            is_under_way |= probe.go_on(&searched[probe.index]);
        }
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
