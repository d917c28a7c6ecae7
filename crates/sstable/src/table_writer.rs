//! Writes a table file, partition by partition in ring order.

use std::sync::Arc;

use components::{ComponentWriter, CompressionParameters, DataWriter, FileWriter};
use rows::{
    Bound, BoundKind, Clustering, DeletionTime, Liveness, PartitionHeader, PartitionKey, Row, RowBuilder,
    Unfiltered,
};
use runtime::Disk;
use schema::Table;
use types::byte_comparable::{self, ClusteringBoundKind};

use crate::bloom::{FilterWriter, KeyHash};
use crate::data::{END_OF_PARTITION, Encoder, Layout, write_whole_deletion};
use crate::partition_index::{PartitionIndexWriter, PartitionPlace};
use crate::row_index::{Block, RowIndexWriter};
use crate::spread::{SpreadDeletion, is_unwritable};
use crate::statistics::{Collector, Header, Statistics, clustering_names};
use crate::{
    Component, Descriptor, KeptChunks, SstableError, TableSummary, WriterOptions, delete_table_file,
};

/// Writes a table file, partition by partition in ring order.
///
/// After an error the writer is of no use but for [`TableWriter::abort`]. A writer that is dropped
/// leaves its files behind, without a list of components: unfinished, for whoever cleans up.
#[derive(Debug)]
pub struct TableWriter {
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
    table: Arc<Table>,
    options: WriterOptions,
    layout: Layout,
    encoder: Encoder,
    data: DataWriter,
    partitions: PartitionIndexWriter,
    rows: RowIndexWriter,
    filter: Option<FilterWriter>,
    collector: Collector,
    partition: Option<Partition>,
    /// A deletion of the partition that is told in other words.
    spread: Option<SpreadDeletion>,
    first_key: Option<PartitionKey>,
    last_key: Option<PartitionKey>,
    /// The header of a partition being encoded.
    item: Vec<u8>,
    first_form: Vec<u8>,
    last_form: Vec<u8>,
}

/// The partition being written.
#[derive(Debug)]
struct Partition {
    key: PartitionKey,
    deletion: DeletionTime,
    /// Where it begins in Data.
    start: u64,
    /// Where the last item began, from the start; 0 before the first.
    last_item: u64,
    /// Range deletion in force behind the last item.
    open: DeletionTime,
    /// The block being filled: its first item, where it begins, and what was open there.
    block: Option<(ItemPlace, Block)>,
    first_place: Option<ItemPlace>,
    last_place: Option<ItemPlace>,
}

/// Where an item stands, kept until its byte-comparable form is wanted.
#[derive(Clone, Debug)]
enum ItemPlace {
    /// The one row of a partition of a table without clustering columns.
    SingleRow,
    Row(Row),
    Marker(Clustering, bool),
}

impl ItemPlace {
    fn of(item: &Unfiltered, table: &Table) -> Self {
        match item {
            Unfiltered::Row(_) if table.clustering_types().is_empty() => ItemPlace::SingleRow,
            Unfiltered::Row(row) => ItemPlace::Row(row.clone()),
            Unfiltered::Marker(marker) => ItemPlace::Marker(marker.prefix.clone(), marker.is_before),
        }
    }

    /// The place as the start or the end of what is covered.
    fn bound(&self, is_start: bool) -> Bound {
        let (prefix, is_before) = match self {
            ItemPlace::SingleRow => (Clustering::EMPTY, is_start),
            ItemPlace::Row(row) => (row.clustering(), is_start),
            ItemPlace::Marker(prefix, is_before) => (prefix.clone(), *is_before),
        };
        let kind = match (is_start, is_before) {
            (true, true) => BoundKind::InclusiveStart,
            (true, false) => BoundKind::ExclusiveStart,
            (false, true) => BoundKind::ExclusiveEnd,
            (false, false) => BoundKind::InclusiveEnd,
        };
        Bound { kind, prefix }
    }

    fn form(&self, table: &Table, out: &mut Vec<u8>) {
        out.clear();
        let types = table.clustering_types();
        match self {
            ItemPlace::SingleRow => {
                let none = std::iter::empty();
                byte_comparable::clustering(types, none, ClusteringBoundKind::Clustering, out);
            }
            ItemPlace::Row(row) => {
                byte_comparable::clustering(
                    types,
                    row.clustering_components(),
                    ClusteringBoundKind::Clustering,
                    out,
                );
            }
            ItemPlace::Marker(prefix, is_before) => {
                let kind = if *is_before { ClusteringBoundKind::Before } else { ClusteringBoundKind::After };
                byte_comparable::clustering(types, prefix.components(), kind, out);
            }
        }
    }
}

impl TableWriter {
    /// Begins a table file; nothing of that id may exist in the directory.
    ///
    /// # Errors
    /// The disk fails, or the options ask for a compressor that is not known.
    pub fn create(
        disk: Arc<dyn Disk>,
        descriptor: Descriptor,
        table: Arc<Table>,
        options: WriterOptions,
    ) -> Result<Self, SstableError> {
        let data_path = descriptor.path(Component::Data);
        if descriptor.version.is_big() {
            let what = "table files of the format big are not written";
            return Err(SstableError::Misuse { path: data_path, what });
        }
        let parameters = CompressionParameters::from_options(&options.compression, &data_path)?;
        let layout = Layout::for_writing(&table, options.encoding_stats);
        let kept = KeptChunks::new(options.kept_room.clone());
        let data = DataWriter::create(&*disk, &descriptor, parameters, kept)?;
        let index = |component| FileWriter::create(&*disk, descriptor.path(component), true);
        let partitions = PartitionIndexWriter::new(index(Component::Partitions)?);
        let rows = RowIndexWriter::new(index(Component::Rows)?);
        let filter = FilterWriter::new(options.estimated_partitions, options.bloom_filter_fp_chance);
        Ok(TableWriter {
            collector: Collector::new(layout.comparator.clone()),
            encoder: Encoder::default(),
            disk,
            descriptor,
            table,
            options,
            layout,
            data,
            partitions,
            rows,
            filter,
            partition: None,
            spread: None,
            first_key: None,
            last_key: None,
            item: Vec::new(),
            first_form: Vec::new(),
            last_form: Vec::new(),
        })
    }

    /// Begins a partition: keys must rise.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn start_partition(&mut self, header: &PartitionHeader) -> Result<(), SstableError> {
        if !is_unwritable(header.deletion) {
            return self.begin_partition(header);
        }
        let (written, spread) = SpreadDeletion::begin(header, &self.table);
        self.begin_partition(&written)?;
        self.spread = Some(spread);
        Ok(())
    }

    fn begin_partition(&mut self, header: &PartitionHeader) -> Result<(), SstableError> {
        if self.partition.is_some() {
            return Err(self.misuse("a partition begins inside another"));
        }
        if self.last_key.as_ref().is_some_and(|last| *last >= header.key) {
            return Err(self.misuse("partition keys do not rise"));
        }
        let Ok(key_bytes) = u16::try_from(header.key.bytes.len()) else {
            return Err(self.misuse("a partition key is longer than any may be"));
        };
        let start = self.data.position();
        self.item.clear();
        self.item.extend_from_slice(&key_bytes.to_be_bytes());
        self.item.extend_from_slice(&header.key.bytes);
        write_whole_deletion(header.deletion, &mut self.item);
        self.collector.start_partition(header.deletion);
        if !self.layout.statics.list.is_empty() {
            self.encode_static_row(header.static_row.as_ref())?;
        }
        self.data.write(&self.item)?;
        self.rows.start();
        self.partition = Some(Partition {
            key: header.key.clone(),
            deletion: header.deletion,
            start,
            last_item: 0,
            open: DeletionTime::LIVE,
            block: None,
            first_place: None,
            last_place: None,
        });
        Ok(())
    }

    fn encode_static_row(&mut self, row: Option<&Row>) -> Result<(), SstableError> {
        let encoder = &mut self.encoder;
        let encoded = match row {
            Some(row) if !row.is_empty() => {
                encoder.row(&self.layout, row, true, 0, &mut self.collector, &mut self.item)
            }
            _ => {
                let none = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE).finish();
                encoder.row(&self.layout, &none, true, 0, &mut crate::data::Unobserved, &mut self.item)
            }
        };
        encoded.map_err(|what| self.misuse(what))
    }

    /// Writes the next row or marker of the partition: they must rise, and markers must match.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn append(&mut self, item: &Unfiltered) -> Result<(), SstableError> {
        match &mut self.spread {
            None => self.write_item(item),
            Some(spread) => {
                let items = spread.items(item, &self.table);
                items.iter().try_for_each(|item| self.write_item(item))
            }
        }
    }

    fn write_item(&mut self, item: &Unfiltered) -> Result<(), SstableError> {
        let Some(mut partition) = self.partition.take() else {
            return Err(self.misuse("a row outside of a partition"));
        };
        let position = self.data.position() - partition.start;
        assert!(position > partition.last_item, "items of a partition follow each other");
        let previous_bytes = position - partition.last_item;
        let (layout, collector, encoder) = (&self.layout, &mut self.collector, &mut self.encoder);
        let encoded = self.data.write_with(|out| match item {
            Unfiltered::Row(row) => encoder.row(layout, row, false, previous_bytes, collector, out),
            Unfiltered::Marker(marker) => encoder.marker(layout, marker, previous_bytes, collector, out),
        })?;
        encoded.map_err(|what| self.misuse(what))?;
        let place = ItemPlace::of(item, &self.table);
        if partition.first_place.is_none() {
            partition.first_place = Some(place.clone());
        }
        let block = partition
            .block
            .get_or_insert_with(|| (place.clone(), Block { offset: position, open: partition.open }));
        let block_start = block.1.offset;
        if let Unfiltered::Marker(marker) = item {
            partition.open = marker.right;
        }
        partition.last_place = Some(place);
        partition.last_item = position;
        let filled = self.data.position() - partition.start - block_start;
        // What is open where a block begins is told as the deletion of a partition is.
        if filled >= u64::from(self.options.row_index_block_bytes) && !is_unwritable(partition.open) {
            self.end_block(&mut partition)?;
        }
        self.partition = Some(partition);
        Ok(())
    }

    fn end_block(&mut self, partition: &mut Partition) -> Result<(), SstableError> {
        let (Some((first, block)), Some(last)) = (partition.block.take(), &partition.last_place) else {
            return Ok(());
        };
        first.form(&self.table, &mut self.first_form);
        last.form(&self.table, &mut self.last_form);
        self.rows.add(&self.first_form, &self.last_form, block)
    }

    /// Ends the partition.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn end_partition(&mut self) -> Result<(), SstableError> {
        if let Some(spread) = self.spread.take() {
            spread.end().iter().try_for_each(|item| self.write_item(item))?;
        }
        let Some(mut partition) = self.partition.take() else {
            return Err(self.misuse("a partition ends that did not begin"));
        };
        if !partition.open.is_live() {
            return Err(self.misuse("a partition ends with a range deletion open"));
        }
        if self.rows.block_count() > 0 {
            self.end_block(&mut partition)?;
        }
        let end = self.data.position() - partition.start;
        assert!(end > partition.last_item, "a partition ends behind its last item");
        self.data.write(&[END_OF_PARTITION])?;
        let key = &partition.key;
        let entry = self.rows.finish_partition(&key.bytes, partition.start, partition.deletion, end)?;
        let place = entry.map_or(PartitionPlace::Data(partition.start), PartitionPlace::Rows);
        let hash = KeyHash::of(&key.bytes);
        if let Some(filter) = &mut self.filter {
            filter.add(hash);
        }
        self.partitions.add(key, hash, place)?;
        let places = partition.first_place.as_ref().zip(partition.last_place.as_ref());
        let bounds = places.map(|(first, last)| (|| first.bound(true), || last.bound(false)));
        self.collector.end_partition(&key.bytes, self.data.position() - partition.start, bounds);
        if self.first_key.is_none() {
            self.first_key = Some(partition.key.clone());
        }
        self.last_key = Some(partition.key);
        Ok(())
    }

    /// Uncompressed bytes of Data so far.
    pub fn data_bytes_written(&self) -> u64 {
        self.data.position()
    }

    /// How many partitions were written so far.
    pub fn partition_count(&self) -> u64 {
        self.collector.partition_count()
    }

    /// Writes what is left, makes all files and their names durable, the list of components last.
    ///
    /// # Errors
    /// The disk fails, or no partition was written. What was written is deleted if that can be.
    pub fn finish(self) -> Result<TableSummary, SstableError> {
        self.finish_all().map(|(summary, _)| summary)
    }

    /// As [`TableWriter::finish`]; gives what was kept of Data, for [`TableFile::keep`](crate::TableFile::keep).
    ///
    /// # Errors
    /// As [`TableWriter::finish`].
    pub fn finish_keeping(self) -> Result<KeptChunks, SstableError> {
        self.finish_all().map(|(_, kept)| kept)
    }

    fn finish_all(self) -> Result<(TableSummary, KeptChunks), SstableError> {
        let (disk, descriptor) = (Arc::clone(&self.disk), self.descriptor.clone());
        self.write_components().inspect_err(|_| {
            // The first error tells more than one that follows from it.
            let _ = delete_table_file(&*disk, &descriptor);
        })
    }

    fn write_components(self) -> Result<(TableSummary, KeptChunks), SstableError> {
        if self.partition.is_some() {
            return Err(self.misuse("the file ends inside a partition"));
        }
        let (Some(first_key), Some(last_key)) = (self.first_key.clone(), self.last_key.clone()) else {
            return Err(self.misuse("a table file without partitions"));
        };
        let partition_count = self.collector.partition_count();
        let data_bytes = self.data.position();
        assert!(first_key <= last_key, "keys rise");
        assert_eq!(self.partitions.key_count(), partition_count, "every partition is in the index");
        let filtered_count = self.filter.as_ref().map_or(partition_count, FilterWriter::key_count);
        assert_eq!(filtered_count, partition_count, "every partition is in the filter");
        let data = self.data.finish()?;
        assert_eq!(data.uncompressed_bytes, data_bytes, "all that was appended is in a chunk");
        let mut files = ComponentWriter::new(&*self.disk, &self.descriptor);
        files.add(Component::Partitions, self.partitions.finish()?);
        files.add(Component::Rows, self.rows.finish()?);
        files.write(data.chunks.0, &data.chunks.1)?;
        files.write(Component::Digest, data.digest.to_string().as_bytes())?;
        if let Some(filter) = self.filter.map(FilterWriter::finish) {
            files.write(Component::Filter, &filter.to_bytes())?;
        }
        let cardinality = self.collector.cardinality().clone();
        let mut stats = self.collector.finish();
        stats.compression_ratio = data.compression_ratio;
        stats.level = self.options.level;
        stats.repaired_at = self.options.repaired_at;
        stats.pending_repair = self.options.pending_repair;
        stats.clustering_types = clustering_names(&self.table);
        stats.first_key = first_key.bytes.clone();
        stats.last_key = last_key.bytes.clone();
        let header = Header::for_writing(&self.table, self.options.encoding_stats);
        let fp_chance = self.options.bloom_filter_fp_chance;
        let statistics = Statistics::new(fp_chance, &cardinality, stats, header);
        let bytes = statistics.to_bytes(&self.layout.clustering).map_err(|what| SstableError::Misuse {
            path: self.descriptor.path(Component::Statistics),
            what,
        })?;
        files.write(Component::Statistics, &bytes)?;
        let index_bytes = files.finish()?;
        let summary = TableSummary::new(
            self.descriptor.id,
            (first_key, last_key),
            partition_count,
            &statistics,
            (data.uncompressed_bytes, data.file_bytes, data.file_bytes + index_bytes),
        );
        Ok((summary, data.kept))
    }

    /// Deletes what was written.
    ///
    /// # Errors
    /// The disk fails.
    pub fn abort(self) -> Result<(), SstableError> {
        delete_table_file(&*self.disk, &self.descriptor)
    }

    fn misuse(&self, what: &'static str) -> SstableError {
        SstableError::Misuse { path: self.data.path().to_owned(), what }
    }
}
