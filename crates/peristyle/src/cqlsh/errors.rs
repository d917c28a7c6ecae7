//! Errors in the words of cqlsh, which scripts look for.

use std::error::Error;

use client::ClientError;
use protocol::{ErrorKind, ErrorResponse};

/// `InvalidRequest: Error from server: code=2200 [Invalid query] message="…"`, or for those errors that
/// the Python driver hands on bare, `SyntaxException: …`.
pub(crate) fn of_server(error: &ErrorResponse) -> String {
    let (class, summary) = names(&error.kind);
    let message = &error.message;
    match &error.kind {
        ErrorKind::AlreadyExists { keyspace, table } if table.is_empty() => {
            format!("{class}: Keyspace '{keyspace}' already exists")
        }
        ErrorKind::AlreadyExists { keyspace, table } => {
            format!("{class}: Table '{keyspace}.{table}' already exists")
        }
        ErrorKind::Invalid
        | ErrorKind::Unauthorized
        | ErrorKind::Unavailable { .. }
        | ErrorKind::WriteTimeout { .. }
        | ErrorKind::ReadTimeout { .. }
        | ErrorKind::ReadFailure { .. }
        | ErrorKind::WriteFailure { .. }
        | ErrorKind::FunctionFailure { .. } => {
            format!(
                "{class}: Error from server: code={:04x} [{summary}] message=\"{message}\"",
                error.kind.code()
            )
        }
        _ => format!("{class}: {message}"),
    }
}

/// Any error of a request.
pub(crate) fn of_client(error: &ClientError) -> String {
    match error {
        ClientError::Server(error) => of_server(error),
        ClientError::Broken(source) if is_timeout(source) => {
            "OperationTimedOut: the server did not answer in time. See --request-timeout.".to_owned()
        }
        error => format!("ConnectionError: {}", with_causes(error)),
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// An error and what caused it, joined by colons; a cause that an error has told of itself is not told again.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let reason = cause.to_string();
        if !text.ends_with(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        source = cause.source();
    }
    text
}

/// The Python driver's class and summary of an error code.
fn names(kind: &ErrorKind) -> (&'static str, &'static str) {
    const TIMED_OUT: &str = "Coordinator node timed out waiting for replica nodes' responses";
    match kind {
        ErrorKind::Server => ("ServerError", "Server error"),
        ErrorKind::Protocol => ("ProtocolException", "Protocol error"),
        ErrorKind::BadCredentials => ("BadCredentials", "Bad credentials"),
        ErrorKind::Unavailable { .. } => ("Unavailable", "Unavailable exception"),
        ErrorKind::Overloaded => ("OverloadedErrorMessage", "Coordinator node overloaded"),
        ErrorKind::IsBootstrapping => ("IsBootstrappingErrorMessage", "Coordinator node is bootstrapping"),
        ErrorKind::Truncate => ("TruncateError", "Error during truncate"),
        ErrorKind::WriteTimeout { .. } => ("WriteTimeout", TIMED_OUT),
        ErrorKind::ReadTimeout { .. } => ("ReadTimeout", TIMED_OUT),
        ErrorKind::ReadFailure { .. } => ("ReadFailure", "Replica(s) failed to execute read"),
        ErrorKind::FunctionFailure { .. } => ("FunctionFailure", "User Defined Function failure"),
        ErrorKind::WriteFailure { .. } => ("WriteFailure", "Replica(s) failed to execute write"),
        ErrorKind::CdcWriteFailure => {
            ("CDCWriteException", "Failed to execute write due to CDC space exhaustion.")
        }
        ErrorKind::CasWriteUnknown { .. } => ("CASWriteUnknown", "CAS write result is unknown"),
        ErrorKind::Syntax => ("SyntaxException", "Syntax error in CQL query"),
        ErrorKind::Unauthorized => ("Unauthorized", "Unauthorized"),
        ErrorKind::Invalid => ("InvalidRequest", "Invalid query"),
        ErrorKind::Config => ("ConfigurationException", "Query invalid because of configuration issue"),
        ErrorKind::AlreadyExists { .. } => ("AlreadyExists", "Item already exists"),
        ErrorKind::Unprepared { .. } => {
            ("PreparedQueryNotFound", "Matching prepared statement not found on this node")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lock x/LOCK: would block: lock x/LOCK: would block` was how a start failed.
    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        enum Layer {
            #[error("{act}: {source}")]
            Telling { act: &'static str, source: Box<dyn Error> },
            #[error("serve")]
            Silent(#[source] Box<dyn Error>),
        }
        let root = || Box::new(std::io::Error::other("would block"));
        let inner = || Box::new(Layer::Telling { act: "lock", source: root() });
        let telling = Layer::Telling { act: "open", source: inner() };
        assert_eq!(with_causes(&telling), "open: lock: would block");
        assert_eq!(with_causes(&Layer::Silent(Box::new(telling))), "serve: open: lock: would block");
        let server = ClientError::Server(ErrorResponse::invalid("Keyspace 'nope' does not exist"));
        assert_eq!(with_causes(&server), "Keyspace 'nope' does not exist");
    }

    #[test]
    fn a_server_error_looks_as_in_cqlsh() {
        let error = ErrorResponse::invalid("table nope does not exist");
        let expected = "InvalidRequest: Error from server: code=2200 [Invalid query] message=\"table nope does not exist\"";
        assert_eq!(of_server(&error), expected);
    }
}
