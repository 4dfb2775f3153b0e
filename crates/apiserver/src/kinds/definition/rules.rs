//! What a definition must be like to be accepted.

use convoy_api::schema::{FieldError, Reason};
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::{is_true, schema};

const APPROVED: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 9] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password", "hostname"];
const SELECTABLE_FIELDS_MAX: usize = 8;
const WARNING_BYTES_MAX: usize = 256;

/// Everything about a definition that breaks a rule. What is as it was is not asked again.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    let spec = &definition["spec"];
    if old.is_none_or(|old| old["spec"] != *spec) {
        check.place(definition);
        check.names(&spec["names"]);
        check.versions(definition, old);
        check.conversion(&spec["conversion"]);
        if old.is_none_or(|old| old["spec"]["preserveUnknownFields"] != true)
            && spec["preserveUnknownFields"] == true
        {
            let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                          spec.versions[*].schema instead";
            check.invalid("spec.preserveUnknownFields", &json!(true), detail);
        }
    }
    if let Some(old) = old {
        check.immutable(definition, old);
    }
    check.stored_versions(definition);
    check.approval(definition, old);
    check.errors
}

/// What the project that owns Kubernetes' groups says about a definition in one of them: whether
/// it may be there, the reason, and in words. None for other groups.
pub(super) fn approval(definition: &Value) -> Option<(bool, &'static str, String)> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|end| {
        group.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !is_protected {
        return None;
    }
    let given = definition["metadata"]["annotations"][APPROVED].as_str();
    let is_link = |text: &str| {
        text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some())
    };
    Some(match given {
        None | Some("") => (
            false,
            "MissingAnnotation",
            format!(
                "protected groups must have approval annotation {APPROVED:?}, see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
        Some(text) if text.starts_with("unapproved") => {
            (false, "UnapprovedAnnotation", format!("not approved: {text:?}"))
        }
        Some(text) if is_link(text) => (true, "ApprovedAnnotation", format!("approved in {text}")),
        Some(_) => (
            false,
            "InvalidAnnotation",
            format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
    })
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn invalid(&mut self, field: &str, value: &Value, detail: &str) {
        self.errors.push(FieldError::invalid(field, value, detail));
    }

    fn required(&mut self, field: &str, detail: &str) {
        self.errors.push(FieldError::plain(Reason::Required, field, detail));
    }

    fn label(&mut self, field: &str, value: &Value, before: &str) {
        let text = value.as_str().unwrap_or_default();
        let tested = if before.is_empty() { text.to_owned() } else { text.to_lowercase() };
        let details = Name::Dns1035Label.errors(&tested);
        if !text.is_empty() && !details.is_empty() {
            self.invalid(field, value, &format!("{before}{}", details.join(",")));
        }
    }

    fn one_of(&mut self, field: &str, value: &Value, supported: [&str; 2]) {
        match value.as_str().unwrap_or_default() {
            "" => self.required(field, ""),
            text if supported.contains(&text) => {}
            _ => {
                let list = format!("supported values: {:?}, {:?}", supported[0], supported[1]);
                let error = FieldError::about(Reason::NotSupported, field, value, &list);
                self.errors.push(error);
            }
        }
    }

    fn place(&mut self, definition: &Value) {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let plural = spec["names"]["plural"].as_str().unwrap_or_default();
        let name = crate::metadata::text(definition, "name");
        if name != format!("{plural}.{group}") {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            self.invalid("metadata.name", &json!(name), detail);
        }
        let details = Name::Dns1123Subdomain.errors(group);
        if group.is_empty() {
            self.required("spec.group", "");
        } else if !details.is_empty() {
            self.invalid("spec.group", &spec["group"], &details.join(","));
        } else if !group.contains('.') {
            let detail = "should be a domain with at least one dot";
            self.invalid("spec.group", &spec["group"], detail);
        }
        self.one_of("spec.scope", &spec["scope"], ["Cluster", "Namespaced"]);
    }

    fn names(&mut self, names: &Value) {
        for field in ["plural", "singular", "kind", "listKind"] {
            if names[field].as_str().unwrap_or_default().is_empty() {
                self.required(&format!("spec.names.{field}"), "");
            }
        }
        let mixed = "may have mixed case, but should otherwise match: ";
        for (field, before) in
            [("plural", ""), ("singular", ""), ("kind", mixed), ("listKind", mixed)]
        {
            self.label(&format!("spec.names.{field}"), &names[field], before);
        }
        for list in ["shortNames", "categories"] {
            for (index, name) in names[list].as_array().into_iter().flatten().enumerate() {
                self.label(&format!("spec.names.{list}[{index}]"), name, "");
            }
        }
        if names["kind"].is_string() && names["kind"] == names["listKind"] {
            let detail = "kind and listKind may not be the same";
            self.invalid("spec.names.listKind", &names["listKind"], detail);
        }
    }

    fn versions(&mut self, definition: &Value, old: Option<&Value>) {
        let empty = Vec::new();
        let versions = definition["spec"]["versions"].as_array().unwrap_or(&empty);
        let mut names: Vec<&str> = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            let at = format!("spec.versions[{index}]");
            let name = version["name"].as_str().unwrap_or_default();
            let details = Name::Dns1035Label.errors(name);
            if !details.is_empty() {
                self.invalid(&format!("{at}.name"), &version["name"], &details.join(","));
            }
            if names.contains(&name) {
                self.invalid("spec.versions", &json!(name), "must contain unique version names");
            }
            names.push(name);
            self.deprecation(&at, version);
            self.scale(&format!("{at}.subresources.scale"), &version["subresources"]["scale"]);
            self.columns(&format!("{at}.additionalPrinterColumns"), version);
            self.selectable(&format!("{at}.selectableFields"), version);
        }
        if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
            let detail = "must have exactly one version marked as storage version";
            self.invalid("spec.versions", &json!(names), detail);
        }
        let mut errors = schema::errors(definition);
        // What is checked has grown, and what is stored stays as good as it was.
        if let Some(old) = old.filter(|_| !errors.is_empty()) {
            let before = schema::errors(old);
            errors.retain(|error| !before.contains(error));
        }
        self.errors.extend(errors);
    }

    fn deprecation(&mut self, at: &str, version: &Value) {
        let Some(text) = version["deprecationWarning"].as_str() else { return };
        let detail = if version["deprecated"] != true {
            "can only be set for deprecated versions"
        } else if text.len() > WARNING_BYTES_MAX {
            "must be <= 256 characters long"
        } else if text.is_empty() {
            "must not be an empty string"
        } else if text.chars().any(char::is_control) {
            "must only contain printable UTF-8 characters"
        } else {
            return;
        };
        self.invalid(&format!("{at}.deprecationWarning"), &json!(text), detail);
    }

    fn scale(&mut self, at: &str, scale: &Value) {
        if scale.is_null() {
            return;
        }
        for (field, roots, detail) in [
            ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
            ("statusReplicasPath", &[".status."], "should be a json path under .status"),
            (
                "labelSelectorPath",
                &[".spec.", ".status."],
                "should be a json path under either .spec or .status",
            ),
        ] {
            let place = format!("{at}.{field}");
            match scale[field].as_str().unwrap_or_default() {
                "" if field == "labelSelectorPath" => {}
                "" => self.required(&place, ""),
                path if !path.starts_with('.') => {
                    let detail = "must be a simple json path starting with .";
                    self.invalid(&place, &scale[field], detail);
                }
                path if roots.iter().any(|root| path.starts_with(root)) => {}
                _ => self.invalid(&place, &scale[field], detail),
            }
        }
    }

    fn columns(&mut self, at: &str, version: &Value) {
        let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
        for (index, column) in columns.enumerate() {
            let text = |field: &str| column[field].as_str().unwrap_or_default();
            if text("name").is_empty() {
                self.required(&format!("{at}[{index}].name"), "");
            }
            let one_of = format!("must be one of {}", COLUMN_TYPES.join(","));
            match text("type") {
                "" => self.required(&format!("{at}[{index}].type"), &one_of),
                kind if COLUMN_TYPES.contains(&kind) => {}
                _ => self.invalid(&format!("{at}[{index}].type"), &column["type"], &one_of),
            }
            let format = text("format");
            if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
                let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
                self.invalid(&format!("{at}[{index}].format"), &column["format"], &detail);
            }
            match text("jsonPath") {
                "" => self.required(&format!("{at}[{index}].JSONPath"), ""),
                path if path.starts_with('.') => {}
                _ => {
                    let detail = "must be a simple json path starting with .";
                    self.invalid(&format!("{at}[{index}].JSONPath"), &column["jsonPath"], detail);
                }
            }
        }
    }

    fn selectable(&mut self, at: &str, version: &Value) {
        let empty = Vec::new();
        let fields = version["selectableFields"].as_array().unwrap_or(&empty);
        let mut seen: Vec<&str> = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let place = format!("{at}[{index}].jsonPath");
            let path = field["jsonPath"].as_str().unwrap_or_default();
            if path.is_empty() {
                self.required(&place, "");
                continue;
            }
            let found = schema::at(&version["schema"]["openAPIV3Schema"], path);
            let is_scalar = |schema: &Value| {
                matches!(schema["type"].as_str(), Some("string" | "boolean" | "integer"))
            };
            match found {
                None => self.invalid(
                    &place,
                    &field["jsonPath"],
                    "is an invalid path: no such field in the schema",
                ),
                Some(_) if path.starts_with(".metadata.") => {
                    self.invalid(
                        &place,
                        &field["jsonPath"],
                        "must not point to fields in metadata",
                    );
                }
                Some(schema) if !is_scalar(schema) => {
                    let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                    self.invalid(&place, &field["jsonPath"], detail);
                }
                Some(_) if seen.contains(&path) => {
                    self.errors.push(FieldError::about(
                        Reason::Duplicate,
                        &place,
                        &field["jsonPath"],
                        "",
                    ));
                }
                Some(_) => seen.push(path),
            }
        }
        if seen.len() > SELECTABLE_FIELDS_MAX {
            let count = json!(seen.len());
            let detail = format!("must have at most {SELECTABLE_FIELDS_MAX} items");
            self.errors.push(FieldError::about(Reason::TooMany, at, &count, &detail));
        }
    }

    fn conversion(&mut self, conversion: &Value) {
        let webhook = &conversion["webhook"];
        self.one_of("spec.conversion.strategy", &conversion["strategy"], ["None", "Webhook"]);
        if conversion["strategy"] != "Webhook" {
            if !webhook.is_null() {
                let detail = "should not be set when strategy is not set to Webhook";
                let error = FieldError::plain(Reason::Forbidden, "spec.conversion.webhook", detail);
                self.errors.push(error);
            }
            return;
        }
        let client = &webhook["clientConfig"];
        let at = "spec.conversion.webhook.clientConfig";
        if client.is_null() {
            self.required(at, "required when strategy is set to Webhook");
        } else if client["url"].is_string() == client["service"].is_object() {
            self.required(at, "exactly one of url or service is required");
        }
        let versions =
            webhook["conversionReviewVersions"].as_array().map_or(&[][..], Vec::as_slice);
        let at = "spec.conversion.webhook.conversionReviewVersions";
        if versions.is_empty() {
            self.required(at, "");
        } else if !versions.iter().any(|version| *version == "v1" || *version == "v1beta1") {
            self.invalid(at, &json!(versions), "must include at least one of v1, v1beta1");
        }
    }

    fn immutable(&mut self, definition: &Value, old: &Value) {
        let is_established = is_true(old, "Established");
        let fields = [
            ("/spec/scope", is_established),
            ("/spec/names/kind", is_established),
            ("/spec/group", true),
            ("/spec/names/plural", true),
        ];
        for (pointer, _) in fields.into_iter().filter(|(_, holds)| *holds) {
            let new = definition.pointer(pointer).unwrap_or(&Value::Null);
            if Some(new) != old.pointer(pointer) {
                let field = pointer[1..].replace('/', ".");
                self.invalid(&field, new, "field is immutable");
            }
        }
    }

    fn stored_versions(&mut self, definition: &Value) {
        let at = "status.storedVersions";
        let stored =
            definition["status"]["storedVersions"].as_array().map_or(&[][..], Vec::as_slice);
        if stored.is_empty() {
            self.invalid(at, &json!(stored), "must have at least one stored version");
            return;
        }
        let versions = || definition["spec"]["versions"].as_array().into_iter().flatten();
        let storage = versions().find(|version| version["storage"] == true);
        if let Some(version) = storage.filter(|version| !stored.contains(&version["name"])) {
            let name = version["name"].as_str().unwrap_or_default();
            self.invalid(at, &json!(stored), &format!("must have the storage version {name}"));
        }
        for (index, name) in stored.iter().enumerate() {
            if !versions().any(|version| version["name"] == *name) {
                let shown = name.as_str().unwrap_or_default();
                let detail = format!(
                    "missing from spec.versions; {shown} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {shown} and removes {shown} from status.storedVersions"
                );
                self.invalid(&format!("{at}[{index}]"), name, &detail);
            }
        }
    }

    fn approval(&mut self, definition: &Value, old: Option<&Value>) {
        let state = approval(definition);
        let reason = state.as_ref().map(|(_, reason, _)| *reason);
        let before = old.map(|old| approval(old).map(|(_, reason, _)| reason));
        if before.is_some_and(|before| before == reason) {
            return;
        }
        let at = format!("metadata.annotations[{APPROVED}]");
        let given = &definition["metadata"]["annotations"][APPROVED];
        match state {
            Some((_, "MissingAnnotation", why)) => self.required(&at, &why),
            Some((_, "InvalidAnnotation", why)) => self.invalid(&at, given, &why),
            _ => {}
        }
    }
}
