//! What can go wrong between a tool and a server.

use std::io;

use protocol::{ErrorResponse, ProtocolError};

/// An error of a connection or of a request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("connect to {address}")]
    Connect {
        /// Where.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The connection broke; what was in flight may or may not have happened.
    #[error("the connection broke")]
    Broken(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection with {in_flight} requests in flight")]
    Closed {
        /// How many requests were not answered.
        in_flight: usize,
    },
    /// The server's bytes make no sense.
    #[error("the server's answer is malformed")]
    Malformed(#[from] ProtocolError),
    /// The server answered with an error.
    #[error("{0}")]
    Server(#[from] ErrorResponse),
    /// The server wants to know who we are and was not told.
    #[error("the server asks for authentication ({authenticator})")]
    Credentials {
        /// The class it named.
        authenticator: String,
    },
    /// The server answered something else than what was asked.
    #[error("expected {expected}, got {got}")]
    Unexpected {
        /// What would have made sense.
        expected: &'static str,
        /// What came, in short.
        got: String,
    },
    /// More requests in flight than allowed; receive one first.
    #[error("{in_flight_max} requests are in flight already")]
    TooManyInFlight {
        /// The bound.
        in_flight_max: usize,
    },
}

impl ClientError {
    /// The server's own error, if that is what it was.
    pub fn server(&self) -> Option<&ErrorResponse> {
        match self {
            ClientError::Server(error) => Some(error),
            _ => None,
        }
    }
}
