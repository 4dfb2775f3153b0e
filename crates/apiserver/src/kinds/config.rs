//! Configuration maps and secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::fill::{self, Fields};
use super::kind::{Change, Kind};
use crate::column::Cell::{Count, Text};
use crate::column::{AGE, Column, NAME, string};
use crate::registry::Resource;
use convoy_api::schema::{FieldError, Reason};
use convoy_api::well_known::secret_type;

/// All values of one object together.
const BYTES_MAX: usize = 1 << 20;

const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    frozen(&root, old, &["data", "binaryData"], &mut errors);
    let mut bytes = 0;
    for (key, value) in root.get("data").entries() {
        config_key(&value, key, &mut errors);
        if !root.get("binaryData").key(key).is_absent() {
            errors.push(value.invalid_as(key, "duplicate of key present in binaryData"));
        }
        bytes += value.text().len();
    }
    for (key, value) in root.get("binaryData").entries() {
        config_key(&value, key, &mut errors);
        bytes += decoded(&value).len();
    }
    if bytes > BYTES_MAX {
        let detail = format!("may not be more than {BYTES_MAX} bytes");
        errors.push(FieldError::plain(Reason::TooLong, "[]", &detail));
    }
    errors
}

pub(super) fn secret(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    if let Some(old) = old {
        root.get("type").immutable(&At::root(old).get("type"), &mut errors);
    }
    frozen(&root, old, &["data"], &mut errors);
    let data = root.get("data");
    let mut bytes = 0;
    for (key, value) in data.entries() {
        config_key(&value, key, &mut errors);
        bytes += decoded(&value).len();
    }
    if bytes > BYTES_MAX {
        errors.push(data.too_long(BYTES_MAX));
    }
    typed_secret(&root, &data, &mut errors);
    errors
}

/// Secrets of known types have what their users look for.
fn typed_secret(root: &At<'_>, data: &At<'_>, errors: &mut Errors) {
    let lacks = |key: &str| data.key(key).is_absent();
    let mut require = |key: &str| {
        if lacks(key) {
            errors.push(data.key(key).required(""));
        }
    };
    match root.get("type").text() {
        secret_type::SERVICE_ACCOUNT_TOKEN => {
            let account =
                root.get("metadata.annotations").key("kubernetes.io/service-account.name");
            if account.is_empty() {
                errors.push(account.required(""));
            }
        }
        secret_type::TLS => {
            require("tls.crt");
            require("tls.key");
        }
        "kubernetes.io/ssh-auth" if data.key("ssh-privatekey").is_empty() => {
            errors.push(data.key("ssh-privatekey").required(""));
        }
        "kubernetes.io/basic-auth" if lacks("username") && lacks("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/dockercfg" => docker(&data.key(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => docker(&data.key(".dockerconfigjson"), errors),
        _ => {}
    }
}

fn docker(config: &At<'_>, errors: &mut Errors) {
    if config.is_absent() {
        errors.push(config.required(""));
    } else if let Err(error) =
        serde_json::from_slice::<serde_json::Map<String, Value>>(&decoded(config))
    {
        let detail = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        errors.push(config.invalid_as("<secret contents redacted>", &detail));
    }
}

fn frozen(root: &At<'_>, old: Option<&Value>, fields: &[&str], errors: &mut Errors) {
    let Some(old) = old.filter(|old| old["immutable"] == Value::Bool(true)) else { return };
    if !root.get("immutable").is_true() {
        errors.push(root.get("immutable").forbidden(FROZEN));
    }
    for field in fields {
        if !super::at::same(root.get(field).value, &old[*field]) {
            errors.push(root.get(field).forbidden(FROZEN));
        }
    }
}

/// Keys become names of files.
fn config_key(at: &At<'_>, key: &str, errors: &mut Errors) {
    if key.len() > 253 {
        errors.push(at.invalid_as(key, "must be no more than 253 characters"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_plain) {
        let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        errors.push(at.invalid_as(key, detail));
    }
    if key == "." {
        errors.push(at.invalid_as(key, "must not be '.'"));
    } else if key == ".." {
        errors.push(at.invalid_as(key, "must not be '..'"));
    } else if key.starts_with("..") {
        errors.push(at.invalid_as(key, "must not start with '..'"));
    }
}

fn decoded(value: &At<'_>) -> Vec<u8> {
    STANDARD.decode(value.text()).unwrap_or_default()
}

pub(super) struct ConfigMap;

impl Kind for ConfigMap {
    fn validate(&self, change: &Change<'_>) -> Errors {
        config_map(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Data", Count(&["/data", "/binaryData"])), AGE] }
    }
}

pub(super) struct Secret;

impl Kind for Secret {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, default_secret);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        secret(change.object, change.old)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["type"]
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Type", Text("/type", "")), string("Data", Count(&["/data"])), AGE] }
    }
}

/// Texts become data, and are not kept beside it.
fn default_secret(secret: &mut Fields) {
    fill::text(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.shift_remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    if let Some(data) = fill::make(secret, "data") {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: Errors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_are_file_names_and_in_one_place() {
        assert!(config_map(&json!({"data": {"a.b-c_D": "x"}}), None).is_empty());
        let clash = json!({"data": {"a": "x"}, "binaryData": {"a": "eA=="}});
        assert_eq!(
            texts(config_map(&clash, None)),
            ["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"]
        );
        for key in ["", "a b", "..", "../x"] {
            assert!(!config_map(&json!({"data": {key: "x"}}), None).is_empty(), "{key}");
        }
        let large = json!({"data": {"a": "x".repeat(BYTES_MAX), "b": "x"}});
        assert_eq!(config_map(&large, None).len(), 1);
    }

    #[test]
    fn what_is_frozen_stays() {
        let old = json!({"data": {"a": "1"}, "immutable": true});
        assert!(config_map(&old, Some(&old)).is_empty());
        let new = json!({"data": {"a": "2"}, "immutable": true});
        assert_eq!(
            texts(config_map(&new, Some(&old))),
            ["data: Forbidden: field is immutable when `immutable` is set"]
        );
        assert_eq!(config_map(&json!({"data": {"a": "1"}}), Some(&old)).len(), 1);
    }

    #[test]
    fn secrets_have_what_their_type_promises() {
        let cases = [
            ("Opaque", json!({}), 0),
            ("kubernetes.io/tls", json!({"tls.crt": "eA=="}), 1),
            ("kubernetes.io/tls", json!({"tls.crt": "eA==", "tls.key": "eA=="}), 0),
            ("kubernetes.io/basic-auth", json!({}), 2),
            ("kubernetes.io/basic-auth", json!({"username": "eA=="}), 0),
            ("kubernetes.io/ssh-auth", json!({"ssh-privatekey": ""}), 1),
            ("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "e30="}), 0),
            ("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "eA=="}), 1),
            ("kubernetes.io/service-account-token", json!({}), 1),
        ];
        for (kind, data, expected) in cases {
            let secret_object = json!({"type": kind, "data": data});
            assert_eq!(secret(&secret_object, None).len(), expected, "{secret_object}");
        }
        let (old, new) = (json!({"type": "Opaque"}), json!({"type": "kubernetes.io/ssh"}));
        assert_eq!(
            texts(secret(&new, Some(&old))),
            ["type: Invalid value: \"kubernetes.io/ssh\": field is immutable"]
        );
    }
}
