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

/// Between which nodes of a ring what is said is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternodeEncryption {
    /// None that do not have to for the other one's sake.
    None,
    /// Those of different racks or data centres.
    Rack,
    /// Those of different data centres.
    Dc,
    /// All.
    All,
}

/// What nodes compress of what they send each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternodeCompression {
    /// Nothing.
    None,
    /// Everything.
    All,
}

pub(crate) fn parse_disk_access(text: &str) -> Result<DiskAccess, String> {
    match text.trim() {
        "auto" => Ok(DiskAccess::Auto),
        "io_uring" => Ok(DiskAccess::IoUring),
        "pread" => Ok(DiskAccess::Pread),
        "buffered" => Ok(DiskAccess::Buffered),
        _ => Err("neither auto, io_uring, pread nor buffered".to_owned()),
    }
}

pub(crate) fn parse_disk_failure_policy(text: &str) -> Result<DiskFailurePolicy, String> {
    match text.trim() {
        "stop" => Ok(DiskFailurePolicy::Stop),
        "stop_paranoid" => Ok(DiskFailurePolicy::StopParanoid),
        "best_effort" => Ok(DiskFailurePolicy::BestEffort),
        "ignore" => Ok(DiskFailurePolicy::Ignore),
        "die" => Ok(DiskFailurePolicy::Die),
        _ => Err("neither stop, stop_paranoid, best_effort, ignore nor die".to_owned()),
    }
}

pub(crate) fn parse_commit_failure_policy(text: &str) -> Result<CommitFailurePolicy, String> {
    match text.trim() {
        "stop" => Ok(CommitFailurePolicy::Stop),
        "stop_commit" => Ok(CommitFailurePolicy::StopCommit),
        "ignore" => Ok(CommitFailurePolicy::Ignore),
        "die" => Ok(CommitFailurePolicy::Die),
        _ => Err("neither stop, stop_commit, ignore nor die".to_owned()),
    }
}

pub(crate) fn parse_sync(text: &str) -> Result<CommitlogSync, String> {
    match text.trim() {
        "group" => Ok(CommitlogSync::Group),
        "periodic" => Ok(CommitlogSync::Periodic),
        "batch" => Ok(CommitlogSync::Batch),
        _ => Err("neither group, periodic nor batch".to_owned()),
    }
}
