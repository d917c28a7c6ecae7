//! What every crate may use: small helpers that know nothing of databases.

pub mod brief;
pub mod cursor;
pub mod histogram;
pub mod id_map;
pub mod index_set;
pub mod prefetch;
pub mod ticks;
pub mod vint;
pub mod weighed_lru;
