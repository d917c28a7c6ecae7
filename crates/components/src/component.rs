//! The files that together are one table file.

use std::fmt;

/// One file of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// Partitions and rows, compressed by chunks.
    Data,
    /// Trie over the partition keys.
    Partitions,
    /// Tries over the rows of large partitions.
    Rows,
    /// Partition keys and blocks of rows of large partitions, of the format `big`.
    Index,
    /// Some keys of Index, to be held in memory; of the format `big`.
    Summary,
    /// Bloom filter of the partition keys.
    Filter,
    /// What is known of the whole: header, ranges, histograms.
    Statistics,
    /// Where each compressed chunk is; only when Data is compressed.
    CompressionInfo,
    /// Checksums of Data's chunks; only when Data is not compressed.
    Crc,
    /// Checksum of the whole of Data.
    Digest,
    /// Checksums of all components but Data, Statistics and itself; ours, Cassandra ignores it.
    Checksums,
    /// The list of components: written last, so that a table file without one is unfinished.
    Toc,
}

impl Component {
    /// Every component, in the order in which they are deleted: the list first.
    pub const ALL: [Component; 12] = [
        Component::Toc,
        Component::Data,
        Component::Partitions,
        Component::Rows,
        Component::Index,
        Component::Summary,
        Component::Filter,
        Component::Statistics,
        Component::CompressionInfo,
        Component::Crc,
        Component::Digest,
        Component::Checksums,
    ];

    /// The last part of its file name.
    pub fn file_suffix(self) -> &'static str {
        match self {
            Component::Data => "Data.db",
            Component::Partitions => "Partitions.db",
            Component::Rows => "Rows.db",
            Component::Index => "Index.db",
            Component::Summary => "Summary.db",
            Component::Filter => "Filter.db",
            Component::Statistics => "Statistics.db",
            Component::CompressionInfo => "CompressionInfo.db",
            Component::Crc => "CRC.db",
            Component::Digest => "Digest.crc32",
            Component::Checksums => "Checksums.db",
            Component::Toc => "TOC.txt",
        }
    }

    /// The component of a file name's last part.
    pub fn from_file_suffix(suffix: &str) -> Option<Component> {
        Component::ALL.into_iter().find(|component| component.file_suffix() == suffix)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file_suffix())
    }
}
