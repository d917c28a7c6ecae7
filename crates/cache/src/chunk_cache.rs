//! The chunk cache of a shard: decompressed, verified chunks of table files, within a budget.
//!
//! Two S3-FIFO queues (Yang et al., SOSP 2023), one for Data and one for index pages:
//!
//! ```text
//!   new ──► small (a tenth) ──┬─ asked for again ──► main ──┬─ asked for since: once more round
//!              ▲              │                       ▲     └─ not: gone
//!              │              └─ not: gone, its name stays among the ghosts
//!   new, and its name is a ghost ─────────────────────┘
//! ```
//!
//! A scan passes through the small queue and leaves the main one alone. An index page leads to
//! hundreds of rows, a chunk of Data to a few: so Data goes first, until index pages fill three
//! quarters of the budget. Now and then the oldest index page is looked at all the same, so that the
//! index of a table that nobody reads any more does not stay for ever. Why this and not another:
//! `docs/decisions/0006-cold-reads-and-the-chunk-cache.md`.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use sstable::{Chunk, ChunkId, Component};

/// Of an entry beside its bytes: itself in the map (which is up to twice as large as what it holds), its
/// name in a queue, its share of the ghosts, and the header that clones of a chunk share.
const ENTRY_BYTES: usize =
    2 * (size_of::<(ChunkId, Slot)>() + 1) + 2 * size_of::<ChunkId>() + 2 * GHOST_BYTES + 32;
/// Of a name among the ghosts: in the queue, and in the set.
const GHOST_BYTES: usize = 2 * size_of::<u64>() + 1;

/// Requests that are counted of an entry; more say nothing new.
const FREQUENCY_MAX: u8 = 3;
/// The small queue's share of a class, in parts.
const SMALL_PART: usize = 10;
/// Index pages may take so many fourths of the budget before they are treated like Data.
const INDEX_FOURTHS: usize = 3;
/// Of so many chunks that go, one round is the index pages' turn.
const INDEX_TURN: u32 = 64;

const _: () = assert!(SMALL_PART > 1, "the main queue has the most of a class");
const _: () = assert!(INDEX_FOURTHS < 4, "index pages leave something to Data");
const _: () = assert!(FREQUENCY_MAX < u8::MAX, "one more can be counted before it is cut");

/// The cache. A chunk is in it once, under the id of its place in its file.
pub struct ChunkCache {
    state: RefCell<State>,
}

struct State {
    capacity_bytes: usize,
    /// Of the capacity, what is borrowed and may be called back at any time.
    borrowed_bytes: usize,
    used_bytes: usize,
    reserved_bytes: usize,
    slots: Slots,
    data: Class,
    index: Class,
    evictions: u32,
    hit_count: Cell<u64>,
    miss_count: u64,
}

/// A chunk is found, counted and handed out in one place: each one more would be one more wait for memory.
type Slots = HashMap<ChunkId, Slot, BuildHasherDefault<IdHasher>>;

struct Slot {
    chunk: Chunk,
    frequency: Cell<u8>,
    is_in_main: bool,
}

/// Chunks that compete with each other, the oldest first.
#[derive(Default)]
struct Class {
    small: VecDeque<ChunkId>,
    main: VecDeque<ChunkId>,
    small_bytes: usize,
    main_bytes: usize,
    ghosts: Ghosts,
}

/// Names of chunks that went without a second request, the oldest first.
#[derive(Default)]
struct Ghosts {
    order: VecDeque<u64>,
    names: HashSet<u64, BuildHasherDefault<IdHasher>>,
}

/// What the cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Budget: what is left of the cache's memory beside what is pinned.
    pub capacity_bytes: u64,
    /// Used of it.
    pub used_bytes: u64,
    /// Of that, index pages.
    pub index_bytes: u64,
    /// Filters, chunk offsets, upper index levels: always in memory, paid out of the cache's memory.
    pub pinned_bytes: u64,
    /// Chunks held.
    pub entry_count: u64,
    /// Requests answered.
    pub hit_count: u64,
    /// Requests not answered.
    pub miss_count: u64,
    /// Reads of the disk.
    pub disk_read_count: u64,
    /// Bytes of them.
    pub disk_read_bytes: u64,
}

impl CacheStats {
    /// Adds what another shard says.
    pub fn add(&mut self, other: &CacheStats) {
        self.capacity_bytes += other.capacity_bytes;
        self.used_bytes += other.used_bytes;
        self.index_bytes += other.index_bytes;
        self.pinned_bytes += other.pinned_bytes;
        self.entry_count += other.entry_count;
        self.hit_count += other.hit_count;
        self.miss_count += other.miss_count;
        self.disk_read_count += other.disk_read_count;
        self.disk_read_bytes += other.disk_read_bytes;
    }
}

/// A look at a cache, in which nothing comes or goes.
pub struct CacheView<'a>(Ref<'a, State>);

impl CacheView<'_> {
    /// The chunk, if it is here.
    #[inline]
    pub fn get(&self, id: ChunkId) -> Option<&Chunk> {
        let slot = self.0.slots.get(&id)?;
        self.0.hit_count.set(self.0.hit_count.get() + 1);
        slot.frequency.set((slot.frequency.get() + 1).min(FREQUENCY_MAX));
        Some(&slot.chunk)
    }
}

impl ChunkCache {
    /// An empty one with that budget.
    pub fn new(capacity_bytes: usize) -> Self {
        ChunkCache {
            state: RefCell::new(State {
                capacity_bytes,
                borrowed_bytes: 0,
                used_bytes: 0,
                reserved_bytes: 0,
                slots: HashMap::default(),
                data: Class::default(),
                index: Class::default(),
                evictions: 0,
                hit_count: Cell::new(0),
                miss_count: 0,
            }),
        }
    }

    /// The chunk, if it is here.
    #[inline]
    pub fn get(&self, id: ChunkId) -> Option<Chunk> {
        self.view().get(id).cloned()
    }

    /// Chunks as they lie here, for somebody who looks at them and lets nothing happen meanwhile.
    #[inline]
    pub fn view(&self) -> CacheView<'_> {
        CacheView(self.state.borrow())
    }

    /// Counts a chunk that was not here and has to be fetched.
    pub fn count_miss(&self) {
        self.state.borrow_mut().miss_count += 1;
    }

    /// Keeps a chunk, giving up others to stay within the budget.
    pub fn insert(&self, id: ChunkId, chunk: Chunk) {
        let state = &mut *self.state.borrow_mut();
        let cost = chunk.len() + ENTRY_BYTES;
        if cost > state.room_bytes() || state.slots.contains_key(&id) {
            return;
        }
        state.shrink_to(state.room_bytes() - cost);
        state.used_bytes += cost;
        let class = if is_index(id) { &mut state.index } else { &mut state.data };
        let is_in_main = class.ghosts.take(name_of(id));
        class.push(id, cost, is_in_main);
        state.slots.insert(id, Slot { chunk, frequency: Cell::new(0), is_in_main });
        assert!(state.used_bytes <= state.room_bytes(), "what the cache holds is within its budget");
        state.check_sums();
    }

    /// Forgets the chunks of files that are gone. They may be many: see [`ChunkCache::chunks_of`].
    pub fn forget(&self, files: &[u64]) {
        self.remove(&self.chunks_of(files));
        let files = sorted(files);
        let State { data, index, .. } = &mut *self.state.borrow_mut();
        for queue in [&mut data.small, &mut data.main, &mut index.small, &mut index.main] {
            queue.retain(|id| files.binary_search(&id.file).is_err());
        }
    }

    /// The chunks of some files, for [`ChunkCache::remove`] in pieces before [`ChunkCache::forget`].
    pub fn chunks_of(&self, files: &[u64]) -> Vec<ChunkId> {
        let files = sorted(files);
        let slots = &self.state.borrow().slots;
        slots.keys().filter(|id| files.binary_search(&id.file).is_ok()).copied().collect()
    }

    /// Gives up chunks of files that are gone. Their names stay in the queues.
    pub fn remove(&self, chunks: &[ChunkId]) {
        let state = &mut *self.state.borrow_mut();
        chunks.iter().for_each(|id| _ = state.remove(*id));
    }

    /// Changes the budget: the cache's own, and what it may use until that is called back.
    pub fn set_capacity(&self, own_bytes: usize, borrowed_bytes: usize) {
        let state = &mut *self.state.borrow_mut();
        state.capacity_bytes = own_bytes + borrowed_bytes;
        state.borrowed_bytes = borrowed_bytes;
        state.shrink_to(state.room_bytes());
    }

    /// Keeps back up to so many bytes that are free: for a file that is being written, of which as much is
    /// to come into the cache. Nothing goes for it, but what is [handed out](Reservation::hand_out).
    pub fn reserve(self: &Rc<Self>, bytes: usize) -> Reservation {
        let mut reservation =
            Reservation { cache: Rc::clone(self), bytes: 0, wanted_bytes: bytes, freed_bytes: 0 };
        reservation.grow(bytes);
        reservation
    }

    /// As [`ChunkCache::insert`], but nothing has to go for it.
    pub fn insert_if_free(&self, id: ChunkId, chunk: Chunk) {
        if self.free_chunks(chunk.len()) > 0 {
            self.insert(id, chunk);
        }
    }

    /// For how many chunks of that size there is room without giving up others.
    pub fn free_chunks(&self, chunk_bytes: usize) -> usize {
        let state = self.state.borrow();
        state.room_bytes().saturating_sub(state.used_bytes) / (chunk_bytes + ENTRY_BYTES)
    }

    /// Takes a chunk for one that was asked for again: it was, before the node was started.
    pub fn note_asked(&self, id: ChunkId) {
        if let Some(slot) = self.state.borrow_mut().slots.get_mut(&id) {
            slot.frequency.set(slot.frequency.get().max(1));
        }
    }

    /// Chunks that were asked for again since they came.
    pub fn asked_again(&self) -> Vec<ChunkId> {
        let state = self.state.borrow();
        let again = state.slots.iter().filter(|(_, slot)| slot.is_in_main || slot.frequency.get() > 0);
        again.map(|(id, _)| *id).collect()
    }

    /// What it did so far; what is pinned and read is for others to say.
    pub fn stats(&self) -> CacheStats {
        let state = self.state.borrow();
        CacheStats {
            capacity_bytes: state.capacity_bytes as u64,
            used_bytes: state.used_bytes as u64,
            index_bytes: (state.index.small_bytes + state.index.main_bytes) as u64,
            entry_count: state.slots.len() as u64,
            hit_count: state.hit_count.get(),
            miss_count: state.miss_count,
            ..CacheStats::default()
        }
    }
}

/// Memory of a cache that is kept back until this is dropped: what was free, and what was handed out.
pub struct Reservation {
    cache: Rc<ChunkCache>,
    bytes: usize,
    /// What would be of use.
    wanted_bytes: usize,
    /// What went of the cache since the last [`Reservation::take_over`].
    freed_bytes: usize,
}

impl Reservation {
    /// How much.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The chunk, if it is here, for the merge that writes the file that this is for. If nobody asked for it since
    /// it came, and room is wanted, it goes: what it holds will be in that file. What lies in borrowed memory
    /// has to go first and makes no room, so that only counts if it is less than what is wanted.
    pub fn hand_out(&mut self, id: ChunkId) -> Option<Chunk> {
        let state = &mut *self.cache.state.borrow_mut();
        let slot = state.slots.get(&id)?;
        let (chunk, is_unasked) = (slot.chunk.clone(), slot.frequency.get() == 0 && !slot.is_in_main);
        let lacking_bytes = self.wanted_bytes.saturating_sub(self.bytes + self.freed_bytes);
        if is_unasked && state.used_bytes.saturating_sub(state.own_bytes()) < lacking_bytes {
            self.freed_bytes += state.remove(id);
        }
        Some(chunk)
    }

    /// Keeps back what went, as far as it is free and wanted. Tells how much more it is by that.
    pub fn take_over(&mut self) -> usize {
        let freed_bytes = std::mem::take(&mut self.freed_bytes);
        self.grow(freed_bytes)
    }

    /// Keeps back up to so many more bytes, if they are free and wanted.
    fn grow(&mut self, bytes: usize) -> usize {
        let state = &mut *self.cache.state.borrow_mut();
        assert!(self.bytes <= self.wanted_bytes, "no more is kept back than is wanted");
        let free_bytes = state.own_bytes().saturating_sub(state.used_bytes);
        let bytes = bytes.min(free_bytes).min(self.wanted_bytes - self.bytes);
        state.reserved_bytes += bytes;
        self.bytes += bytes;
        bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.cache.state.borrow_mut().reserved_bytes -= self.bytes;
    }
}

impl State {
    /// What chunks may take.
    fn room_bytes(&self) -> usize {
        self.capacity_bytes.saturating_sub(self.reserved_bytes)
    }

    /// Of that, what nobody may call back.
    fn own_bytes(&self) -> usize {
        self.room_bytes().saturating_sub(self.borrowed_bytes)
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.used_bytes > bytes {
            assert!(!self.slots.is_empty(), "what is used is a chunk's");
            self.evict_one();
        }
    }

    /// Looks at one chunk of the class whose turn it is: it goes, or has one chance less.
    fn evict_one(&mut self) {
        self.evictions = self.evictions.wrapping_add(1);
        let index_bytes = self.index.small_bytes + self.index.main_bytes;
        let is_index = self.data.is_empty() || index_bytes > self.capacity_bytes / 4 * INDEX_FOURTHS;
        let looks_at_index = is_index || self.evictions.is_multiple_of(INDEX_TURN);
        let class = if looks_at_index { &mut self.index } else { &mut self.data };
        if let Some(id) = class.look_at_oldest(&mut self.slots) {
            self.remove(id);
        }
    }

    /// Gives up a chunk that is in no queue any more, or whose queue its caller puts right, or whose name may stay
    /// there. How many bytes?
    fn remove(&mut self, id: ChunkId) -> usize {
        let Some(slot) = self.slots.remove(&id) else { return 0 };
        let cost = slot.chunk.len() + ENTRY_BYTES;
        let class = if is_index(id) { &mut self.index } else { &mut self.data };
        let queue_bytes = if slot.is_in_main { &mut class.main_bytes } else { &mut class.small_bytes };
        assert!(cost <= *queue_bytes, "a chunk is counted in the queue that it is in");
        *queue_bytes -= cost;
        self.used_bytes -= cost;
        self.check_sums();
        cost
    }

    /// Whatever came or went.
    fn check_sums(&self) {
        let of_class = |class: &Class| class.small_bytes + class.main_bytes;
        let sum = of_class(&self.data) + of_class(&self.index);
        assert_eq!(self.used_bytes, sum, "what is used is what the four queues hold");
        assert_eq!(self.used_bytes == 0, self.slots.is_empty(), "nothing is used without a chunk");
    }
}

impl Class {
    fn is_empty(&self) -> bool {
        self.small.is_empty() && self.main.is_empty()
    }

    fn push(&mut self, id: ChunkId, cost: usize, is_in_main: bool) {
        if is_in_main {
            self.main.push_back(id);
            self.main_bytes += cost;
        } else {
            self.small.push_back(id);
            self.small_bytes += cost;
        }
    }

    /// Looks at the chunk whose turn it is: either it is taken out of its queue, to be given up, or it
    /// stays for another round. Asked again and again, this comes to an end: a chunk goes from small
    /// to main once, and its frequency falls with every round there.
    fn look_at_oldest(&mut self, slots: &mut Slots) -> Option<ChunkId> {
        let is_small_full = self.small_bytes >= (self.small_bytes + self.main_bytes) / SMALL_PART;
        let is_small = !self.small.is_empty() && (is_small_full || self.main.is_empty());
        let queue = if is_small { &mut self.small } else { &mut self.main };
        let id = queue.pop_front()?;
        // A name may be there of a chunk that went, and came again.
        let slot = slots.get_mut(&id).filter(|slot| slot.is_in_main != is_small)?;
        if slot.frequency.get() == 0 {
            if is_small {
                let held = self.small.len() + self.main.len();
                self.ghosts.add(name_of(id), held);
            }
            return Some(id);
        }
        if is_small {
            let cost = slot.chunk.len() + ENTRY_BYTES;
            assert!(cost <= self.small_bytes, "a chunk is counted in the queue that it leaves");
            self.small_bytes -= cost;
            self.main_bytes += cost;
            slot.is_in_main = true;
        }
        slot.frequency.set(slot.frequency.get() - 1);
        self.main.push_back(id);
        None
    }
}

impl Ghosts {
    /// Remembers a name, as many as chunks are held.
    fn add(&mut self, name: u64, held: usize) {
        if self.names.insert(name) {
            self.order.push_back(name);
        }
        while self.order.len() > held.max(1) {
            let Some(oldest) = self.order.pop_front() else { return };
            self.names.remove(&oldest);
        }
    }

    /// Was it there? Then it is no more.
    fn take(&mut self, name: u64) -> bool {
        self.names.remove(&name)
    }
}

/// For being searched, by each chunk.
fn sorted(files: &[u64]) -> Vec<u64> {
    let mut sorted = files.to_vec();
    sorted.sort_unstable();
    sorted
}

fn is_index(id: ChunkId) -> bool {
    id.component != Component::Data
}

fn name_of(id: ChunkId) -> u64 {
    let mut hasher = IdHasher::default();
    std::hash::Hash::hash(&id, &mut hasher);
    hasher.finish()
}

/// Ids are numbers of our own making, so a hash need not stand up to anybody.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
#[path = "chunk_cache_tests.rs"]
mod tests;
