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

    /// The managers of fields that an apply would have taken from them.
    pub fn conflicting_managers(&self) -> impl Iterator<Item = &str> {
        let causes = self.body.pointer("/details/causes").and_then(Value::as_array);
        let of_managers = causes.into_iter().flatten().filter(|cause| {
            self.code == 409 && cause["reason"].as_str() == Some("FieldManagerConflict")
        });
        // `conflict with "kubectl" with subresource "scale" using apps/v1`
        of_managers.map(|cause| {
            let message = cause["message"].as_str().unwrap_or_default();
            message.split('"').nth(1).unwrap_or_default()
        })
    }

    /// The message of the `Status`, else the code.
    pub fn message(&self) -> String {
        match self.body.get("message").and_then(Value::as_str).unwrap_or_default() {
            "" => format!("the server answered {}", self.code),
            message => message.to_owned(),
        }
    }
}
