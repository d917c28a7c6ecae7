//! How chunks come into the cache after a start, before anybody asks: `caching = {…, 'prefetch': …}`.
//!
//! ```text
//!   all   index pages of all files ──► Data, the newest file first ──► until all is there or the cache is full
//!   hot   what the cache held when the node stopped and had been asked for again, index pages first
//! ```
//!
//! One read of the disk after the other, each paid for to the account that compactions pay to, and each
//! after a look whether reads of clients wait for the disk. Nothing goes for what comes. Tables take turns.
//!
//! What is hot is kept beside the manifest, written at a stop and every ten minutes. It is a hint: runs that
//! do not fit the files of today are ignored; without it a table that asks for `HOT` gets its index pages.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use manifest::state_file::{read_state, write_state_below};
use schema::Prefetch;
use serde::{Deserialize, Serialize};
use sstable::{ChunkId, ChunkNeed, Component, TableFile};
use table::{PATIENCE_OF_PREFETCH, Shared, TableError, TableStore, Tables};
use uuid::Uuid;

use super::Shard;
use crate::Layout;

/// How many uncompressed bytes are read at once, if that is more than a chunk.
const PIECE_BYTES: usize = 128 << 10;
/// What is hot is written down so often.
const NOTE_EVERY: Duration = Duration::from_secs(600);
/// Of how many runs of chunks at most.
const HOT_RUN_COUNT_MAX: usize = 1 << 16;

/// Neighbouring chunks.
#[derive(Clone, Debug)]
struct Run {
    file: Arc<TableFile>,
    component: Component,
    first: u32,
    count: u32,
}

/// What is to come of a table.
struct Queue {
    store: Rc<TableStore>,
    index: VecDeque<Run>,
    data: VecDeque<Run>,
}

/// Which chunks were hot: of each file, of each component by its suffix, the first and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct HotRecord {
    files: BTreeMap<Uuid, BTreeMap<String, Vec<(u32, u32)>>>,
}

/// Brings into memory what tables ask for.
pub(super) struct Prefetcher {
    shared: Rc<Shared>,
    tables: Rc<Tables>,
    layout: Layout,
}

impl Shard {
    /// Begins to bring into memory what tables ask for, in the background. To be called once, when requests
    /// are answered.
    pub fn start_prefetch(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        runtime::spawn_local("prefetch", async move {
            if let Some(shard) = this.upgrade() {
                Prefetcher::of(&shard).run().await;
            }
            loop {
                tokio::time::sleep(NOTE_EVERY).await;
                let Some(shard) = this.upgrade() else { return };
                Prefetcher::of(&shard).note_hot().await;
            }
        });
    }
}

impl Prefetcher {
    /// For the tables of that shard.
    pub(super) fn of(shard: &Shard) -> Self {
        Prefetcher {
            shared: Rc::clone(&shard.shared),
            tables: Rc::clone(&shard.tables),
            layout: shard.layout.clone(),
        }
    }

    async fn run(&self) {
        let stores = self.tables_that(|wanted| !wanted.is_none());
        if stores.is_empty() {
            return;
        }
        let hot = self.read_hot().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what was hot at the last stop is not known");
            None
        });
        let mut queues: Vec<Queue> = stores.iter().map(|store| plan(store, hot.as_ref())).collect();
        self.drain_queues(&mut queues, |queue| &mut queue.index).await;
        self.drain_queues(&mut queues, |queue| &mut queue.data).await;
        queues.iter().for_each(|queue| queue.store.prefetch().end());
    }

    fn tables_that(&self, want: impl Fn(Prefetch) -> bool) -> Vec<Rc<TableStore>> {
        self.tables.all().into_iter().filter(|store| want(prefetch_of(store))).collect()
    }

    /// Reads what one of the queues of each table holds, a piece of each in turn.
    async fn drain_queues(&self, queues: &mut [Queue], of: fn(&mut Queue) -> &mut VecDeque<Run>) {
        loop {
            let mut is_over = true;
            for queue in &mut *queues {
                let store = Rc::clone(&queue.store);
                let Some(run) = of(queue).front_mut() else { continue };
                is_over = false;
                let went_well = self.take_piece(&store, run).await;
                if !went_well || run.count == 0 {
                    of(queue).pop_front();
                }
                if self.shared.is_stopping() {
                    return;
                }
            }
            if is_over {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reads the beginning of a run; `false` when nothing more is to come of it.
    async fn take_piece(&self, store: &TableStore, run: &mut Run) -> bool {
        let chunk_bytes = run.file.chunk_bytes(run.component).max(1);
        let most = (PIECE_BYTES / chunk_bytes).max(1);
        let count = most.min(run.count as usize).min(self.shared.cache.free_chunks(chunk_bytes));
        if count == 0 {
            store.prefetch().note_full();
            return false;
        }
        match self.read_piece(store, run, count).await {
            Ok(is_there) => is_there,
            Err(TableError::ShuttingDown) => false,
            Err(error) => {
                // Whoever needs it will learn of it.
                tracing::warn!(%error, table = store.table().name(), "a table file is not brought into memory");
                false
            }
        }
    }

    /// Reads so many chunks of a run; `false` when the file is gone.
    async fn read_piece(&self, store: &TableStore, run: &mut Run, count: usize) -> Result<bool, TableError> {
        assert!((1..=run.count as usize).contains(&count), "a piece is of its run");
        let id = ChunkId { file: run.file.number(), component: run.component, index: run.first };
        let need = ChunkNeed::alone(Arc::clone(&run.file), id);
        let (bytes, is_over) = (need.extent(count)?.bytes as u64, || self.shared.is_stopping());
        self.shared.compactor.control().pay(bytes, &*self.shared.runtime.clock, is_over).await;
        self.shared.fetcher.let_reads_go_first(PATIENCE_OF_PREFETCH).await;
        if !has(store, &run.file) {
            return Ok(false);
        }
        let chunks = self.shared.fetcher.read(&need, count).await?;
        if !has(store, &run.file) {
            return Ok(false);
        }
        let (read, is_hot) = (chunks.len() as u32, prefetch_of(store) == Prefetch::Hot);
        for (id, chunk) in chunks {
            store.prefetch().note_chunk(chunk.len());
            self.shared.cache.insert_if_free(id, chunk);
            if is_hot {
                self.shared.cache.note_asked(id);
            }
        }
        run.first = run.first.saturating_add(read);
        run.count = run.count.saturating_sub(read.max(1));
        Ok(true)
    }

    async fn read_hot(&self) -> Result<Option<HotRecord>, TableError> {
        let (disk, path) = (Arc::clone(&self.shared.runtime.disk), self.layout.hot(self.shared.index));
        Ok(self.shared.runtime.io.run(move || read_state(&*disk, &path)).await?)
    }

    /// Writes down what is hot, if a table wants to know after the next start.
    pub(super) async fn note_hot(&self) {
        let stores = self.tables_that(|wanted| wanted == Prefetch::Hot);
        if stores.is_empty() || self.shared.runtime.failsafe.check().is_err() {
            return;
        }
        let files: Vec<_> = stores.iter().flat_map(|store| store.files().all().to_vec()).collect();
        let record = HotRecord::of(&files, self.shared.cache.asked_again());
        let (disk, path) = (Arc::clone(&self.shared.runtime.disk), self.layout.hot(self.shared.index));
        let written = self.shared.runtime.io.run(move || write_state_below(&*disk, &path, &record)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "what is hot is not kept for the next start");
        }
    }
}

fn prefetch_of(store: &TableStore) -> Prefetch {
    store.with_table(|table| table.options().caching.prefetch)
}

fn has(store: &TableStore, file: &Arc<TableFile>) -> bool {
    !store.is_dropped() && store.files().has(file)
}

/// What is to come of a table; the newest files first.
fn plan(store: &Rc<TableStore>, hot: Option<&HotRecord>) -> Queue {
    let mut queue = Queue { store: Rc::clone(store), index: VecDeque::new(), data: VecDeque::new() };
    let (files, is_hot) = (store.files().all(), prefetch_of(store) == Prefetch::Hot);
    let knows = |hot: &&HotRecord| files.iter().any(|file| hot.files.contains_key(&file.descriptor().id));
    let hot = hot.filter(knows).filter(|_| is_hot);
    for file in files.iter().rev() {
        let whole = |component: Component| Run {
            file: Arc::clone(file),
            component,
            first: 0,
            count: file.chunk_count(component),
        };
        let index = file.index_components().iter().copied();
        match hot {
            Some(hot) => {
                queue.index.extend(index.flat_map(|component| hot.runs(file, component)));
                queue.data.extend(hot.runs(file, Component::Data));
            }
            None => {
                queue.index.extend(index.map(whole));
                queue.data.extend((!is_hot).then(|| whole(Component::Data)));
            }
        }
    }
    queue.index.retain(|run| run.count > 0);
    queue.data.retain(|run| run.count > 0);
    let planned = queue.index.iter().chain(&queue.data).map(|run| u64::from(run.count)).sum();
    store.prefetch().begin(planned);
    queue
}

impl HotRecord {
    /// Of chunks in the cache, those of these files.
    fn of(files: &[Arc<TableFile>], mut chunks: Vec<ChunkId>) -> Self {
        // Index pages before Data, should they be too many.
        chunks.sort_unstable_by_key(|id| (id.component == Component::Data, *id));
        let mut record = HotRecord::default();
        let mut run_count = 0;
        let ids: BTreeMap<u64, Uuid> =
            files.iter().map(|file| (file.number(), file.descriptor().id)).collect();
        for id in chunks {
            let Some(file) = ids.get(&id.file) else { continue };
            let components = record.files.entry(*file).or_default();
            let runs = components.entry(id.component.file_suffix().to_owned()).or_default();
            match runs.last_mut() {
                Some((first, count)) if first.checked_add(*count) == Some(id.index) => *count += 1,
                _ if run_count < HOT_RUN_COUNT_MAX => {
                    run_count += 1;
                    runs.push((id.index, 1));
                }
                _ => break,
            }
        }
        record
    }

    /// Runs of a file, as far as there are such chunks.
    fn runs<'a>(&'a self, file: &'a Arc<TableFile>, component: Component) -> impl Iterator<Item = Run> + 'a {
        let components = self.files.get(&file.descriptor().id);
        let runs = components.and_then(|components| components.get(component.file_suffix()));
        let chunk_count = file.chunk_count(component);
        runs.into_iter().flatten().map(move |(first, count)| Run {
            file: Arc::clone(file),
            component,
            first: *first,
            count: (*count).min(chunk_count.saturating_sub(*first)),
        })
    }
}
