//! Access reviews: `SelfSubjectReview`, `SubjectAccessReview`, `TokenReview` and the like. None of
//! them is stored.

use convoy_api::schema::{FieldError, Reason};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{AccessTarget, Attributes, Authorization, Decision, Index, Rule};
use crate::caller::{Caller, MASTERS};
use crate::handler_response::HandlerResponse;
use crate::kinds::Question;
use crate::managed;
use crate::options::Options;
use crate::reading;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::seconds;

/// Answers a question.
pub(crate) fn answer(request: &ResourceRequest, question: Question) -> ApiResult<HandlerResponse> {
    let validation = request.query.field_validation("CreateOptions.meta.k8s.io")?;
    let mut review = reading::object(request, validation)?;
    if request.resource.group == "authorization.k8s.io" {
        crate::metadata::of(&mut review);
        managed::track_create(request, &mut review, &Options::of(request)?);
    }
    match question {
        Question::OwnAccess => self_access(request, &mut review)?,
        Question::Access => access(request, &mut review)?,
        Question::LocalAccess => local_access(request, &mut review)?,
        Question::OwnRules => self_rules(request, &mut review)?,
        Question::OwnName => self_subject(request, &mut review),
        Question::Token => token(request, &mut review)?,
    }
    crate::canonical::canonicalise(crate::form::shape_of(&request.resource), &mut review);
    Ok(HandlerResponse::Object(201, review))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
    user: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<std::collections::BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PathAttributes {
    path: String,
    verb: String,
}

impl Spec {
    fn read(request: &ResourceRequest, review: &Value) -> ApiResult<Self> {
        let spec: Self = serde_json::from_value(review["spec"].clone())
            .map_err(|error| Status::bad_request(error.to_string()))?;
        if spec.resource_attributes.is_some() == spec.non_resource_attributes.is_some() {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(invalid(request, "spec.resourceAttributes", &Value::Null, detail));
        }
        Ok(spec)
    }

    fn attributes(&self) -> Attributes<'_> {
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(about), _) => Attributes {
                verb: &about.verb,
                namespace: &about.namespace,
                target: AccessTarget::Resource {
                    group: &about.group,
                    resource: &about.resource,
                    subresource: &about.subresource,
                    name: &about.name,
                },
            },
            (None, Some(about)) => Attributes {
                verb: &about.verb,
                namespace: "",
                target: AccessTarget::Path(&about.path),
            },
            (None, None) => Attributes { verb: "", namespace: "", target: AccessTarget::Path("") },
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone().unwrap_or_default(),
            extra: self.extra.clone().unwrap_or_default(),
        }
    }
}

fn self_access(request: &ResourceRequest, review: &mut Value) -> ApiResult<()> {
    let spec = Spec::read(request, review)?;
    review["status"] = verdict(request, &request.caller, &spec.attributes());
    Ok(())
}

fn access(request: &ResourceRequest, review: &mut Value) -> ApiResult<()> {
    let spec = Spec::read(request, review)?;
    if spec.user.is_empty() && spec.groups.as_ref().is_none_or(Vec::is_empty) {
        let detail = "at least one of user or group must be specified";
        return Err(invalid(request, "spec.user", &json!(""), detail));
    }
    review["status"] = verdict(request, &spec.caller(), &spec.attributes());
    Ok(())
}

fn local_access(request: &ResourceRequest, review: &mut Value) -> ApiResult<()> {
    let spec = Spec::read(request, review)?;
    let given = spec.resource_attributes.as_ref().map(|about| about.namespace.as_str());
    let detail = match given {
        None => "disallowed on this kind of request",
        Some(namespace) if namespace != request.namespace() => "must match metadata.namespace",
        Some(_) => return access(request, review),
    };
    let path = match given {
        None => "spec.nonResourceAttributes",
        Some(_) => "spec.resourceAttributes.namespace",
    };
    Err(invalid(request, path, &json!(given.unwrap_or_default()), detail))
}

fn verdict(request: &ResourceRequest, caller: &Caller, attributes: &Attributes<'_>) -> Value {
    let decision = request.guard().decide(caller, attributes);
    let mut status = json!({"allowed": matches!(decision, Decision::Allowed(_))});
    let reason = decision.reason();
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

fn self_rules(request: &ResourceRequest, review: &mut Value) -> ApiResult<()> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default().to_owned();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let rules = |index: &Index| index.rules_of(&request.caller, &namespace);
    let mut rules = request.guard().look_up(rules);
    let is_free = request.server.access.authorization == Authorization::AlwaysAllow;
    if is_free || request.caller.is_in(MASTERS) {
        let all = Rule::everything().into_iter().filter(|rule| !rules.contains(rule));
        rules = all.collect::<Vec<_>>().into_iter().chain(rules).collect();
    }
    let (paths, resources): (Vec<Rule>, Vec<Rule>) =
        rules.into_iter().partition(|rule| rule.resources.is_empty());
    review["status"] =
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    Ok(())
}

fn self_subject(request: &ResourceRequest, review: &mut Value) {
    review["metadata"] = json!({"creationTimestamp": seconds(request.server.now())});
    review["status"] = json!({"userInfo": request.caller.user_info()});
}

fn token(request: &ResourceRequest, review: &mut Value) -> ApiResult<()> {
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted = review["spec"]["audiences"].as_array().into_iter().flatten();
    let wanted: Vec<String> = wanted.filter_map(Value::as_str).map(str::to_owned).collect();
    let known = request.guard().caller_of_token(&token, &wanted);
    review["status"] = match known {
        Some((caller, audiences)) => {
            json!({"authenticated": true, "user": caller.user_info(), "audiences": audiences})
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    };
    Ok(())
}

fn invalid(request: &ResourceRequest, path: &str, value: &Value, detail: &str) -> Box<Status> {
    let error = FieldError::about(Reason::Invalid, path, value, detail);
    let mut status = Status::invalid(&request.resource, "", &[error]);
    // A kube-apiserver forgets of which kind the question was.
    let rest = status.message.strip_prefix(request.resource.kind.as_str()).map(str::to_owned);
    status.message = rest.unwrap_or(status.message);
    status.details.kind = String::new();
    status
}
