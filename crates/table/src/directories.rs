//! Where table files lie: in which directories, and in which folder of these those of a table.
//!
//! ```text
//!   <directory>/<keyspace>/<table>-<table id>/da-<file id>-bti-<component>
//!                                            /snapshots/… /backups/… /quarantine/…
//! ```

use std::path::{Path, PathBuf};

use runtime::Disk;
use schema::Table;
use sstable::{Component, Descriptor, SstableError};
use uuid::Uuid;

/// The directories of a node's table files.
#[derive(Clone, Debug)]
pub struct TableDirectories {
    /// Where new files go. Never empty.
    written: Vec<PathBuf>,
    /// The one in the node's own directory. Files may lie there also when others were named later.
    own: PathBuf,
}

impl TableDirectories {
    /// Those that are named, or the node's own when there are none.
    pub fn new(named: &[PathBuf], own: PathBuf) -> Self {
        let written = if named.is_empty() { vec![own.clone()] } else { distinct(named) };
        TableDirectories { written, own }
    }

    /// Where new table files go; at least one.
    pub fn written(&self) -> &[PathBuf] {
        &self.written
    }

    /// The one in the node's own directory.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Where table files may lie.
    pub fn all(&self) -> Vec<PathBuf> {
        let mut all = self.written.clone();
        all.push(self.own.clone());
        distinct(&all)
    }

    /// Where a table's files lie in the first of the directories.
    pub(crate) fn table(&self, table: &Table) -> PathBuf {
        TableDirectories::table_in(&self.written[0], table)
    }

    /// Where a table's files may lie.
    pub(crate) fn tables(&self, table: &Table) -> Vec<PathBuf> {
        self.all().iter().map(|data| TableDirectories::table_in(data, table)).collect()
    }

    /// Where a table file lies; where it would in the first directory, when it is in none.
    ///
    /// # Errors
    /// A directory can not be looked into and no other has it, or it is of a version that is not read.
    pub fn locate(&self, disk: &dyn Disk, table: &Table, id: Uuid) -> Result<Descriptor, SstableError> {
        let mut failure = None;
        for directory in self.tables(table) {
            match Descriptor::locate(disk, &directory, id) {
                Ok(found) => {
                    let is_there = |component| disk.exists(&found.path(component));
                    if is_there(Component::Toc)? || is_there(Component::Data)? {
                        return Ok(found);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or_else(|| Ok(Descriptor::new(self.table(table), id)), Err)
    }

    /// Where a table's files lie in a directory, as in Cassandra: the id without dashes after the name.
    pub(crate) fn table_in(data: &Path, table: &Table) -> PathBuf {
        data.join(table.keyspace()).join(format!("{}-{}", table.name(), table.id().0.simple()))
    }
}

/// Paths without those that are named twice.
fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut distinct: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !distinct.contains(path) {
            distinct.push(path.clone());
        }
    }
    distinct
}
