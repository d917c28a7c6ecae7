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
    /// Where other nodes would come in.
    #[error("listen for other nodes on {address} (options `listen_address` and `storage_port`): {source}")]
    Internode { address: std::net::SocketAddr, source: std::io::Error },
    #[error("certificates for talks with other nodes (options `internode_…_file`): {0}")]
    Certificates(tls::TlsError),
    #[error("this directory is that of a member of a ring: `listen_address` says where others reach it")]
    NotAlone,
    /// In Cassandra's words.
    #[error(
        "Saved cluster name {saved} != configured name {configured}: this directory is that of a member of {saved}"
    )]
    ClusterName { saved: String, configured: String },
    #[error("keep the name of the cluster: {0}")]
    KeepClusterName(#[from] storage::StateError),
    #[error("start the thread of the ring: {0}")]
    RingThread(std::io::Error),
    #[error("{0}")]
    Ring(String),
    #[error("finish batches of an earlier run: {0}")]
    Batches(coordinator::CoordinatorError),
}
