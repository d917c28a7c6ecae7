//! What options choose from that have a word for each choice.

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitlogSync {
    /// Once it is on disk, by a sync that all who wait share.
    Group,
    /// At once; a sync follows.
    Periodic,
    /// Once it is on disk, by a sync started at once.
    Batch,
}

/// How rows that are not in memory are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAccess {
    /// The best that is possible.
    Auto,
    /// Past the page cache, through io_uring.
    IoUring,
    /// Past the page cache, by threads.
    Pread,
    /// Through the page cache, by threads.
    Buffered,
}

/// What happens when table files or their directories fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailurePolicy {
    /// Clients are served no more.
    Stop,
    /// Nor with a single damaged file.
    StopParanoid,
    /// What failed is left out.
    BestEffort,
    /// Requests fail.
    Ignore,
    /// The process ends.
    Die,
}

/// What happens when the commit log fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFailurePolicy {
    /// Clients are served no more.
    Stop,
    /// Writes are refused.
    StopCommit,
    /// Writes fail, and the log goes on when it can.
    Ignore,
    /// The process ends.
    Die,
}

/// What nodes compress of what they send each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternodeCompression {
    /// Nothing.
    None,
    /// Everything.
    All,
}
