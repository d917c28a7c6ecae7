//! Table options: what `WITH` can set, checked and kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Options of a table. Defaults are Cassandra 5's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named and documented as in CREATE TABLE")]
#[serde(default)]
pub struct TableOptions {
    pub additional_write_policy: SpeculativeRetry,
    pub allow_auto_snapshot: bool,
    /// Kept as the bits of the fraction, so that options compare.
    pub bloom_filter_fp_chance: Fraction,
    pub caching: Caching,
    pub cdc: bool,
    pub comment: String,
    pub compaction: CompactionOptions,
    pub compression: CompressionOptions,
    pub memtable: String,
    pub crc_check_chance: Fraction,
    pub default_time_to_live: u32,
    pub extensions: BTreeMap<String, Vec<u8>>,
    pub gc_grace_seconds: u32,
    pub incremental_backups: bool,
    pub max_index_interval: u32,
    pub memtable_flush_period_in_ms: u32,
    pub min_index_interval: u32,
    pub read_repair: String,
    pub speculative_retry: SpeculativeRetry,
}

/// A number between 0 and 1 that compares by its bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fraction(pub f64);

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Fraction {}

/// `speculative_retry` and `additional_write_policy`, in the canonical text (`99p`, `50.0ms`, `ALWAYS`, `NEVER`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpeculativeRetry(pub String);

/// `caching`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caching {
    /// `ALL` or `NONE`.
    pub keys: String,
    /// `ALL`, `NONE` or a count.
    pub rows_per_partition: String,
    /// What comes into memory after a start. Ours.
    #[serde(default, skip_serializing_if = "Prefetch::is_none")]
    pub prefetch: Prefetch,
}

impl Caching {
    /// The map as it is described; what Cassandra does not know is there if it says something.
    pub fn entries(&self) -> BTreeMap<String, String> {
        let mut entries = BTreeMap::from([
            ("keys".to_owned(), self.keys.clone()),
            ("rows_per_partition".to_owned(), self.rows_per_partition.clone()),
        ]);
        if !self.prefetch.is_none() {
            entries.insert("prefetch".to_owned(), self.prefetch.text().to_owned());
        }
        entries
    }
}

/// `prefetch` in `caching`: what of a table comes into memory after a start, before anybody asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// What was there when the node stopped, and had been asked for again.
    Hot,
    /// As much as there is room for.
    All,
}

impl Prefetch {
    /// All there are.
    pub const ALL: [Prefetch; 3] = [Prefetch::None, Prefetch::Hot, Prefetch::All];

    /// As it stands in `caching`.
    pub fn text(self) -> &'static str {
        match self {
            Prefetch::None => "NONE",
            Prefetch::Hot => "HOT",
            Prefetch::All => "ALL",
        }
    }

    /// Is it nothing?
    pub fn is_none(&self) -> bool {
        *self == Prefetch::None
    }
}

/// `compaction`: the strategy's full class name, and its options as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionOptions {
    /// Full class name, e.g. `org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy`.
    pub class: String,
    /// Everything but the class, already checked.
    pub options: BTreeMap<String, String>,
}

/// `compression`: none, or a compressor with its chunk length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressionOptions {
    /// Full class name (`org.apache.cassandra.io.compress.LZ4Compressor`); `None` when `enabled: false`.
    pub class: Option<String>,
    /// How long chunks are.
    #[serde(rename = "chunk_bytes")]
    pub chunk_length: ChunkLength,
    /// Compressor options such as `compression_level`, and `min_compress_ratio`, as text.
    pub options: BTreeMap<String, String>,
}

/// `chunk_length_in_kb`: a length, or `auto`, which leaves it to the table's measured reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ChunkLengthForm", into = "ChunkLengthForm")]
pub enum ChunkLength {
    /// Uncompressed bytes per chunk, a power of two.
    Fixed(u32),
    /// What storage chooses, each time it writes a file.
    Auto,
}

impl ChunkLength {
    /// Where nothing is written, and of `auto` before anything is known.
    pub const DEFAULT_BYTES: u32 = 16 * 1024;
    /// The word for [`ChunkLength::Auto`].
    pub const AUTO: &str = "auto";

    /// Uncompressed bytes per chunk, for who knows nothing of the table's reads.
    pub fn bytes(self) -> u32 {
        match self {
            ChunkLength::Fixed(bytes) => bytes,
            ChunkLength::Auto => Self::DEFAULT_BYTES,
        }
    }

    /// As it stands in `compression`.
    pub fn text(self) -> String {
        match self {
            ChunkLength::Fixed(bytes) => (bytes / 1024).to_string(),
            ChunkLength::Auto => Self::AUTO.to_owned(),
        }
    }
}

/// How a [`ChunkLength`] is kept: a number, as before there was `auto`, or that word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ChunkLengthForm {
    Bytes(u32),
    Word(AutoWord),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AutoWord {
    Auto,
}

impl From<ChunkLengthForm> for ChunkLength {
    fn from(form: ChunkLengthForm) -> Self {
        match form {
            ChunkLengthForm::Bytes(bytes) => ChunkLength::Fixed(bytes),
            ChunkLengthForm::Word(AutoWord::Auto) => ChunkLength::Auto,
        }
    }
}

impl From<ChunkLength> for ChunkLengthForm {
    fn from(length: ChunkLength) -> Self {
        match length {
            ChunkLength::Fixed(bytes) => ChunkLengthForm::Bytes(bytes),
            ChunkLength::Auto => ChunkLengthForm::Word(AutoWord::Auto),
        }
    }
}

impl Default for CompressionOptions {
    fn default() -> Self {
        CompressionOptions {
            class: Some("org.apache.cassandra.io.compress.LZ4Compressor".into()),
            chunk_length: ChunkLength::Fixed(ChunkLength::DEFAULT_BYTES),
            options: BTreeMap::new(),
        }
    }
}

impl Default for CompactionOptions {
    fn default() -> Self {
        CompactionOptions {
            class: "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy".into(),
            options: [("max_threshold".into(), "32".into()), ("min_threshold".into(), "4".into())].into(),
        }
    }
}

impl TableOptions {
    /// Is what a read finds different on its replicas made equal before it is answered? If not, each write of one
    /// partition stays atomic, and a later read may see less than an earlier one.
    pub fn repairs_reads(&self) -> bool {
        self.read_repair != "NONE"
    }
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            additional_write_policy: SpeculativeRetry("99p".into()),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: Fraction(0.01),
            caching: Caching {
                keys: "ALL".into(),
                rows_per_partition: "NONE".into(),
                prefetch: Prefetch::None,
            },
            cdc: false,
            comment: String::new(),
            compaction: CompactionOptions::default(),
            compression: CompressionOptions::default(),
            memtable: "default".into(),
            crc_check_chance: Fraction(1.0),
            default_time_to_live: 0,
            extensions: BTreeMap::new(),
            gc_grace_seconds: 864_000,
            incremental_backups: true,
            max_index_interval: 2048,
            memtable_flush_period_in_ms: 0,
            min_index_interval: 128,
            read_repair: "BLOCKING".into(),
            speculative_retry: SpeculativeRetry("99p".into()),
        }
    }
}
