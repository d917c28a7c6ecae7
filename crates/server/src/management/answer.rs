//! How the port answers: a JSON object, or one that says what was wrong.

use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use management::Refused;
use storage::{StorageError, TableError};

/// What a handler gives.
pub(super) type Answer<T> = Result<Json<T>, Refusal>;

/// Why a request was not carried out.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Refusal { status, message: message.into() }
    }

    /// A parameter is wrong.
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, message)
    }

    /// Whoever asks did not say who it is.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::UNAUTHORIZED, message)
    }

    /// Not for whoever asks.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::FORBIDDEN, message)
    }

    /// There is no such keyspace, table or path.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, message)
    }

    /// The path is there, the method is not.
    pub(super) fn other_method() -> Self {
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method")
    }

    /// Not while the node is as it is.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::CONFLICT, message)
    }

    /// The body has more bytes than this.
    pub(super) fn too_large(body_bytes_max: usize) -> Self {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {body_bytes_max} bytes"))
    }

    /// The body is written in another form.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// It did not work out, through no fault of whoever asks.
    pub(super) fn failed(error: &impl std::fmt::Display) -> Self {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }

    /// Too many ask at once.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Table(error) => error.into(),
            StorageError::SnapshotName { .. } => Refusal::wrong(error.to_string()),
            _ => Refusal::failed(&error),
        }
    }
}

impl From<TableError> for Refusal {
    fn from(error: TableError) -> Self {
        match error {
            TableError::SnapshotExists { .. } => Refusal::wrong(error.to_string()),
            _ => Refusal::failed(&error),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut answer = (self.status, Json(Refused { error: self.message })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
