//! Asking the management port.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::NodetoolError;

/// A node's management port.
pub(super) struct Management {
    address: String,
    agent: ureq::Agent,
}

impl Management {
    /// Connects with the first request. There is no timeout: a compaction takes what it takes.
    pub(super) fn new(address: String) -> Management {
        // Errors come with a body that says why.
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        Management { address, agent: config.into() }
    }

    /// `GET`, with the answer as one of the shapes of `answer`.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, NodetoolError> {
        let mut request = self.agent.get(self.address_of(path));
        for (name, value) in query {
            request = request.query(*name, *value);
        }
        let value = self.answer(request.call())?;
        serde_json::from_value(value)
            .map_err(|source| NodetoolError::Answer { path: path.to_owned(), source })
    }

    /// `POST`; what it answers besides success does not matter to us.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(), NodetoolError> {
        self.answer(self.agent.post(self.address_of(path)).send_json(body)).map(|_| ())
    }

    /// `POST`, with the answer as one of the shapes of whoever asks.
    pub(super) fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, NodetoolError> {
        let value = self.answer(self.agent.post(self.address_of(path)).send_json(body))?;
        serde_json::from_value(value)
            .map_err(|source| NodetoolError::Answer { path: path.to_owned(), source })
    }

    fn address_of(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, NodetoolError> {
        let mut response = answer.map_err(|error| self.refused(&error))?;
        let text = response.body_mut().read_to_string().map_err(|error| self.refused(&error))?;
        let value = serde_json::from_str::<Value>(&text);
        let reason = || match &value {
            Ok(Value::Object(fields)) => {
                fields.get("error").and_then(Value::as_str).unwrap_or(&text).to_owned()
            }
            _ => text.clone(),
        };
        match response.status().as_u16() {
            200..=299 => value.map_err(|source| NodetoolError::Answer { path: self.address.clone(), source }),
            400 | 404 => Err(NodetoolError::BadUse(reason())),
            _ => Err(NodetoolError::Failed(reason())),
        }
    }

    fn refused(&self, error: &ureq::Error) -> NodetoolError {
        NodetoolError::Connect { address: self.address.clone(), reason: error.to_string() }
    }
}
