//! The blocking half of the log: takes framed bytes to the disk, on an I/O thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use runtime::{Disk, DiskFile, OpenMode};

use crate::format::{BLANK, HEADER_BYTES, SegmentName, encode_header};
use crate::position::LogPosition;
use crate::roster::Roster;
use crate::spares::Spares;

/// Bytes for one segment.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) segment: u64,
    /// Where in the segment the bytes go. [`HEADER_BYTES`] means that the segment has to be created.
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
    /// Whether the bytes end with the segment's end frame.
    pub(crate) seals: bool,
}

/// Writes a stream's segments, one after the other.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) stream: u32,
    pub(crate) segment_bytes: u32,
    pub(crate) spares: Arc<Spares>,
    pub(crate) roster: Arc<Roster>,
    /// A segment that was begun and could not be entered in the roster: the disk was full.
    pub(crate) unentered: Option<(u64, Arc<dyn DiskFile>)>,
    /// The segment being written.
    pub(crate) file: Option<Arc<dyn DiskFile>>,
    /// Where the last chunk that was written ends.
    pub(crate) written_to: LogPosition,
}

/// What became of the chunks.
pub(crate) struct Written {
    /// Those that were not written; only when the disk is full.
    pub(crate) left: Vec<Chunk>,
    /// Emptied buffers to use again.
    pub(crate) buffers: Vec<Vec<u8>>,
    pub(crate) outcome: Outcome,
}

/// How the writing went.
pub(crate) enum Outcome {
    Done,
    /// There is no space to go on; earlier chunks are written.
    NoSpace(io::Error),
    /// Something was lost, or may be.
    Failed(io::Error),
}

impl SegmentWriter {
    /// Creates the segment that the first record will need, so that it does not have to wait for that.
    /// What goes wrong is told when the segment is written to.
    pub(crate) fn prepare(&mut self, id: u64) {
        self.file = self.begin(id).ok();
    }

    /// Writes the chunks in order.
    pub(crate) fn write(&mut self, chunks: Vec<Chunk>) -> Written {
        let mut chunks = chunks.into_iter();
        let mut buffers = Vec::with_capacity(chunks.len());
        while let Some(mut chunk) = chunks.next() {
            if self.file.is_none() {
                match self.begin(chunk.segment) {
                    Ok(file) => self.file = Some(file),
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                        let left = std::iter::once(chunk).chain(chunks).collect();
                        return Written { left, buffers, outcome: Outcome::NoSpace(error) };
                    }
                    Err(error) => return failed(error),
                }
            }
            match self.write_chunk(&mut chunk) {
                Ok(()) => {}
                // Where space can not be reserved; the same bytes at the same place can be written again.
                Err(error) if error.kind() == io::ErrorKind::StorageFull && !chunk.seals => {
                    let left = std::iter::once(chunk).chain(chunks).collect();
                    return Written { left, buffers, outcome: Outcome::NoSpace(error) };
                }
                Err(error) => return failed(error),
            }
            chunk.bytes.clear();
            buffers.push(chunk.bytes);
        }
        Written { left: Vec::new(), buffers, outcome: Outcome::Done }
    }

    /// A segment's end is durable before the next segment exists; replay relies on it.
    fn write_chunk(&mut self, chunk: &mut Chunk) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        self.check_place(chunk);
        let framed_bytes = chunk.bytes.len();
        let end = u64::from(chunk.offset) + framed_bytes as u64;
        if !chunk.seals {
            let room = u64::from(self.segment_bytes).saturating_sub(end).min(BLANK.len() as u64);
            chunk.bytes.extend_from_slice(&BLANK[..room as usize]);
        }
        let written = file.write_all_at(&chunk.bytes, u64::from(chunk.offset));
        chunk.bytes.truncate(framed_bytes);
        written?;
        if chunk.seals {
            // In this order: only what has a durable end may be shorter than it was reserved. The cut itself
            // need not be durable.
            file.sync_data()?;
            file.set_len(end)?;
            self.file = None;
        }
        self.written_to = LogPosition { segment: chunk.segment, offset: end as u32 };
        Ok(())
    }

    /// Chunks follow each other without a gap, which replay would take for the end, and stay within their segment.
    fn check_place(&self, chunk: &Chunk) {
        let LogPosition { segment, offset } = self.written_to;
        let follows = chunk.segment == segment && chunk.offset == offset;
        let begins = chunk.segment > segment && chunk.offset as usize == HEADER_BYTES;
        assert!(follows || begins, "a chunk at {}:{} after {}", chunk.segment, chunk.offset, self.written_to);
        let end = chunk.offset as usize + chunk.bytes.len();
        assert!(end <= self.segment_bytes as usize, "a chunk ends within its segment");
    }

    /// Begins a segment, reserved and with its header durable, so that what is later found behind
    /// a bad header is known to be damage; and enters it in the roster, so that it is missed if it goes.
    fn begin(&mut self, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        let begun = self.unentered.take().filter(|(begun, _)| *begun == id);
        let file = match begun {
            Some((_, file)) => file,
            None => self.prepare_file(id)?,
        };
        if let Err(error) = self.roster.enter(id) {
            self.unentered = Some((id, file));
            return Err(error);
        }
        Ok(file)
    }

    fn prepare_file(&self, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        match self.spares.use_again(id)? {
            Some(file) => Ok(file),
            None => self.create(id),
        }
    }

    fn create(&self, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        let name = SegmentName { stream: self.stream, id };
        let path = name.path(&self.directory);
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        if let Err(error) = file.allocate(u64::from(self.segment_bytes)) {
            // Taken back, so that creating it can be tried again.
            self.disk.remove_file(&path)?;
            return Err(error);
        }
        let header: [u8; HEADER_BYTES] = encode_header(name, self.segment_bytes);
        let prepared = file
            .write_all_at(&header, 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.disk.sync_dir(&self.directory));
        match prepared {
            Ok(()) => Ok(file),
            // It holds no record yet, so it can be taken back as long as its name can.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.disk.remove_file(&path)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}

fn failed(error: io::Error) -> Written {
    Written { left: Vec::new(), buffers: Vec::new(), outcome: Outcome::Failed(error) }
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::*;
    use crate::roster::Ids;

    /// Writes a chunk of twelve bytes at each place, one after the other.
    fn write_at(places: &[(u64, u32)]) {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let directory = PathBuf::from("/");
        let mut writer = SegmentWriter {
            roster: Arc::new(Roster::open(&disk, &directory, 0, Ids::new()).expect("opens")),
            spares: Arc::new(Spares::find(Arc::clone(&disk), &directory, 0, 4096, 0).expect("finds none")),
            disk,
            directory,
            stream: 0,
            segment_bytes: 4096,
            unentered: None,
            file: None,
            written_to: LogPosition::START,
        };
        for (segment, offset) in places {
            let chunk = Chunk { segment: *segment, offset: *offset, bytes: vec![1; 12], seals: false };
            assert!(matches!(writer.write(vec![chunk]).outcome, Outcome::Done));
        }
    }

    #[test]
    fn chunks_follow_each_other() {
        write_at(&[(1, 32), (1, 44), (1, 56)]);
    }

    #[test]
    #[should_panic(expected = "a chunk at 1:48 after 1:44")]
    fn a_chunk_that_is_missing_ends_the_program() {
        write_at(&[(1, 32), (1, 48)]);
    }

    #[test]
    #[should_panic(expected = "a chunk ends within its segment")]
    fn a_chunk_that_is_too_long_for_its_segment_ends_the_program() {
        let steps = (0..400).map(|step| (1, 32 + 12 * step));
        write_at(&steps.collect::<Vec<_>>());
    }
}
