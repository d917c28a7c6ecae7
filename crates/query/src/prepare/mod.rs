//! Prepared statements: their ids, their texts over all shards, their plans on this one.

mod texts;

pub use texts::PreparedTexts;
