//! How chunks come from the disk.
//!
//! ```text
//!   cursor ── get ──► held by this read ─► read ahead ─► cache ─► not here: Step::Need
//!   read   ── fetch ─► somebody reads it already: wait for that
//!                      else: one read of the disk, checked, decompressed, cached
//! ```
//!
//! Whoever reads one chunk of Data after the other is read ahead for, twice as far each time, since the
//! kernel, whose page cache is passed by, does not do it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use cache::ChunkCache;
use sstable::{
    Chunk, ChunkId, ChunkNeed, ChunkSource, Component, FileNeed, ReadRow, RowReader, SstableError, TableFile,
};
use table::{Fetcher, Shared, TableError, TableMetrics};

/// How many uncompressed bytes are read ahead at most.
const READ_AHEAD_BYTES_MAX: usize = cache::READ_AHEAD_BYTES_MAX as usize;

/// The cache, and the chunks fetched for the step that is being tried. They stay until it is done,
/// however small the cache is: a row may lie across more chunks than the cache holds.
pub(super) struct HeldChunks {
    cache: Rc<ChunkCache>,
    metrics: Rc<TableMetrics>,
    chunks: RefCell<Vec<(ChunkId, Chunk)>>,
    /// A large row that another thread has read for that step.
    row: RefCell<Option<ReadRow>>,
    /// How each file's Data is being read.
    courses: RefCell<Vec<Course>>,
    /// Files whose Data had to be read from the disk, since somebody asked.
    cold_files: RefCell<Vec<u64>>,
}

/// How one file's Data is being read.
struct Course {
    file: u64,
    /// The chunk that was got last.
    last_index: u32,
    /// Chunks read ahead, which stay here until the next are: the cache may be too small for them.
    ahead: Vec<(ChunkId, Chunk)>,
    /// Reads of the disk, each of which went on where the one before had ended.
    run_length: u32,
}

impl HeldChunks {
    pub(super) fn new(cache: &Rc<ChunkCache>, metrics: &Rc<TableMetrics>) -> Self {
        HeldChunks {
            cache: Rc::clone(cache),
            metrics: Rc::clone(metrics),
            chunks: RefCell::new(Vec::new()),
            row: RefCell::new(None),
            courses: RefCell::new(Vec::new()),
            cold_files: RefCell::new(Vec::new()),
        }
    }

    /// Gets what a cursor lacks to where it finds it.
    ///
    /// # Errors
    /// The disk failed, or what it gave is damaged.
    pub(super) async fn supply(&self, need: FileNeed, shard: &Shared) -> Result<(), TableError> {
        match need {
            FileNeed::Chunk(need) => self.fetch(need, &shard.fetcher).await,
            FileNeed::Row(row) => {
                let read = shard.runtime.io.run(move || row.read()).await;
                *self.row.borrow_mut() = Some(read);
                Ok(())
            }
        }
    }

    async fn fetch(&self, need: ChunkNeed, fetcher: &Fetcher) -> Result<(), TableError> {
        self.cache.count_miss();
        Self::count(&self.metrics.cache_miss_count);
        self.note_cold(need.id);
        let _waiting = fetcher.begin_wait();
        let count = self.count_to_read(&need);
        if count == 1 {
            let chunks = fetcher.chunks(need, &self.cache).await?;
            self.chunks.borrow_mut().extend(chunks);
            return Ok(());
        }
        let ahead = fetcher.read(&need, count).await?;
        ahead.iter().for_each(|(id, chunk)| self.cache.insert(*id, chunk.clone()));
        self.put_ahead(ahead);
        Ok(())
    }

    /// Lets go of what was fetched for a step that is done.
    pub(super) fn let_go(&self) {
        self.chunks.borrow_mut().clear();
    }

    fn note_cold(&self, id: ChunkId) {
        let mut files = self.cold_files.borrow_mut();
        if id.component == Component::Data && !files.contains(&id.file) {
            files.push(id.file);
        }
    }

    /// Of how many files Data had to be read from the disk since the last time this was asked.
    pub(super) fn take_cold(&self) -> u64 {
        let mut files = self.cold_files.borrow_mut();
        let count = files.len() as u64;
        files.clear();
        count
    }

    /// How many chunks to read when that one is lacking: more than one when Data is read in order.
    fn count_to_read(&self, need: &ChunkNeed) -> usize {
        if need.id.component != Component::Data {
            return 1;
        }
        let mut courses = self.courses.borrow_mut();
        let course = courses.iter_mut().find(|course| course.file == need.id.file);
        let Some(course) = course.filter(|course| course.last_index.checked_add(1) == Some(need.id.index))
        else {
            return 1;
        };
        course.run_length += 1;
        // The first may be a row that lies across two chunks: nothing follows from it.
        let doubled = 1usize << (course.run_length - 1).min(16);
        doubled.min(READ_AHEAD_BYTES_MAX / need.file.chunk_bytes(Component::Data).max(1)).max(1)
    }

    fn put_ahead(&self, ahead: Vec<(ChunkId, Chunk)>) {
        let file = ahead.first().map(|(id, _)| id.file);
        let mut courses = self.courses.borrow_mut();
        if let Some(course) = courses.iter_mut().find(|course| Some(course.file) == file) {
            course.ahead = ahead;
        }
    }

    /// Notes that a chunk of Data was got; gives it, if it was read ahead.
    fn note_course(&self, id: ChunkId, is_found: bool) -> Option<Chunk> {
        let mut courses = self.courses.borrow_mut();
        let Some(course) = courses.iter_mut().find(|course| course.file == id.file) else {
            if is_found {
                let course = Course { file: id.file, last_index: id.index, ahead: Vec::new(), run_length: 0 };
                courses.push(course);
            }
            return None;
        };
        let ahead = course.ahead.iter().find(|(ahead, _)| *ahead == id).map(|(_, chunk)| chunk.clone());
        if is_found || ahead.is_some() {
            if id.index < course.last_index || id.index - course.last_index > 1 {
                course.run_length = 0;
            }
            course.last_index = id.index;
        }
        ahead
    }

    fn count(counter: &Cell<u64>) {
        TableMetrics::add(counter, 1);
    }
}

impl ChunkSource for HeldChunks {
    fn get(&self, _file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let is_data = id.component == Component::Data;
        let held = self.chunks.borrow();
        if let Some((_, chunk)) = held.iter().find(|(held, _)| *held == id) {
            if is_data {
                self.note_course(id, true);
            }
            return Ok(Some(chunk.clone()));
        }
        if is_data && let Some(chunk) = self.note_course(id, false) {
            Self::count(&self.metrics.cache_hit_count);
            return Ok(Some(chunk));
        }
        let found = self.cache.get(id);
        if found.is_some() {
            Self::count(&self.metrics.cache_hit_count);
            if is_data {
                self.note_course(id, true);
            }
        }
        Ok(found)
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        RowReader::Other(self.row.take().filter(|row| row.is_at(file, position)))
    }
}
