//! What became of requests to other nodes, by whom they were to and what they were about.

use std::sync::Arc;

use messaging::MessageCounts;
use uuid::Uuid;

/// What requests are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Rows: from shard to shard.
    Replica,
    /// Agreement and membership.
    Agreement,
}

/// What became of requests of one thread to one node.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What they were about.
    pub about: About,
    /// Whom they were to; `None` where that was to be found out.
    pub host_id: Option<Uuid>,
    /// Counts that go on.
    pub counts: Arc<MessageCounts>,
}

/// What became of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTotals {
    /// Neither answered nor lost.
    pub pending: u64,
    /// Answered.
    pub answered: u64,
    /// Not sent, declined, or in doubt.
    pub lost: u64,
}

impl<'c> FromIterator<&'c Counted> for MessageTotals {
    fn from_iter<I: IntoIterator<Item = &'c Counted>>(counted: I) -> MessageTotals {
        counted.into_iter().fold(MessageTotals::default(), |totals, Counted { counts, .. }| MessageTotals {
            pending: totals.pending + counts.pending(),
            answered: totals.answered + counts.answered(),
            lost: totals.lost + counts.lost(),
        })
    }
}
