//! A hash of rows and their tombstones, by which replicas compare what they have.
//!
//! It is the same exactly when the merged content is, and goes as far: however that is spread over memtables and files,
//! and whatever compaction has come to. Compaction drops deletions that are past their grace and makes tombstones of
//! cells that have expired; so does the hash, before it takes them in (as Cassandra's
//! `ReadCommand.withoutPurgeableTombstones`).
//!
//! ```text
//!   page       version │ partition, partition, … │ where it ends
//!   partition  key │ deletion │ static row │ row or edge, …
//!   row        place │ liveness │ deletion │ column, …               times, TTLs, paths and values
//!   edge       place │ left │ right
//! ```
//!
//! Each line of that is a chain: the hash so far is that of the hash before, what kind of thing comes, and its own
//! hash. So a large row is hashed by itself, on another thread. A place is told in byte-comparable form: of clusterings
//! that are equal in order and differ in bytes (a decimal with another scale), which bytes stay depends on what came
//! first.

use std::sync::Arc;

use rows::{CellRef, Clustering, ColumnData, DeletionTime, LiveRows, Marker, PartitionKey, Row, purge_row};
use schema::Table;
use twox_hash::XxHash3_128;
use types::byte_comparable::{self, ClusteringBoundKind};

use crate::extent::{Extent, Weight};
use crate::shown::of_table;
use crate::{
    Begun, Place, ReadCommand, ReadError, ReadPosition, Room, RowConsumer, RowView, TombstoneThresholds,
};

/// What goes into the hash, and how: replicas of two versions never agree, and compare rows instead.
const VERSION: u8 = 1;

/// The hash of what a page says: XXH3 of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageDigest(pub u128);

/// A [`PageDigest`], being read.
#[derive(Debug)]
pub struct Digester<'a> {
    extent: Extent<'a>,
    page: Chain,
    open: Option<Open>,
    encoded_bytes: usize,
}

/// A partition that is being hashed.
#[derive(Debug)]
struct Open {
    chain: Chain,
    /// Is there anything of it?
    is_taken: bool,
}

impl<'a> Digester<'a> {
    /// The hash of nothing yet, for a read that may come upon so many tombstones.
    pub fn new(command: &'a ReadCommand, thresholds: TombstoneThresholds) -> Self {
        let mut page = Chain::default();
        page.add(Kind::Version, &[VERSION]);
        Digester { extent: Extent::new(command, thresholds), page, open: None, encoded_bytes: 0 }
    }

    /// A deletion, unless compaction may drop it.
    fn kept(&self, deletion: DeletionTime) -> DeletionTime {
        if self.extent.live.counts(deletion) { deletion } else { DeletionTime::LIVE }
    }

    fn hash_marker(&mut self, marker: &Marker) {
        let (left, right) = (self.kept(marker.left), self.kept(marker.right));
        let Some(open) = self.open.as_mut().filter(|_| left != right) else { return };
        let kind = if marker.is_before { ClusteringBoundKind::Before } else { ClusteringBoundKind::After };
        let mut bytes = Vec::with_capacity(64);
        put_place(&mut bytes, &self.extent.command.table, marker.prefix.components(), kind);
        put_deletion(&mut bytes, left);
        put_deletion(&mut bytes, right);
        open.chain.add(Kind::Marker, &bytes);
        open.is_taken = true;
    }

    /// Takes what was hashed of the partition into the page.
    fn close(&mut self) -> bool {
        let Some(open) = self.open.take() else { return false };
        if open.is_taken {
            self.page.add(Kind::Partition, &open.chain.0.to_le_bytes());
        }
        open.is_taken
    }
}

impl RowConsumer for Digester<'_> {
    type View = DigestView;
    type Taken = DigestSeen;
    type Answer = PageDigest;

    fn view(&self) -> DigestView {
        DigestView { live: self.extent.live, table: Arc::clone(&self.extent.command.table) }
    }

    fn note(&mut self, place: Place<'_>, seen: Option<DigestSeen>) -> Result<Option<DigestSeen>, ReadError> {
        if let Some(seen) = &seen {
            self.extent.note(place, &seen.weight)?;
        }
        Ok(seen)
    }

    fn begin(&mut self, partition: Begun<DigestSeen>) -> Result<bool, ReadError> {
        let Begun { key, deletion, static_row, resumed } = partition;
        let deletion = self.kept(deletion);
        let mut chain = Chain::default();
        chain.add(Kind::Key, &key.bytes);
        if !deletion.is_live() {
            let mut bytes = Vec::with_capacity(DELETION_BYTES);
            put_deletion(&mut bytes, deletion);
            chain.add(Kind::Deletion, &bytes);
        }
        if let Some(seen) = &static_row {
            chain.add(Kind::StaticRow, &seen.hash.to_le_bytes());
            self.encoded_bytes += seen.encoded_bytes;
        }
        self.open = Some(Open { chain, is_taken: !deletion.is_live() || static_row.is_some() });
        self.extent.begin(key, static_row.as_ref().map(|seen| &seen.weight), resumed);
        Ok(true)
    }

    fn wants_more(&self) -> bool {
        self.extent.wants_more()
    }

    fn take_row(&mut self, seen: DigestSeen) -> Result<bool, ReadError> {
        let open = self.open.as_mut().expect("a row is of the partition that was begun");
        open.chain.add(Kind::Row, &seen.hash.to_le_bytes());
        open.is_taken = true;
        self.encoded_bytes += seen.encoded_bytes;
        let is_full = self.extent.take_row(seen.weight);
        if is_full {
            self.extent.closing().iter().for_each(|marker| self.hash_marker(marker));
            let has_row = self.extent.end_at_row();
            assert!(has_row, "the last thing that is hashed is a row");
            self.close();
        }
        Ok(is_full)
    }

    fn take_marker(&mut self, marker: Marker) -> Result<bool, ReadError> {
        self.extent.take_marker(&marker)?;
        self.hash_marker(&marker);
        Ok(false)
    }

    fn end(&mut self) -> bool {
        if self.extent.is_in_range() {
            self.extent.closing().iter().for_each(|marker| self.hash_marker(marker));
        }
        let is_taken = self.close();
        self.extent.end(is_taken)
    }

    fn end_at(&mut self, key: &PartitionKey, clustering: Option<&Clustering>) {
        match clustering.filter(|_| self.open.is_some()) {
            Some(clustering) => {
                self.extent.closing_behind(clustering).iter().for_each(|marker| self.hash_marker(marker));
                let is_taken = self.close();
                self.extent.end_behind(clustering, is_taken);
            }
            None => {
                self.end();
                self.extent.go_on_behind(key, clustering);
            }
        }
    }

    fn is_taken(deletion: DeletionTime, row: Option<&DigestSeen>) -> bool {
        !deletion.is_live() || row.is_some()
    }

    fn pass(&mut self, key: PartitionKey) {
        self.extent.pass_key(key);
    }

    fn leave(&mut self, key: &PartitionKey) {
        self.extent.leave(key);
    }

    fn last_key(&self) -> Option<&PartitionKey> {
        self.extent.last_key()
    }

    fn reserve(&mut self, _partition_count: usize) {}

    fn room(&self) -> Room {
        self.extent.room()
    }

    fn counts(&self) -> (u64, u64) {
        self.extent.counts()
    }

    fn encoded_bytes(&self) -> usize {
        self.encoded_bytes
    }

    fn finish(mut self) -> PageDigest {
        assert!(self.open.is_none(), "all that was hashed of a partition is in the page's hash");
        let command = self.extent.command;
        let (next, _) = self.extent.finish();
        if let Some(next) = next {
            self.page.add(Kind::End, &end(command, &next));
        }
        PageDigest(self.page.0)
    }
}

/// Looks at rows for a [`PageDigest`].
#[derive(Debug)]
pub struct DigestView {
    live: LiveRows,
    table: Arc<Table>,
}

/// The hash of a row, and how it counts.
#[derive(Debug)]
pub struct DigestSeen {
    hash: u128,
    encoded_bytes: usize,
    weight: Weight,
}

impl RowView for DigestView {
    type Seen = Option<DigestSeen>;

    fn see(&self, row: Row) -> Option<DigestSeen> {
        let row = of_table(row, &self.table)?;
        let weight = Weight::of(&row, self.live);
        let encoded_bytes = row.as_encoded().len();
        let kept = purge_row(&row, self.live.now, self.live.gc_before, |_| true)?;
        let mut bytes = Vec::with_capacity(2 * encoded_bytes);
        put_row(&mut bytes, &kept, &self.table);
        Some(DigestSeen { hash: XxHash3_128::oneshot(&bytes), encoded_bytes, weight })
    }
}

/// The hash of a row of which nothing was deleted and nothing expires, of all its columns: equal where the row is, with
/// its times. It is that of its encoded bytes, which [`rows::RowBuilder`] writes in one way only. Bytes that somebody
/// else made, which say the same in another way, have another one.
pub fn plain_row_hash(row: &Row) -> u128 {
    assert!(row.is_plain(), "nothing of it was deleted or expires");
    XxHash3_128::oneshot(row.as_encoded())
}

/// What kind of thing is hashed.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Kind {
    Version = 1,
    Partition,
    Key,
    Deletion,
    StaticRow,
    Row,
    Marker,
    End,
}

/// The hash of one thing after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Chain(u128);

impl Chain {
    fn add(&mut self, kind: Kind, bytes: &[u8]) {
        let mut link = [0; 33];
        link[..16].copy_from_slice(&self.0.to_le_bytes());
        link[16] = kind as u8;
        link[17..].copy_from_slice(&XxHash3_128::oneshot(bytes).to_le_bytes());
        self.0 = XxHash3_128::oneshot(&link);
    }
}

/// Where a page ends.
fn end(command: &ReadCommand, next: &ReadPosition) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    put_run(&mut bytes, &next.key.bytes);
    bytes.extend_from_slice(&next.row_count.to_le_bytes());
    if let Some(clustering) = &next.clustering {
        put_place(&mut bytes, &command.table, clustering.components(), ClusteringBoundKind::Clustering);
    }
    bytes
}

/// A row's or an edge's place, byte-comparable, which says where it ends.
fn put_place<'a>(
    out: &mut Vec<u8>,
    table: &Table,
    components: impl Iterator<Item = Option<&'a [u8]>>,
    kind: ClusteringBoundKind,
) {
    byte_comparable::clustering(table.clustering_types(), components, kind, out);
}

/// What [`put_deletion`] puts.
const DELETION_BYTES: usize = 12;

fn put_deletion(out: &mut Vec<u8>, deletion: DeletionTime) {
    out.extend_from_slice(&deletion.timestamp.to_le_bytes());
    out.extend_from_slice(&deletion.local_deletion_time.to_le_bytes());
}

/// A run of bytes behind its length.
fn put_run(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_cell(out: &mut Vec<u8>, cell: &CellRef<'_>) {
    out.extend_from_slice(&cell.timestamp.to_le_bytes());
    out.extend_from_slice(&cell.ttl.to_le_bytes());
    out.extend_from_slice(&cell.local_deletion_time.to_le_bytes());
    put_run(out, cell.path);
    put_run(out, cell.value);
}

/// A row told in one way only, unlike as it is encoded: a time may stand there once for all cells or with each.
fn put_row(out: &mut Vec<u8>, row: &Row, table: &Table) {
    put_place(out, table, row.clustering_components(), ClusteringBoundKind::Clustering);
    let liveness = row.liveness();
    out.extend_from_slice(&liveness.timestamp.to_le_bytes());
    out.extend_from_slice(&liveness.ttl.to_le_bytes());
    out.extend_from_slice(&liveness.local_expiration_time.to_le_bytes());
    put_deletion(out, row.deletion());
    for column in row.columns() {
        out.extend_from_slice(&column.id.0.to_le_bytes());
        match column.data {
            ColumnData::Simple(cell) => {
                out.push(0);
                put_cell(out, &cell);
            }
            ColumnData::Complex(complex) => {
                out.push(1);
                put_deletion(out, complex.deletion);
                for cell in complex.cells() {
                    out.push(1);
                    put_cell(out, &cell);
                }
                out.push(0);
            }
        }
    }
}
