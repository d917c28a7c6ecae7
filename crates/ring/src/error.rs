//! What makes no ring.

use types::Token;
use uuid::Uuid;

/// Nodes, tokens or options of which no ring can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A grid is neither so coarse nor so fine.
    #[error("a grid of 2^{slot_bits} slots is not possible, only of 2^12 to 2^16")]
    SlotBits {
        /// What was asked for.
        slot_bits: u8,
    },
    /// A ring has one node at least.
    #[error("a ring needs a node")]
    NoNodes,
    /// A node that holds no token is a member perhaps, but not in the ring.
    #[error("node {host_id} has no token")]
    NoTokens {
        /// That node.
        host_id: Uuid,
    },
    /// Two nodes say to be one.
    #[error("node {host_id} is in the ring twice")]
    NodeTwice {
        /// That node.
        host_id: Uuid,
    },
    /// A token has one owner.
    #[error("token {} belongs to {first} and to {second}", token.0)]
    TokenTwice {
        /// That token.
        token: Token,
        /// Who has it.
        first: Uuid,
        /// Who has it too; the same node, when its list has the token twice.
        second: Uuid,
    },
    /// Tokens lie on the grid; see [`crate::Grid`] for the reason.
    #[error(
        "token {} is not the last one of a slot of 2^{slot_bits}; the nearest that is: {}",
        token.0, nearest.0
    )]
    OffGrid {
        /// That token.
        token: Token,
        /// The grid, as the logarithm of its slots.
        slot_bits: u8,
        /// What an operator may write instead.
        nearest: Token,
    },
    /// There are not so many slots.
    #[error("{token_count} tokens do not fit on a grid of {slot_count} slots")]
    TooManyTokens {
        /// How many there are, or would be.
        token_count: usize,
        /// How many there is room for.
        slot_count: usize,
    },
    /// Somebody asks for a node that is not in the ring.
    #[error("node {host_id} is not in the ring")]
    UnknownNode {
        /// That node.
        host_id: Uuid,
    },
    /// A strategy that we do not have.
    #[error("replication strategy {class} is not known")]
    UnknownStrategy {
        /// Its class, as the schema names it.
        class: String,
    },
    /// A replication factor that is no number, or not there.
    #[error("replication option {option} is {text:?}, not a number of replicas")]
    BadFactor {
        /// The option, which is a data centre's name for `NetworkTopologyStrategy`.
        option: String,
        /// Its text.
        text: String,
    },
}
