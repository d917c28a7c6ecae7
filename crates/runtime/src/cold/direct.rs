//! A file opened past the kernel's page cache, and how its reads must be aligned.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use crate::handle::Handle;

use super::buffer::{AlignedBuffer, BUFFER_ALIGNMENT, ColdBytes};

/// What offsets are aligned to where the kernel does not tell: a page suits any device.
const ALIGNMENT_UNKNOWN: u32 = 4096;

/// A file opened with `O_DIRECT`, for reading.
#[derive(Debug)]
pub struct DirectFile {
    file: Handle,
    /// What offsets and lengths of reads are multiples of. A power of two.
    alignment: u64,
}

impl DirectFile {
    /// Opens once more, past the page cache, what is open already. A file that lost its name is
    /// found through its descriptor.
    ///
    /// # Errors
    /// The file system has no such reads, or the file can not be opened again.
    pub(crate) fn reopen(path: &Path, open: &File) -> io::Result<DirectFile> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let reopen = |path: &Path| rustix::fs::open(path, flags, Mode::empty());
        let descriptor = match reopen(path) {
            Err(rustix::io::Errno::NOENT) => {
                reopen(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())))?
            }
            other => other?,
        };
        let alignment = alignment_of(&descriptor)?;
        Ok(DirectFile { file: File::from(descriptor).into(), alignment })
    }

    /// The aligned span that holds so many bytes from an offset on: where it starts, its length, and
    /// where in it the bytes are.
    pub(super) fn span(&self, offset: u64, length: usize) -> Span {
        let start = offset / self.alignment * self.alignment;
        let skipped = (offset - start) as usize;
        let capacity = (skipped + length.max(1)).next_multiple_of(self.alignment as usize);
        Span { start, capacity, wanted: skipped..skipped + length }
    }

    /// Whether a read may end there and another go on from there.
    pub(super) fn is_aligned(&self, offset: u64) -> bool {
        offset.is_multiple_of(self.alignment)
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads; blocks.
    pub(super) fn read(&self, offset: u64, length: usize) -> io::Result<ColdBytes> {
        let span = self.span(offset, length);
        let mut buffer = AlignedBuffer::with_capacity(span.capacity);
        while buffer.filled() < span.wanted.end {
            let at = span.start + buffer.filled() as u64;
            if !self.is_aligned(at) {
                // A read of whole blocks that ends inside one has met the end of the file.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let read = match rustix::io::pread(&*self.file, buffer.spare(), at) {
                Ok((read, _)) => read.len(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // SAFETY: `pread` gave back that many bytes as initialised, from the first spare one on.
            #[expect(unsafe_code, reason = "tells the buffer what was read")]
            unsafe {
                buffer.add_filled(read);
            }
        }
        Ok(ColdBytes::aligned(buffer, span.wanted))
    }
}

/// See [`DirectFile::span`].
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) capacity: usize,
    pub(super) wanted: Range<usize>,
}

fn alignment_of(file: &impl std::os::fd::AsFd) -> io::Result<u64> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let Ok(stat) = stat else { return Ok(u64::from(ALIGNMENT_UNKNOWN)) };
    let is_known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let (memory, offset) = match is_known {
        true => (stat.stx_dio_mem_align, stat.stx_dio_offset_align),
        false => (ALIGNMENT_UNKNOWN, ALIGNMENT_UNKNOWN),
    };
    // Zero means that this file can not be read so.
    if offset == 0 || !offset.is_power_of_two() || memory as usize > BUFFER_ALIGNMENT {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(u64::from(offset))
}
