//! Why a node can not be put together, or did not end well.

/// Why a node can not be put together, or did not end well.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum AssemblyError {
    #[error("open data directory: {0}")]
    Storage(#[from] storage::StorageError),
    #[error("open metadata log: {0}")]
    Metadata(#[from] cluster::MetadataError),
    #[error("define system tables: {0}")]
    SystemTables(String),
    #[error("finish batches of an earlier run: {0}")]
    Batches(coordinator::CoordinatorError),
}
