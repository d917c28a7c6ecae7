//! What a node can be told: `peristyle.toml` and the flags of `peristyle serve`.
//!
//! There is one table of options ([`OPTIONS`]). A line of the file and a flag go through the same
//! entry of it, so that they cannot differ; `docs/configuration.md` is rendered from it, so that
//! it cannot be forgotten. Defaults need no file. Reading the file from disk is up to the caller.

mod choices;
mod config;
mod document;
mod error;
mod handoff;
mod internode;
mod memory;
mod nearest;
mod options;
mod quantity;
mod rackdc;
mod words;

pub use choices::{
    CommitFailurePolicy, CommitlogSync, DiskAccess, DiskFailurePolicy, InternodeCompression,
    InternodeEncryption,
};
pub use config::Config;
pub use document::render_document;
pub use error::{ConfigError, Place};
pub use handoff::HandoffConfig;
pub use internode::Seed;
pub use options::{OPTIONS, OptionSpec};
