//! What can go wrong in the lab, in words for whoever measures.

use std::io;

use client::ClientError;

use crate::topology::NodesError;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A node can not be talked to, or refuses.
    #[error("talk to {node}")]
    Node {
        /// Its address.
        node: String,
        /// Why.
        source: Box<ClientError>,
    },
    /// What a node says of its cluster makes no sense to us.
    #[error("learn from {node} which nodes there are")]
    Nodes {
        /// Its address.
        node: String,
        /// Why.
        source: Box<NodesError>,
    },
    /// A statement of the workload is refused.
    #[error("the node refuses `{statement}`")]
    Statement {
        /// What was asked.
        statement: String,
        /// What the node says.
        source: Box<ClientError>,
    },
    /// A connection broke while it was under load.
    #[error("a connection to {node} broke under load")]
    Broken {
        /// Its address.
        node: String,
        /// Why.
        source: io::Error,
    },
    /// The bytes that a node sends make no sense.
    #[error("the answer of {node} is malformed: {reason}")]
    Malformed {
        /// Its address.
        node: String,
        /// Why.
        reason: String,
    },
    /// Rows can not be loaded, or counters not be read.
    #[error("{count} rows can not be loaded or read: {message}")]
    Load {
        /// How many were refused.
        count: u64,
        /// What the node said to one of them.
        message: String,
    },
    /// A load or a trial was ended before it said anything.
    #[error("{reason}")]
    Ended {
        /// Why, in a sentence.
        reason: String,
    },
    /// A thread of the client has panicked, which is a defect of the lab.
    #[error("a thread of the client panicked")]
    Panicked,
    /// A thread or a timer of the client can not be had.
    #[error("set up the client")]
    Client(#[from] io::Error),
    /// A file can not be read or written.
    #[error("{act} {path}")]
    File {
        /// What was tried: `read`, `write`, `make the folder`.
        act: &'static str,
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file is no manifest or no results.
    #[error("{path} is not what the lab writes")]
    Format {
        /// Which.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
}
