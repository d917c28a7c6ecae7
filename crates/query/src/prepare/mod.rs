//! Prepared statements: their ids, their texts over all shards, their plans on this one.

mod cache;
mod parse;
mod planned;
mod texts;

pub(crate) use cache::{PlanCache, Prepared};
pub(crate) use parse::{Parsed, make_room_for_small, parse};
pub(crate) use planned::{Body, Planned, is_qualified, plan, statement_id};
pub(crate) use texts::PreparedText;
pub use texts::{PreparedFigures, PreparedLimits, PreparedTexts};
