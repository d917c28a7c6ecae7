//! Reads bytes that may be anything as a table file: what the fuzzer and the damage tests call.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth. There are no checksums
//! of the components in the way: Data is not compressed and stands without CRC.db, and those of
//! Statistics are set right first.
//!
//! ```text
//!   u32 LE bytes of Statistics | Statistics | u32 LE | Partitions | u32 LE | Rows | Data
//! ```

use std::path::Path;
use std::sync::Arc;

use rows::{
    Bound, BoundKind, CellMerge, ColumnData, DeletionTime, PartitionKey, RingRange, Row, RowValues, Slice,
    Slices, Step, Unfiltered, UnfilteredCursor, merge_row,
};
use runtime::{Disk, MemoryDisk, OpenMode};
use uuid::Uuid;

use crate::statistics::correct_checksums;
use crate::{
    ChunkSource, Component, Descriptor, DirectChunks, FileCursor, KeyHash, PartitionSearch, SearchKey,
    SingleRowFound, SingleRowPartition, SingleRowScanStep, SstableError, TableFile, Version, table_of_header,
};

/// Rows read of one hostile file, at most.
const STEP_COUNT_MAX: usize = 100_000;

/// Puts components together as [`read`] takes them apart.
pub fn join(statistics: &[u8], partitions: &[u8], rows: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in [statistics, partitions, rows] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(data);
    out
}

/// Opens and reads a `da` file of those bytes, every way there is.
pub fn read(bytes: &[u8]) {
    read_as(bytes, Version::Da, Component::Partitions, Component::Rows);
}

/// As [`read`], of a file of the format `big`: Index and Summary in the places of Partitions and
/// Rows. An empty Summary is left out.
pub fn read_big(bytes: &[u8], version: Version) {
    read_as(bytes, version, Component::Index, Component::Summary);
}

fn read_as(bytes: &[u8], version: Version, first: Component, second: Component) {
    let mut rest = bytes;
    let mut part = || -> Vec<u8> {
        let Some((head, tail)) = rest.split_first_chunk::<4>() else { return Vec::new() };
        let (part, tail) = tail.split_at(tail.len().min(u32::from_le_bytes(*head) as usize));
        rest = tail;
        part.to_vec()
    };
    let (mut statistics, first_part, second_part) = (part(), part(), part());
    correct_checksums(&mut statistics);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let descriptor = Descriptor::of_version("/hostile", Uuid::nil(), version);
    let list = components::component_list(&[Component::Data]);
    let components = [
        (Component::Statistics, &statistics[..]),
        (first, &first_part),
        (second, &second_part),
        (Component::Data, rest),
        (Component::Toc, list.as_bytes()),
    ];
    let is_there =
        |(component, bytes): &(Component, &[u8])| *component != Component::Summary || !bytes.is_empty();
    let written = components
        .into_iter()
        .filter(is_there)
        .try_for_each(|(component, bytes)| write(&*disk, &descriptor.path(component), bytes));
    if written.is_ok() {
        // Errors are what is expected.
        let _ = read_all(&disk, &descriptor);
    }
}

fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    disk.create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    disk.open(path, OpenMode::CreateNew)?.write_all_at(bytes, 0)
}

fn read_all(disk: &Arc<dyn Disk>, descriptor: &Descriptor) -> Result<(), SstableError> {
    let table = Arc::new(table_of_header(&**disk, descriptor, "ks", "t")?);
    let file = TableFile::open(Arc::clone(disk), descriptor.clone(), &table)?;
    let _ = file.verify();
    let all = steps(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()));
    let _ = steps(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::none()));
    let mut scan = file.scan_single_rows(DirectChunks::new(), &RingRange::ALL);
    while let Ok(SingleRowScanStep::Partition) = scan.advance() {
        let _ = (scan.partition_key(), scan.row(), scan.partition().merge_into(&mut CellMerge::default()));
    }
    let mut keys = vec![file.summary().first_key.clone(), file.summary().last_key.clone()];
    let mut places = Vec::new();
    for step in all.unwrap_or_default() {
        match step {
            Step::Header(header) => keys.push(header.key),
            Step::Item(Unfiltered::Row(row)) => places.push(row.clustering()),
            Step::Item(Unfiltered::Marker(marker)) => places.push(marker.prefix),
            _ => {}
        }
    }
    places.truncate(16);
    let slices: Vec<Slice> = places
        .chunks(2)
        .map(|pair| Slice {
            start: Bound { kind: BoundKind::InclusiveStart, prefix: pair[0].clone() },
            end: Bound { kind: BoundKind::InclusiveEnd, prefix: pair[pair.len() - 1].clone() },
        })
        .collect();
    let slices = Slices::new(slices, &file.layout().comparator);
    let slices = if slices.as_slice().is_empty() { Slices::all() } else { slices };
    for key in keys.iter().take(8) {
        check_single_row(&file, key)?;
        for reversed in [false, true] {
            let _ = steps(file.partition_cursor(
                DirectChunks::new(),
                key,
                KeyHash::of(&key.bytes),
                &slices,
                reversed,
            ));
            let _ = steps(file.partition_cursor(
                DirectChunks::new(),
                key,
                KeyHash::of(&key.bytes),
                &Slices::all(),
                reversed,
            ));
        }
    }
    Ok(())
}

/// What a lookup of a partition of one row tells, a cursor tells too, from the start and from where the search ended.
fn check_single_row(file: &Arc<TableFile>, key: &PartitionKey) -> Result<(), SstableError> {
    let hash = KeyHash::of(&key.bytes);
    if !file.may_contain(key, hash) {
        return Ok(());
    }
    let key = SearchKey::new(key);
    let mut search = file.begin_search(&key);
    let found = loop {
        let whole = |search| steps(file.searched_partition_cursor(DirectChunks::new(), &key, search));
        let from_start =
            steps(file.partition_cursor(DirectChunks::new(), key.key, hash, &Slices::all(), false));
        assert_eq!(whole(search).ok(), from_start.ok(), "a cursor that goes on with {search:?}");
        let Some((id, offset)) = file.wanted_chunk(search) else { break None };
        let chunk = file.chunks().read_one(id)?;
        file.fetch_wanted(search, &chunk, offset);
        if matches!(search, PartitionSearch::Data { .. }) {
            break found_of(file.single_row_at(&key, &chunk, offset));
        }
        search = file.go_on(search, &key, &chunk);
    };
    let Some(found) = found.or((search == PartitionSearch::Absent).then_some(None)) else { return Ok(()) };
    let mut cursor = file.partition_cursor(DirectChunks::new(), key.key, hash, &Slices::all(), false);
    let header = match cursor.step()? {
        Step::Header(header) => header,
        _ => {
            assert_eq!(found, None, "there is no such partition");
            return Ok(());
        }
    };
    let row = match cursor.step()? {
        Step::Item(Unfiltered::Row(row)) => Some(row),
        _ => None,
    };
    assert_eq!(found, Some((header.deletion, row)), "the partition as a cursor reads it");
    Ok(())
}

/// A partition of at most one row.
type Found = (DeletionTime, Option<Row>);

/// What was found, checked against what of it can be told where it lies; `None` when it is for a cursor.
fn found_of(found: SingleRowFound<'_>) -> Option<Option<Found>> {
    let partition = match found {
        SingleRowFound::ForCursor(_) => return None,
        SingleRowFound::Absent => return Some(None),
        SingleRowFound::Partition(partition) => partition,
    };
    let read = (partition.deletion(), partition.row().ok()?);
    check_values(&read, partition.values().as_deref());
    check_merged(&read, &partition);
    Some(Some(read))
}

/// A row that is merged with nothing is the row, as far as the deletion leaves it.
fn check_merged(found: &Found, partition: &SingleRowPartition<'_>) {
    let mut merge = CellMerge::default();
    if partition.merge_into(&mut merge).is_some() {
        let merged = merge.build(&[], Vec::new()).finish();
        let (deletion, row) = found;
        assert_eq!(merge.active(), *deletion);
        assert_eq!(
            Some(merged).filter(|row| !row.is_empty()),
            row.clone().and_then(|row| merge_row(row, *deletion))
        );
    }
}

/// Values that are shown where they lie are those of the row.
fn check_values(found: &Found, values: Option<&RowValues<'_>>) {
    let Some(values) = values else { return };
    let (DeletionTime::LIVE, Some(row)) = found else { panic!("values of {found:?}") };
    let of_row = row.columns().map(|column| match column.data {
        ColumnData::Simple(cell) if cell.timestamp == row.liveness().timestamp => (column.id, cell.value),
        other => panic!("shown as a value: {other:?}"),
    });
    assert!(row.is_plain() && of_row.eq(values.iter().copied()), "{values:?} are not those of {row:?}");
}

fn steps<S: ChunkSource>(mut cursor: FileCursor<S>) -> Result<Vec<Step<()>>, SstableError> {
    let mut steps = Vec::new();
    while steps.len() < STEP_COUNT_MAX {
        match cursor.step()? {
            Step::End => break,
            Step::Need(_) => unreachable!("direct chunks wait"),
            Step::Header(header) => steps.push(Step::Header(header)),
            Step::Item(item) => steps.push(Step::Item(item)),
        }
    }
    Ok(steps)
}
