//! Query parameters: lenient where Kubernetes is, refused where it refuses.

use smol_str::SmolStr;

use convoy_api::schema::{FieldError, Reason};
use serde_json::json;

use crate::status::{ApiResult, Status};

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// What happens to fields that a kind does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Query {
    pub fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self { pairs: pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect() }
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter();
        pairs.find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub fn all<'q>(&'q self, key: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Present, and neither `0` nor any spelling of `false`.
    pub fn flag(&self, key: &str) -> bool {
        self.optional_flag(key).unwrap_or(false)
    }

    pub fn optional_flag(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    pub fn integer(&self, key: &str) -> ApiResult<Option<i64>> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            }),
        }
    }

    /// The name that a field selector pins, if access rules may take it for one.
    pub fn required_name(&self) -> Option<&str> {
        let terms = self.get("fieldSelector")?.split(',');
        let mut names = terms.filter_map(|term| {
            let (key, value) = term.split_once('=')?;
            (key == "metadata.name").then(|| value.strip_prefix('=').unwrap_or(value))
        });
        names.next().filter(|name| !name.is_empty() && !name.contains(['/', '%', '\\']))
    }

    /// Whether nothing is to be stored. `options`: the kind that a refusal names.
    pub fn dry_run(&self, options: &str) -> ApiResult<bool> {
        let values: Vec<&str> = self.all("dryRun").collect();
        check_dry_run(&values, options)
    }

    pub fn field_validation(&self, options: &str) -> ApiResult<FieldValidation> {
        match self.get("fieldValidation") {
            None | Some("" | "Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => {
                let supported = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                let error = FieldError::about(
                    Reason::NotSupported,
                    "fieldValidation",
                    &json!(other),
                    supported,
                );
                Err(Status::invalid_thing(options, "", &[error]))
            }
        }
    }

    /// Who owns what the request sets: as given, or the beginning of the client's own name.
    pub fn field_manager(&self, user_agent: &str, options: &str) -> ApiResult<SmolStr> {
        if let Some(manager) = self.get("fieldManager").filter(|manager| !manager.is_empty()) {
            check_manager(manager, options)?;
            return Ok(SmolStr::new(manager));
        }
        let agent = user_agent.split('/').next().unwrap_or_default();
        let printable = agent.chars().filter(|c| !c.is_control()).take(128);
        let manager: String = printable.collect();
        Ok(if manager.is_empty() { SmolStr::new("unknown") } else { SmolStr::new(manager) })
    }
}

pub(crate) fn check_dry_run(values: &[&str], options: &str) -> ApiResult<bool> {
    if values.iter().find(|value| **value != "All").is_none() {
        Ok(!values.is_empty())
    } else {
        let error = FieldError::about(
            Reason::NotSupported,
            "dryRun",
            &json!(values),
            "supported values: \"All\"",
        );
        Err(Status::invalid_thing(options, "", &[error]))
    }
}

/// The kind of the options that come with a request, as refusals name it.
pub(crate) fn options_kind(verb: &str) -> &'static str {
    match verb {
        "create" => "CreateOptions.meta.k8s.io",
        "update" => "UpdateOptions.meta.k8s.io",
        "delete" | "deletecollection" => "DeleteOptions.meta.k8s.io",
        _ => "PatchOptions.meta.k8s.io",
    }
}

fn check_manager(manager: &str, options: &str) -> ApiResult<()> {
    let error = if manager.len() > 128 {
        let detail = "may not be more than 128 bytes";
        FieldError::plain(Reason::TooLong, "fieldManager", detail)
    } else if manager.chars().any(char::is_control) {
        let detail = "should only contain printable characters";
        FieldError::about(Reason::Invalid, "fieldManager", &json!(manager), detail)
    } else {
        return Ok(());
    };
    Err(Status::invalid_thing(options, "", &[error]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_true_unless_they_say_no() {
        for (text, expected) in [
            ("watch=True", true),
            ("watch=", true),
            ("watch=0", false),
            ("watch=FALSE", false),
            ("", false),
        ] {
            assert_eq!(Query::parse(text).flag("watch"), expected, "{text}");
        }
    }

    #[test]
    fn values_that_nobody_knows_are_refused() {
        assert!(Query::parse("dryRun=All").dry_run("O").unwrap());
        let refused = Query::parse("dryRun=foo").dry_run("O").unwrap_err();
        assert!(refused.message.contains("dryRun: Unsupported value: [\"foo\"]"), "{refused:?}");
        assert_eq!(
            Query::parse("fieldValidation=Loose").field_validation("O").unwrap_err().code,
            422
        );
        assert_eq!(Query::parse("limit=x").integer("limit").unwrap_err().code, 400);
    }

    #[test]
    fn the_manager_is_named_by_the_client() {
        let query = Query::parse("");
        assert_eq!(query.field_manager("kubectl/v1.32 (linux)", "O").unwrap(), "kubectl");
        assert_eq!(query.field_manager("", "O").unwrap(), "unknown");
        assert_eq!(Query::parse("fieldManager=me").field_manager("x", "O").unwrap(), "me");
    }
}
