//! What an open file holds in memory to find its partitions: filter, root, upper levels or samples.

use components::{Component, ComponentSet, PAGE_BYTES, Pinned};
use rows::PartitionKey;
use trie::follow_in_page;

use crate::big::Summary;
use crate::bloom::KeyHash;
use crate::file_chunks::FileChunks;
use crate::filter::Filter;
use crate::partition_index::{PartitionPlace, place_at_end, read_footer};
use crate::statistics::Statistics;
use crate::{Chunk, PartitionSearch, SstableError};

/// What is held in memory to find partitions.
#[derive(Debug)]
pub(crate) struct Finder {
    filter: Filter,
    index: Index,
}

/// The part of the index that is always in memory.
#[derive(Debug)]
enum Index {
    /// As in `da`: where the trie's root is, and its upper levels.
    Trie { root: u64, pinned: Pinned },
    /// As in `nb` and `oa`.
    Big(Summary),
}

/// What the index says of all partitions.
pub(crate) struct Contents {
    /// The first and the last.
    pub(crate) keys: (PartitionKey, PartitionKey),
    pub(crate) partition_count: u64,
}

impl Finder {
    pub(crate) fn open(
        components: &ComponentSet,
        chunks: &FileChunks,
        statistics: &Statistics,
    ) -> Result<(Self, Contents), SstableError> {
        let (component, file) = chunks.partitions();
        let (index, contents) = if component == Component::Index {
            let summary = components.read(Component::Summary)?;
            let summary = summary.and_then(|bytes| Summary::from_bytes(&bytes, file.file_bytes()));
            let summary = summary.map_or_else(|| Summary::build(file), Ok)?;
            let keys = (summary.first_key.clone(), summary.last_key.clone());
            let partition_count = statistics.stats.partition_bytes.count();
            (Index::Big(summary), Contents { keys, partition_count })
        } else {
            let (footer, keys) = read_footer(file)?;
            let pinned = file.upper_levels(footer.keys_offset)?;
            (Index::Trie { root: footer.root, pinned }, Contents { keys, partition_count: footer.key_count })
        };
        Ok((Finder { filter: Filter::open(components)?, index }, contents))
    }

    #[inline]
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Root of the trie of partitions; a file of the format `big` has none.
    pub(crate) fn root(&self) -> Option<u64> {
        match &self.index {
            Index::Trie { root, .. } => Some(*root),
            Index::Big(_) => None,
        }
    }

    /// What is held of the index of a file of the format `big`.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        match &self.index {
            Index::Trie { .. } => None,
            Index::Big(summary) => Some(summary),
        }
    }

    /// A chunk that is always in memory.
    pub(crate) fn pinned_page(&self, component: Component, index: u32) -> Option<&Chunk> {
        match &self.index {
            Index::Trie { pinned, .. } if component == Component::Partitions => pinned.page(index),
            _ => None,
        }
    }

    /// How many chunks of a component are not always in memory, of so many from the first on.
    pub(crate) fn unpinned_count(&self, component: Component, count: u32) -> u32 {
        match &self.index {
            Index::Trie { pinned, .. } if component == Component::Partitions => count.min(pinned.first()),
            _ => count,
        }
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let index = match &self.index {
            Index::Trie { pinned, .. } => pinned.memory_bytes(),
            Index::Big(summary) => summary.memory_bytes(),
        };
        index + self.filter.memory_bytes()
    }

    /// Looks for a partition in what is always in memory, by the path of its key in tries and its hash.
    pub(crate) fn begin(&self, path: &[u8], hash: KeyHash) -> PartitionSearch {
        match self.root() {
            Some(root) => self.follow(path, hash, None, root, 0),
            None => PartitionSearch::Index,
        }
    }

    /// Goes on in a page of the index, the one that the search wanted.
    pub(crate) fn go_on(
        &self,
        search: PartitionSearch,
        path: &[u8],
        hash: KeyHash,
        page: &[u8],
    ) -> PartitionSearch {
        match search {
            PartitionSearch::Page { position, depth } => self.follow(path, hash, Some(page), position, depth),
            other => other,
        }
    }

    fn follow(
        &self,
        path: &[u8],
        hash: KeyHash,
        mut handed: Option<&[u8]>,
        mut position: u64,
        depth: usize,
    ) -> PartitionSearch {
        let mut rest = path.get(depth..).unwrap_or_default();
        loop {
            let page_start = position - position % PAGE_BYTES as u64;
            let index = u32::try_from(page_start / PAGE_BYTES as u64);
            let pinned = || self.pinned_page(Component::Partitions, index.ok()?).map(Chunk::as_slice);
            let Some(page) = handed.take().or_else(pinned) else {
                return PartitionSearch::Page { position, depth: path.len() - rest.len() };
            };
            let end = match follow_in_page(page, page_start, &mut position, &mut rest) {
                Ok(Some(end)) => end,
                Ok(None) => continue,
                Err(what) => return PartitionSearch::Damaged { position, what },
            };
            let Ok(place) = place_at_end(&end, hash) else {
                let (position, what) = (end.payload.position, "payload of a partition");
                return PartitionSearch::Damaged { position, what };
            };
            self.filter.note_looked_up(place.is_some());
            return match place {
                None => PartitionSearch::Absent,
                Some(PartitionPlace::Data(position)) => PartitionSearch::Data { position },
                Some(PartitionPlace::Rows(position)) => PartitionSearch::Rows { position },
            };
        }
    }
}
