//! What a request brings: a JSON object as its body, or parameters in its path.
//!
//! The port does what it is told or says what it did not understand. A body in another form, a name that it does not
//! know or a list of nothing is never taken for a request without them, which on many paths means *everything*.

use axum::body::{Body as RawBody, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use types::Token;

use super::answer::Refusal;

/// What a path that needs nothing takes as its body: `{}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The object that a request must bring.
pub(super) struct Body<T>(pub(super) T);

/// The object that a request may bring; its default where the request has no body.
pub(super) struct OptionalBody<T>(pub(super) T);

/// The parameters in a request's path.
pub(super) struct Parameters<T>(pub(super) T);

/// A token as clients write it.
///
/// # Errors
/// It is none.
pub(super) fn token(text: &str) -> Result<Token, Refusal> {
    text.trim().parse().map(Token).map_err(|_| Refusal::wrong(format!("{text} is not a token")))
}

/// A request with all of its body in memory.
///
/// # Errors
/// The body is too large, does not come to its end, or belongs to a method that takes none.
pub(super) async fn whole(
    request: axum::http::Request<Incoming>,
    body_bytes_max: usize,
) -> Result<Request, Refusal> {
    let (parts, body) = request.map(RawBody::new).into_parts();
    let mut carrier = Request::new(body);
    DefaultBodyLimit::max(body_bytes_max).apply(&mut carrier);
    let bytes = Bytes::from_request(carrier, &()).await.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::too_large(body_bytes_max),
        _ => Refusal::wrong("the body does not come to its end"),
    })?;
    if !bytes.is_empty() && [Method::GET, Method::HEAD].contains(&parts.method) {
        return Err(Refusal::wrong("a GET takes no body"));
    }
    Ok(Request::from_parts(parts, bytes.into()))
}

/// Refuses parameters on paths that take none.
pub(super) async fn refuse_parameters(request: Request) -> Result<Request, Refusal> {
    match request.uri().query() {
        None | Some("") => Ok(request),
        Some(_) => Err(Refusal::wrong("this path takes no parameters")),
    }
}

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let given = object(request).await?;
        given.map(Body).ok_or_else(|| Refusal::wrong("this path needs a JSON object as its body"))
    }
}

impl<S: Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        Ok(OptionalBody(object(request).await?.unwrap_or_default()))
    }
}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let given = Query::try_from_uri(&parts.uri);
        given.map(|Query(given)| Parameters(given)).map_err(|error| Refusal::wrong(error.body_text()))
    }
}

/// The body as an object; `None` where there is no body at all.
async fn object<T: DeserializeOwned>(request: Request) -> Result<Option<T>, Refusal> {
    let is_json = says_json(request.headers());
    let bytes = Bytes::from_request(request, &()).await;
    let bytes = bytes.map_err(|rejection| Refusal::wrong(rejection.body_text()))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json {
        return Err(Refusal::unsupported("a body needs `Content-Type: application/json`"));
    }
    // The deserializer would take a list as an object, too, field by field.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::wrong("the body is not a JSON object"));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Refusal::wrong(format!("the body: {error}")))
}

fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
