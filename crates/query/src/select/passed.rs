//! Tombstones that a SELECT came upon, and what is said of them.
//!
//! Counted as Cassandra does: for each partition that is asked for by its key, for a range as a whole, over what the
//! client's page takes to read; an aggregate's reads are each for themselves. The words are those of Cassandra 5's
//! `ReadCommand` and `TombstoneOverwhelmingException`.

use std::collections::{BTreeMap, HashMap};

use read::{PartitionRows, ReadPage, ReadTarget, TombstoneThresholds, TooManyTombstones};
use rows::PartitionKey;

use super::spelled::{Spelled, clustering_literals, key_literals};
use crate::response::TombstoneWarning;

/// Queries and keys are shown up to that many characters.
const CHARS_MAX: usize = 512;

/// What was counted for one partition or range.
#[derive(Default)]
struct Tally {
    live_count: u64,
    tombstone_count: u64,
    /// The query, once the client is to hear of it.
    query: Option<String>,
}

/// What was counted for one page of a client's.
pub(super) struct Tallies {
    pub(super) thresholds: TombstoneThresholds,
    /// By partition, of a range by the last one.
    all: BTreeMap<PartitionKey, Tally>,
    /// Live rows of reads that came upon no tombstone, if they are all about one thing.
    live_count: u64,
}

impl Tallies {
    pub(super) fn new(thresholds: TombstoneThresholds) -> Self {
        Tallies { thresholds, all: BTreeMap::new(), live_count: 0 }
    }

    /// Counts a page of storage's; the first partition of which there were too many.
    pub(super) fn add(&mut self, page: &ReadPage, spelled: &Spelled<'_>) -> Option<TooManyTombstones> {
        let is_range = matches!(spelled.target, ReadTarget::Range(_));
        let is_one = is_range || matches!(spelled.target, ReadTarget::Keys(keys) if keys.len() == 1);
        if page.tombstones.is_empty() {
            // With nothing before and nothing to come, as most reads are, nobody will ask.
            if is_one && (page.next.is_some() || !self.all.is_empty()) {
                let live_count = live_rows(&page.partitions);
                match self.all.values_mut().next_back() {
                    Some(tally) => tally.live_count += live_count,
                    None => self.live_count += live_count,
                }
            }
            return None;
        }
        let of_keys = if is_range { &[][..] } else { &page.partitions[..] };
        let of_keys: HashMap<_, _> = of_keys.iter().map(|one| (&one.key, live_rows([one]))).collect();
        for met in &page.tombstones {
            let (key, live_count) = match is_range {
                true => {
                    let last = page.partitions.last().map(|partition| &partition.key);
                    (last.max(Some(&met.key)).unwrap_or(&met.key), live_rows(&page.partitions))
                }
                false => (&met.key, of_keys.get(&met.key).copied().unwrap_or(0)),
            };
            let mut tally = self.take(key, is_one);
            tally.live_count += live_count;
            tally.tombstone_count += met.count;
            let tombstone_count = tally.tombstone_count;
            if tombstone_count > self.thresholds.warn && tally.query.is_none() {
                tally.query = Some(spelled.spell(key));
            }
            self.all.insert(key.clone(), tally);
            if tombstone_count > self.thresholds.failure {
                let key = key.clone();
                return Some(TooManyTombstones { tombstone_count, key, clustering: None, live_count: 0 });
            }
        }
        None
    }

    /// What was counted of a partition before; of the only thing that is read, whatever its last key was.
    fn take(&mut self, key: &PartitionKey, is_one: bool) -> Tally {
        match is_one {
            true => self.all.pop_first().map(|(_, tally)| tally).unwrap_or_else(|| Tally {
                live_count: std::mem::take(&mut self.live_count),
                ..Tally::default()
            }),
            false => self.all.remove(key).unwrap_or_default(),
        }
    }

    /// Counts a read that storage ended.
    pub(super) fn add_failed(&mut self, found: &TooManyTombstones, spelled: &Spelled<'_>) {
        let page = ReadPage {
            tombstones: vec![read::PartitionTombstones {
                key: found.key.clone(),
                count: found.tombstone_count,
            }],
            ..ReadPage::default()
        };
        let _ = self.add(&page, spelled);
        if let Some(tally) = self.all.get_mut(&found.key) {
            tally.live_count += found.live_count;
        }
    }

    /// What the client is to hear, in the order of the partitions; counting begins anew.
    pub(super) fn take_warnings(&mut self, table: &schema::Table) -> Vec<TombstoneWarning> {
        self.live_count = 0;
        let all = std::mem::take(&mut self.all);
        all.into_iter().filter_map(|(key, tally)| tally.warning(key, table)).collect()
    }
}

impl Tally {
    fn warning(self, key: PartitionKey, table: &schema::Table) -> Option<TombstoneWarning> {
        let Tally { live_count, tombstone_count, query } = self;
        let (query, token) = (query?, key.token.0);
        let shown = shortened(&query);
        let text = format!(
            "Read {live_count} live rows and {tombstone_count} tombstone cells for query {shown}; token {token} (see tombstone_warn_threshold)"
        );
        let table_name = format!("{}.{}", table.keyspace(), table.name());
        let key = shortened(&key_literals(table, &key).join(", ")).to_owned();
        Some(TombstoneWarning { table: table_name, key, live_count, tombstone_count, text })
    }
}

/// The beginning of what may be as long as a client's frame.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

/// What the log says of a read that was ended.
pub(super) fn too_many(found: &TooManyTombstones, spelled: &Spelled<'_>) -> String {
    let table = &spelled.plan.table;
    let (query, token) = (spelled.spell(&found.key), found.key.token.0);
    let key = key_literals(table, &found.key).join(", ");
    let place = match &found.clustering {
        Some(clustering) if !clustering.is_empty() => {
            format!("({key}), {}", clustering_literals(table, clustering).join(", "))
        }
        _ => key,
    };
    format!(
        "Scanned over {} tombstones during query '{}' (last scanned row token was {token} and partion key was ({})); query aborted",
        found.tombstone_count,
        shortened(&query),
        shortened(&place)
    )
}

/// Rows that live, static ones too.
fn live_rows<'a>(partitions: impl IntoIterator<Item = &'a PartitionRows>) -> u64 {
    let rows =
        |partition: &PartitionRows| partition.rows.len() as u64 + u64::from(partition.static_row.is_some());
    partitions.into_iter().map(rows).sum()
}
