//! Asking the management port.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use server::ManagementToken;

use super::NodetoolError;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long an answer may take that needs no work but looking.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Acts that are done at once. Others, such as a compaction, take what they take.
const QUICK_ACTS: [&str; 5] = [
    "/v1/backups",
    "/v1/compactions/auto",
    "/v1/compactions/stop",
    "/v1/compactions/throughput",
    "/v1/timeouts",
];

/// A node's management port.
pub(crate) struct Management {
    address: String,
    agent: ureq::Agent,
    answer_max: Duration,
    /// The header `Authorization`, when the node asks for a token.
    authorization: Option<String>,
}

impl Management {
    /// Connects with the first request.
    pub(crate) fn new(address: String, token: Option<&ManagementToken>) -> Management {
        let config = ureq::Agent::config_builder()
            // Errors come with a body that says why.
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_MAX))
            // A proxy for the web is none for this, and no place for a token.
            .proxy(None)
            .build();
        let authorization = token.map(|token| format!("Bearer {}", token.as_str()));
        Management { address, agent: config.into(), answer_max: ANSWER_MAX, authorization }
    }

    /// `GET`, with the answer as one of the types of `management`.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, NodetoolError> {
        let mut request = self.agent.get(self.address_of(path));
        for (name, value) in query {
            request = request.query(*name, *value);
        }
        let request = request.config().timeout_global(Some(self.answer_max)).build();
        let value = self.answer(self.with_token(request).call())?;
        serde_json::from_value(value)
            .map_err(|source| NodetoolError::Answer { path: path.to_owned(), source })
    }

    /// `POST` of something that is done at once and is said by parameters.
    pub(crate) fn order(&self, path: &str, query: &[(&str, &str)]) -> Result<(), NodetoolError> {
        let mut request = self.agent.post(self.address_of(path));
        for (name, value) in query {
            request = request.query(*name, *value);
        }
        let request = request.config().timeout_global(Some(self.answer_max)).build();
        self.answer(self.with_token(request).send_empty()).map(|_| ())
    }

    /// `POST`; what it answers besides success does not matter to us.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(), NodetoolError> {
        self.ask::<Value>(path, body).map(|_| ())
    }

    /// `POST`, with the answer as one of the types of `management`.
    pub(super) fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, NodetoolError> {
        let is_quick = QUICK_ACTS.contains(&path);
        if !is_quick {
            // Nothing limits the wait for work to end; so a node that answers nobody is found out before it begins.
            self.get::<Value>("/v1/version", &[])?;
        }
        let request = self.agent.post(self.address_of(path));
        let request = request.config().timeout_global(is_quick.then_some(self.answer_max)).build();
        let value = self.answer(self.with_token(request).send_json(body))?;
        serde_json::from_value(value)
            .map_err(|source| NodetoolError::Answer { path: path.to_owned(), source })
    }

    fn address_of(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn with_token<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }

    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, NodetoolError> {
        let mut response = answer.map_err(|error| self.failed(&error))?;
        let text = response.body_mut().read_to_string().map_err(|error| self.failed(&error))?;
        let value = serde_json::from_str::<Value>(&text);
        let reason = || match &value {
            Ok(Value::Object(fields)) => {
                fields.get("error").and_then(Value::as_str).unwrap_or(&text).to_owned()
            }
            _ => text.clone(),
        };
        match response.status().as_u16() {
            200..=299 => value.map_err(|source| NodetoolError::Answer { path: self.address.clone(), source }),
            400 => Err(NodetoolError::BadUse(reason())),
            404 => Err(NodetoolError::Absent(reason())),
            401 | 403 => Err(self.unreached(reason())),
            _ => Err(NodetoolError::Failed(reason())),
        }
    }

    fn failed(&self, error: &ureq::Error) -> NodetoolError {
        match error {
            ureq::Error::Timeout(_) => self.unreached("it does not answer in time".to_owned()),
            error => self.unreached(error.to_string()),
        }
    }

    fn unreached(&self, reason: String) -> NodetoolError {
        NodetoolError::Connect { address: self.address.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A node without a free descriptor once let `nodetool` wait for ever: the kernel connects, nobody answers.
    #[test]
    fn a_node_that_does_not_answer_is_not_waited_for() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let management = Management::new(address.clone(), None);
        let management = Management { answer_max: Duration::from_millis(50), ..management };
        let expected = format!("Failed to connect to '{address}' - it does not answer in time.");
        let told = |outcome: Result<(), NodetoolError>| outcome.unwrap_err().to_string();
        assert_eq!(told(management.get::<Value>("/v1/info", &[]).map(|_| ())), expected);
        assert_eq!(told(management.post("/v1/backups", &json!({"enabled": true}))), expected);
        assert_eq!(
            told(management.post("/v1/compact", &json!({}))),
            expected,
            "before the work is asked for"
        );
    }
}
