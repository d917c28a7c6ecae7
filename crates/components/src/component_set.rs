//! The components of one table file as one set: opened, read, checked and deleted together.

use std::path::PathBuf;
use std::sync::Arc;

use runtime::{Disk, OpenMode};

use crate::checksums::{COVERED, Checksums, PAGE_BYTES};
use crate::{Component, DataFile, Descriptor, IndexFile, SstableError, toc};

/// Small components are read whole; no sound one comes near this.
const SMALL_COMPONENT_BYTES_MAX: u64 = 4 << 30;
/// Bytes of Data that are read in one go to be checked.
const DIGEST_READ_BYTES: usize = 256 * 1024;

/// The components of one table file on a disk. None of its list is missing.
#[derive(Debug)]
pub struct ComponentSet {
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
    checksums: Option<Checksums>,
}

impl ComponentSet {
    /// Finds the components of a table file and reads their checksums. Blocks.
    ///
    /// # Errors
    /// The file is unfinished, one of its components is missing, or the checksums are damaged.
    pub fn open(disk: Arc<dyn Disk>, descriptor: Descriptor) -> Result<Self, SstableError> {
        let path = descriptor.path(Component::Checksums);
        let checksums = match disk.exists(&path)? {
            true => Some(Checksums::from_bytes(&path, &disk.read(&path)?)?),
            false => None,
        };
        let set = ComponentSet { disk, descriptor, checksums };
        let list = set.read(Component::Toc)?;
        let list = list.ok_or_else(|| set.damaged(Component::Toc, 0, "it is missing: an unfinished file"))?;
        for component in toc::from_text(&set.path(Component::Toc), &list)? {
            if !set.disk.exists(&set.path(component))? {
                return Err(set.damaged(component, 0, "it is missing"));
            }
        }
        // No read needs the checksum of the whole of Data; damage is told all the same.
        set.read(Component::Digest)?;
        Ok(set)
    }

    /// Which table file it is.
    #[inline]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Path of a component.
    pub fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    /// A small component, verified; `None` when there is none.
    ///
    /// # Errors
    /// It is damaged, or the disk fails.
    pub fn read(&self, component: Component) -> Result<Option<Vec<u8>>, SstableError> {
        let path = self.path(component);
        let Some(entry) = self.disk.metadata(&path)? else { return Ok(None) };
        if entry.file_bytes > SMALL_COMPONENT_BYTES_MAX {
            return Err(self.damaged(component, 0, "larger than it can be"));
        }
        let bytes = self.disk.read(&path)?;
        if let Some(checksums) = self.checksums.as_ref().and_then(|checksums| checksums.of(component)) {
            checksums.check(&path, &bytes)?;
        }
        Ok(Some(bytes))
    }

    /// A component with an index, to be read page by page.
    ///
    /// # Errors
    /// It has not the length it was written with, or the disk fails.
    pub fn open_index(&self, component: Component) -> Result<IndexFile, SstableError> {
        let path = self.path(component);
        let file = self.disk.open(&path, OpenMode::Read)?;
        let file_bytes = file.len()?;
        let checksums = self.checksums.as_ref().and_then(|checksums| checksums.of(component)).cloned();
        if let Some(checksums) = &checksums {
            checksums.check_length(&path, file_bytes)?;
        }
        if file_bytes.div_ceil(PAGE_BYTES as u64) > u64::from(u32::MAX) {
            return Err(self.damaged(component, 0, "larger than it can be"));
        }
        Ok(IndexFile::new(file, file_bytes, checksums))
    }

    /// Data, to be read chunk by chunk.
    ///
    /// # Errors
    /// What is known of its chunks is damaged, or the disk fails.
    pub fn open_data(&self) -> Result<DataFile, SstableError> {
        let file = self.disk.open(&self.path(Component::Data), OpenMode::Read)?;
        match self.read(Component::CompressionInfo)? {
            Some(info) => DataFile::compressed(file, &self.path(Component::CompressionInfo), &info),
            None => {
                let crc = self.read(Component::Crc)?;
                DataFile::plain(file, &self.path(Component::Crc), crc.as_deref())
            }
        }
    }

    /// Bytes of all files.
    ///
    /// # Errors
    /// The disk fails.
    pub fn disk_bytes(&self) -> Result<u64, SstableError> {
        let mut sum = 0;
        for component in Component::ALL {
            let entry = self.disk.metadata(&self.path(component))?;
            sum += entry.map_or(0, |entry| entry.file_bytes);
        }
        Ok(sum)
    }

    /// Checks the components that Checksums covers, and the checksum of the whole of Data as it lies on the disk.
    /// Blocks, for long.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(&self, data: &DataFile) -> Result<(), SstableError> {
        for component in COVERED {
            if let Some(checksums) = self.checksums.as_ref().and_then(|checksums| checksums.of(component)) {
                let path = self.path(component);
                checksums.check(&path, &self.disk.read(&path)?)?;
            }
        }
        self.verify_digest(data)
    }

    fn verify_digest(&self, data: &DataFile) -> Result<(), SstableError> {
        let path = self.path(Component::Digest);
        if !self.disk.exists(&path)? {
            return Ok(());
        }
        let text = self.disk.read(&path)?;
        let expected = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let expected = expected.ok_or_else(|| self.damaged(Component::Digest, 0, "it is no number"))?;
        let file = data.file();
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; DIGEST_READ_BYTES];
        let mut offset = 0;
        loop {
            let read = file.read_at(&mut buffer, offset)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            offset += read as u64;
        }
        let got = hasher.finalize();
        if got != expected {
            let path = file.path().to_owned();
            return Err(SstableError::Checksum { path, offset: 0, expected, got });
        }
        Ok(())
    }

    /// The error for bytes of a component that do not say what they should.
    pub fn damaged(&self, component: Component, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.path(component), offset, what }
    }
}

/// Deletes all components of a table file, the list of components first.
///
/// # Errors
/// The disk fails.
pub fn delete_table_file(disk: &dyn Disk, descriptor: &Descriptor) -> Result<(), SstableError> {
    for component in Component::ALL {
        let path = descriptor.path(component);
        if disk.exists(&path)? {
            disk.remove_file(&path)?;
        }
    }
    Ok(disk.sync_dir(&descriptor.directory)?)
}
