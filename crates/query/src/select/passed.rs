//! Tombstones that a SELECT came upon, and what is said of them.
//!
//! Counted as Cassandra does: for each partition that is asked for by its key, for a range as a whole, over what the
//! client's page takes to read; an aggregate's reads are each for themselves. The words are those of Cassandra 5's
//! `ReadCommand` and `TombstoneOverwhelmingException`.

use rows::PartitionKey;
use storage::{PartitionRows, ReadPage, ReadTarget, TombstoneThresholds, TooManyTombstones};

use super::spelled::{Spelled, clustering_literals, key_literals};
use crate::response::TombstoneWarning;

/// The query is shown up to that many characters.
const QUERY_CHARS_MAX: usize = 512;

/// What was counted for one partition or range.
struct Tally {
    /// The partition, of a range the last one.
    key: PartitionKey,
    live_count: u64,
    tombstone_count: u64,
    /// The query, once the client is to hear of it.
    query: Option<String>,
}

/// What was counted for one page of a client's.
pub(super) struct Tallies {
    pub(super) thresholds: TombstoneThresholds,
    all: Vec<Tally>,
    /// Live rows of reads that came upon no tombstone, if they are all about one thing.
    live_count: u64,
}

impl Tallies {
    pub(super) fn new(thresholds: TombstoneThresholds) -> Self {
        Tallies { thresholds, all: Vec::new(), live_count: 0 }
    }

    /// Counts a page of storage's; the first partition of which there were too many.
    pub(super) fn add(&mut self, page: &ReadPage, spelled: &Spelled<'_>) -> Option<TooManyTombstones> {
        let is_one = match spelled.target {
            ReadTarget::Keys(keys) => keys.len() == 1,
            ReadTarget::Range(_) => true,
        };
        if page.tombstones.is_empty() {
            // There is nothing to add to on the last page, as most are.
            if is_one && page.next.is_some() {
                let live_count = live_rows(&page.partitions);
                match self.all.last_mut() {
                    Some(tally) => tally.live_count += live_count,
                    None => self.live_count += live_count,
                }
            }
            return None;
        }
        for met in &page.tombstones {
            let of_key = |partition: &&PartitionRows| partition.key == met.key;
            let (key, live_count) = match spelled.target {
                ReadTarget::Range(_) => {
                    let last = page.partitions.last().map(|partition| &partition.key);
                    (last.max(Some(&met.key)).unwrap_or(&met.key), live_rows(&page.partitions))
                }
                ReadTarget::Keys(_) => {
                    (&met.key, page.partitions.iter().find(of_key).map_or(0, |one| live_rows([one])))
                }
            };
            let found = self.all.iter_mut().rev().find(|tally| is_one || tally.key == *key);
            let tally = match found {
                Some(tally) => tally,
                None => {
                    let live_count = if is_one { std::mem::take(&mut self.live_count) } else { 0 };
                    let key = key.clone();
                    self.all.push(Tally { key, live_count, tombstone_count: 0, query: None });
                    self.all.last_mut()?
                }
            };
            tally.key = key.clone();
            tally.live_count += live_count;
            tally.tombstone_count += met.count;
            if tally.tombstone_count > self.thresholds.warn && tally.query.is_none() {
                tally.query = Some(spelled.spell(key));
            }
            if tally.tombstone_count > self.thresholds.failure {
                let (tombstone_count, key) = (tally.tombstone_count, tally.key.clone());
                return Some(TooManyTombstones { tombstone_count, key, clustering: None, live_count: 0 });
            }
        }
        None
    }

    /// Counts a read that storage ended.
    pub(super) fn add_failed(&mut self, found: &TooManyTombstones, spelled: &Spelled<'_>) {
        let page = ReadPage {
            tombstones: vec![storage::PartitionTombstones {
                key: found.key.clone(),
                count: found.tombstone_count,
            }],
            ..ReadPage::default()
        };
        let _ = self.add(&page, spelled);
        let tally = self.all.iter_mut().rev().find(|tally| tally.key == found.key);
        tally.into_iter().for_each(|tally| tally.live_count += found.live_count);
    }

    /// What the client is to hear; counting begins anew.
    pub(super) fn take_warnings(&mut self, table: &schema::Table) -> Vec<TombstoneWarning> {
        self.live_count = 0;
        let mut all = std::mem::take(&mut self.all);
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all.into_iter().filter_map(|tally| tally.warning(table)).collect()
    }
}

impl Tally {
    fn warning(self, table: &schema::Table) -> Option<TombstoneWarning> {
        let Tally { key, live_count, tombstone_count, query } = self;
        let (query, token) = (query?, key.token.0);
        let shown = query.char_indices().nth(QUERY_CHARS_MAX).map_or(&*query, |(end, _)| &query[..end]);
        let text = format!(
            "Read {live_count} live rows and {tombstone_count} tombstone cells for query {shown}; token {token} (see tombstone_warn_threshold)"
        );
        let table_name = format!("{}.{}", table.keyspace(), table.name());
        Some(TombstoneWarning { table: table_name, key: key_literals(table, &key).join(", "), text })
    }
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
        "Scanned over {} tombstones during query '{query}' (last scanned row token was {token} and partion key was ({place})); query aborted",
        found.tombstone_count
    )
}

/// Rows that live, static ones too.
fn live_rows<'a>(partitions: impl IntoIterator<Item = &'a PartitionRows>) -> u64 {
    let rows =
        |partition: &PartitionRows| partition.rows.len() as u64 + u64::from(partition.static_row.is_some());
    partitions.into_iter().map(rows).sum()
}
