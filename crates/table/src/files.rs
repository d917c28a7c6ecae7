//! The files of a table: which count, what of them, and which can not be read.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use manifest::{Scopes, counts};
use rows::PartitionKey;
use runtime::{Plant, Plants};
use schema::Table;
use sstable::{KeyHash, TableFile};
use uuid::Uuid;

use crate::TableError;

/// The files of a table on a shard.
pub struct TableFiles {
    /// Files that count, an immutable value swapped whole.
    list: RefCell<Rc<Vec<Arc<TableFile>>>>,
    /// Of which files not all partitions count; entries of files that are gone do no harm.
    scopes: HashMap<Uuid, Scopes>,
    /// Files of the table that can not be read, in words. While there is one, reads that might
    /// need it fail: a row in it must not silently be missing.
    damage: RefCell<Vec<Damaged>>,
    /// Are reads answered without them?
    leaves_out_damage: bool,
    plants: Plants,
}

/// A table file that can not be read.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// Which.
    pub id: Uuid,
    /// Why, in words.
    pub reason: String,
}

impl TableFiles {
    /// `leaves_out_damage`: reads are answered without files that can not be read.
    pub(super) fn new(
        files: Vec<Arc<TableFile>>,
        scopes: HashMap<Uuid, Scopes>,
        damage: Vec<Damaged>,
        leaves_out_damage: bool,
        plants: Plants,
    ) -> Self {
        let (list, damage) = (RefCell::new(Rc::new(files)), RefCell::new(damage));
        TableFiles { list, scopes, damage, leaves_out_damage, plants }
    }

    /// Those that count at this moment. What is read by a client is read of [`TableFiles::for_reads`].
    #[inline]
    pub fn all(&self) -> Rc<Vec<Arc<TableFile>>> {
        Rc::clone(&self.list.borrow())
    }

    /// The same, looked at where they are: those in which reads look, whatever way they go.
    #[inline]
    pub fn for_reads(&self) -> Ref<'_, [Arc<TableFile>]> {
        Ref::map(self.list.borrow(), |files| {
            let is_one_passed_over = files.len() > 1 && self.plants.has(Plant::FilePassedOver);
            &files[usize::from(is_one_passed_over)..]
        })
    }

    /// Is it one of those that count?
    #[inline]
    pub fn has(&self, file: &Arc<TableFile>) -> bool {
        self.list.borrow().iter().any(|other| Arc::ptr_eq(other, file))
    }

    /// Memory that they hold as long as they are open.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes_of = |file: &Arc<TableFile>| usize::try_from(file.memory_bytes()).unwrap_or(usize::MAX);
        self.list.borrow().iter().map(bytes_of).fold(0, usize::saturating_add)
    }

    /// Has readers find others from here on.
    pub(super) fn replace(&self, files: Vec<Arc<TableFile>>) {
        // No test can break it: the manifest refuses to name a file twice.
        let ids: BTreeSet<Uuid> = files.iter().map(|file| file.descriptor().id).collect();
        assert_eq!(ids.len(), files.len(), "readers find each file once");
        *self.list.borrow_mut() = Rc::new(files);
    }

    /// What narrows a file.
    #[inline]
    pub fn scopes_of(&self, file: &TableFile) -> Option<Scopes> {
        self.scopes.get(&file.descriptor().id).cloned()
    }

    /// May a file hold anything of a partition that counts?
    #[inline]
    pub fn may_show(&self, file: &TableFile, key: &PartitionKey, hash: KeyHash) -> bool {
        let scopes = self.scopes.get(&file.descriptor().id);
        scopes.is_none_or(|scopes| counts(scopes, key.token)) && file.may_contain(key, hash)
    }

    /// Files that can not be read.
    pub(super) fn damage(&self) -> Vec<Damaged> {
        self.damage.borrow().clone()
    }

    /// Can any not be read?
    pub(super) fn is_damaged(&self) -> bool {
        !self.damage.borrow().is_empty()
    }

    /// Takes one that is not to be read any more out of those that count; `None` when it is not among them.
    pub(super) fn take_out(&self, id: Uuid, reason: String) -> Option<Arc<TableFile>> {
        let files = self.all();
        let (out, rest): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| file.descriptor().id == id);
        let file = out.into_iter().next()?;
        self.damage.borrow_mut().push(Damaged { id, reason });
        self.replace(rest);
        Some(file)
    }

    /// Takes it that one that could not be read is gone.
    pub(super) fn forget_damage(&self, id: Uuid) {
        self.damage.borrow_mut().retain(|other| other.id != id);
    }

    /// The same of all of them.
    pub(super) fn forget_all_damage(&self) {
        self.damage.borrow_mut().clear();
    }

    /// May reads be answered from those that count?
    ///
    /// # Errors
    /// Not while one of `table` can not be read.
    pub(super) fn check_readable(&self, table: &Table) -> Result<(), TableError> {
        match self.damage.borrow().first() {
            None => Ok(()),
            Some(_) if self.leaves_out_damage => Ok(()),
            Some(Damaged { reason, .. }) => {
                let table = format!("{}.{}", table.keyspace(), table.name());
                Err(TableError::Quarantined { table, reason: reason.clone() })
            }
        }
    }
}
