//! The components beside Data, as they are written: each with its checksums, the list of all last.

use runtime::Disk;

use crate::checksums::{COVERED, Checksums, FileChecksums};
use crate::{Component, Descriptor, FileWriter, SstableError, toc};

/// The components beside Data, as they are written.
#[derive(Debug)]
pub struct ComponentWriter<'a> {
    disk: &'a dyn Disk,
    descriptor: &'a Descriptor,
    written: Vec<(Component, FileChecksums)>,
}

impl<'a> ComponentWriter<'a> {
    /// Has written nothing yet.
    pub fn new(disk: &'a dyn Disk, descriptor: &'a Descriptor) -> Self {
        ComponentWriter { disk, descriptor, written: Vec::new() }
    }

    /// Takes in a component that was written elsewhere.
    pub fn add(&mut self, component: Component, checksums: FileChecksums) {
        self.written.push((component, checksums));
    }

    /// Writes a component whole and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn write(&mut self, component: Component, bytes: &[u8]) -> Result<(), SstableError> {
        let mut file = FileWriter::create(self.disk, self.descriptor.path(component), true)?;
        file.write(bytes)?;
        self.written.push((component, file.finish()?));
        Ok(())
    }

    /// Writes the checksums, and the list when all else is durable. Gives the bytes of all.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<u64, SstableError> {
        let mut checksums = Checksums::default();
        let is_written = |component| self.written.iter().any(|(other, _)| *other == component);
        assert!(is_written(Component::Statistics), "a file without statistics can not be read");
        let covered = self.written.iter().filter(|(component, _)| COVERED.contains(component));
        covered.for_each(|(component, of)| checksums.add(*component, of.clone()));
        let mut present: Vec<Component> = self.written.iter().map(|(component, _)| *component).collect();
        present.extend([Component::Data, Component::Checksums]);
        let list = toc::component_list(&present);
        checksums.add(Component::Toc, FileChecksums::of(list.as_bytes()));
        self.write(Component::Checksums, &checksums.to_bytes())?;
        self.disk.sync_dir(&self.descriptor.directory)?;
        self.write(Component::Toc, list.as_bytes())?;
        self.disk.sync_dir(&self.descriptor.directory)?;
        Ok(self.written.iter().map(|(_, of)| of.file_bytes).sum())
    }
}
