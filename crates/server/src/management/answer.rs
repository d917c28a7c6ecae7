//! How the port answers: a JSON object, or one that says what was wrong.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use storage::StorageError;

/// What a handler gives.
pub(super) type Answer = Result<Json<Value>, Refusal>;

/// Why a request was not carried out.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    /// A parameter is wrong.
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Refusal { status: StatusCode::BAD_REQUEST, message: message.into() }
    }

    /// There is no such keyspace, table or path.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Refusal { status: StatusCode::NOT_FOUND, message: message.into() }
    }

    /// Not for whoever asks.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Refusal { status: StatusCode::FORBIDDEN, message: message.into() }
    }

    /// Not while the node is as it is.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Refusal { status: StatusCode::CONFLICT, message: message.into() }
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, message: error.to_string() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.message }))).into_response()
    }
}
