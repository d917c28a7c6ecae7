//! The filter of an open file: asked, and counted how it was right.

use std::sync::atomic::{AtomicU64, Ordering};

use components::{Component, ComponentSet};

use crate::SstableError;
use crate::bloom::{BloomFilter, KeyHash};

/// The filter of an open file, which says of most keys that are not there that they are not. A file may have none:
/// any key may be in it then.
#[derive(Debug)]
pub struct Filter {
    bloom: Option<BloomFilter>,
    uses: Uses,
}

/// What became of questions to the filter. Counted with plain loads and stores, for the sake of reads:
/// of a file that several shards share, a few may be missed.
#[derive(Debug, Default)]
struct Uses {
    negative_count: AtomicU64,
    positive_count: AtomicU64,
    false_positive_count: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// What a file's filter was asked, and how it was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// It said no.
    pub negative_count: u64,
    /// It said perhaps, and the partition was there.
    pub positive_count: u64,
    /// It said perhaps, and the partition was not there.
    pub false_positive_count: u64,
}

impl Filter {
    pub(crate) fn open(components: &ComponentSet) -> Result<Self, SstableError> {
        let bytes = components.read(Component::Filter)?.filter(|bytes| !bytes.is_empty());
        let bloom = bytes.map(|bytes| BloomFilter::from_bytes(&components.path(Component::Filter), &bytes));
        Ok(Filter { bloom: bloom.transpose()?, uses: Uses::default() })
    }

    /// Has the processor fetch what [`Filter::may_contain`] will look at.
    pub(crate) fn fetch(&self, hash: KeyHash) {
        if let Some(bloom) = &self.bloom {
            bloom.fetch(hash);
        }
    }

    /// May the key of that hash be in the file?
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        let Some(bloom) = &self.bloom else { return true };
        let may_contain = bloom.may_contain(hash);
        if !may_contain {
            count(&self.uses.negative_count);
        }
        may_contain
    }

    /// Notes whether a partition, of which it said that it may be there, was found.
    pub(crate) fn note_looked_up(&self, is_there: bool) {
        if self.bloom.is_some() {
            count(if is_there { &self.uses.positive_count } else { &self.uses.false_positive_count });
        }
    }

    /// What it was asked since the file was opened.
    pub fn counts(&self) -> FilterCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FilterCounts {
            negative_count: of(&self.uses.negative_count),
            positive_count: of(&self.uses.positive_count),
            false_positive_count: of(&self.uses.false_positive_count),
        }
    }

    /// Bytes of memory it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.bloom.as_ref().map_or(0, BloomFilter::memory_bytes)
    }

    /// Bytes of it on the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.bloom.as_ref().map_or(0, BloomFilter::disk_bytes)
    }
}
