//! The response of an API server, as far as the control loop reads it.

use std::time::Duration;

use serde_json::Value;

/// What a server answered to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    pub code: u16,
    pub retry_after: Option<Duration>,
    /// An object or a `Status`; null if it could not be read.
    pub body: Value,
}

impl Response {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The message of the `Status`, else the code.
    pub fn message(&self) -> String {
        match self.body.get("message").and_then(Value::as_str).unwrap_or_default() {
            "" => format!("the server answered {}", self.code),
            message => message.to_owned(),
        }
    }
}
