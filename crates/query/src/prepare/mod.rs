//! Prepared statements: their ids, their texts over all shards, their plans on this one.

mod cache;
mod planned;
mod texts;

pub(crate) use cache::{PlanCache, Prepared};
pub(crate) use planned::{Body, Planned, is_qualified, plan, statement_id};
pub(crate) use texts::PreparedText;
pub use texts::{PreparedFigures, PreparedLimits, PreparedTexts};
