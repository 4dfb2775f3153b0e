//! Actions as HTTP requests: method, path and body. A write carries its precondition, so that the
//! server rejects it if the object has changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use convoy_api::{Object, ObjectKey};
use convoy_plan::merge_patch;
use convoy_plan::step::{Precondition, Propagation, Subresource};
use convoy_plan::{Action, Verb, Why, Write};
use http::Method;
use serde_json::{Map, Value, json};

/// The field manager of writes that no dialect decides.
pub use convoy_plan::dialect::FIELD_MANAGER;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// JSON is YAML; servers before 1.33 know no other name for it.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// The API resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespaced: bool,
    pub has_status: bool,
}

/// One HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    /// Null for none.
    pub body: Value,
}

/// The versions at which our own writes left objects within one step. A later write of the step
/// is fenced by the version observed before; since our own write came next, its fence moves to
/// the version that write left.
#[derive(Clone, Debug, Default)]
pub struct OwnVersions {
    moved: BTreeMap<ObjectKey, (String, String)>,
}

impl Resource {
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The same in the version of an object: a server accepts it in no other one.
    fn for_object(&self, object: &Value) -> Cow<'_, Self> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit_once('/').map_or(api_version, |(_, version)| version);
        if version.is_empty() || version == self.version {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { version: version.to_owned(), ..self.clone() })
    }

    /// The path of the collection, of all namespaces or of one.
    pub fn collection(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    pub fn object(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection(&key.namespace), key.name)
    }
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), content_type: JSON, body: Value::Null }
    }

    pub fn create(path: &str, body: Value) -> Self {
        Self::write(Method::POST, path, JSON, body)
    }

    pub fn replace(path: &str, body: Value) -> Self {
        Self::write(Method::PUT, path, JSON, body)
    }

    pub fn merge(path: &str, body: Value) -> Self {
        Self::write(Method::PATCH, path, MERGE_PATCH, body)
    }

    /// A deletion with the defaults of the kind.
    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, path: path.into(), content_type: JSON, body: json!({}) }
    }

    /// The same, which the server checks and does not carry out. Of a deletion with options in its
    /// body, a server reads no others.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        match &mut self.body {
            Value::Object(options) if self.method == Method::DELETE => {
                options.insert("dryRun".to_owned(), json!(["All"]));
            }
            _ => {
                let separator = if self.path.contains('?') { '&' } else { '?' };
                self.path = format!("{}{separator}dryRun=All", self.path);
            }
        }
        self
    }

    fn write(method: Method, path: &str, content_type: &'static str, body: Value) -> Self {
        Self { method, path: path.to_owned(), content_type, body }.managed_by(FIELD_MANAGER)
    }

    /// The same as a write of another field manager.
    fn managed_by(mut self, manager: &str) -> Self {
        let path = self.path.split_once("?fieldManager=").map_or(&*self.path, |(path, _)| path);
        self.path = format!("{path}?fieldManager={}", encoded(manager));
        self
    }
}

/// A name as the value of a query parameter: users may give managers names.
fn encoded(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(letter).collect()
}

impl OwnVersions {
    /// A write that was fenced by `before` left its target at `after`.
    pub fn note(&mut self, key: &ObjectKey, before: Option<&str>, after: Option<&str>) {
        let (Some(before), Some(after)) = (before, after) else { return };
        // A fence names the observed version, however many of our writes followed it.
        let observed = match self.moved.get(key) {
            Some((observed, now)) if now == before => observed.clone(),
            _ => before.to_owned(),
        };
        self.moved.insert(key.clone(), (observed, after.to_owned()));
    }

    /// The precondition to send now.
    pub fn fence(&self, key: &ObjectKey, fence: &Precondition) -> Precondition {
        let mut fence = fence.clone();
        if let Some((observed, now)) = self.moved.get(key)
            && fence.resource_version.as_deref() == Some(observed)
        {
            fence.resource_version = Some(now.clone());
        }
        fence
    }
}

/// The request that executes an action as a write of `manager`.
pub fn request(action: &Action, resource: &Resource, own: &OwnVersions, manager: &str) -> Request {
    let target = &action.target;
    match &action.write {
        Write::Create { object } => {
            let resource = resource.for_object(object);
            let path = resource.collection(&target.namespace);
            Request::create(&path, object.clone()).managed_by(manager)
        }
        Write::Patch { patch, subresource, precondition } => {
            let below = match subresource {
                Some(Subresource::Status) if resource.has_status => "/status",
                Some(Subresource::Scale) => "/scale",
                _ => "",
            };
            let path = format!("{}{below}", resource.object(target));
            let body = fenced(patch.clone(), &own.fence(target, precondition));
            Request::merge(&path, body).managed_by(manager)
        }
        Write::Apply { object, force, manager: own_manager, precondition } => {
            let manager = own_manager.as_deref().unwrap_or(manager);
            let path = resource.for_object(object).object(target);
            let body = fenced(object.clone(), &own.fence(target, precondition));
            let request = Request::write(Method::PATCH, &path, APPLY_PATCH, body);
            let mut request = request.managed_by(manager);
            request.path.push_str(if *force { "&force=true" } else { "" });
            request
        }
        Write::Delete { grace_secs, precondition, propagation } => {
            let mut options = options(&own.fence(target, precondition));
            grace(&mut options, *grace_secs);
            let policy = match propagation {
                Propagation::Foreground => "Foreground",
                Propagation::Background => "Background",
                Propagation::Orphan => "Orphan",
            };
            options.insert("propagationPolicy".to_owned(), json!(policy));
            let (path, body) = (resource.object(target), Value::Object(options));
            Request { method: Method::DELETE, path, content_type: JSON, body }
        }
        Write::Evict { grace_secs, precondition } => {
            let mut options = options(&own.fence(target, precondition));
            grace(&mut options, *grace_secs);
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"namespace": target.namespace, "name": target.name},
                "deleteOptions": options});
            Request::create(&format!("{}/eviction", resource.object(target)), body)
        }
    }
}

fn grace(options: &mut Map<String, Value>, secs: Option<i64>) {
    options.extend(secs.map(|secs| ("gracePeriodSeconds".to_owned(), json!(secs))));
}

/// The action that writes the status that a step wants; `None` if the status is up to date.
pub fn status(status: Option<&Value>, rollout: &Object) -> Option<Action> {
    let empty = json!({});
    let before = if rollout.status().is_null() { &empty } else { rollout.status() };
    let change = merge_patch::between(before, status?)?;
    let why = Why::new("StatusChanged", "what is known of it has changed");
    let patch = merge_patch::nested(&["status"], change);
    Some(Action::patch_status(Verb::Record, rollout, patch, why))
}

/// The precondition of a write, if it has one.
pub fn precondition(write: &Write) -> Option<&Precondition> {
    match write {
        Write::Create { .. } => None,
        Write::Patch { precondition, .. }
        | Write::Apply { precondition, .. }
        | Write::Delete { precondition, .. }
        | Write::Evict { precondition, .. } => Some(precondition),
    }
}

/// A merge patch that applies only to the object as observed: the server compares the version
/// and the uid in the patch with those of the object.
fn fenced(mut patch: Value, fence: &Precondition) -> Value {
    let entries = fence_entries(fence);
    if let (Value::Object(patch), false) = (&mut patch, entries.is_empty()) {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.extend(entries);
        }
    }
    patch
}

fn options(fence: &Precondition) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("apiVersion".to_owned(), json!("v1"));
    options.insert("kind".to_owned(), json!("DeleteOptions"));
    let entries = fence_entries(fence);
    if !entries.is_empty() {
        options.insert("preconditions".to_owned(), Value::Object(entries));
    }
    options
}

fn fence_entries(fence: &Precondition) -> Map<String, Value> {
    let Precondition { uid, resource_version } = fence;
    let entries = [("uid", uid), ("resourceVersion", resource_version)];
    let given = entries.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    given.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::{DEPLOYMENT, POD};
    use convoy_testkit::apps;

    use super::*;

    fn resource(group: &str, plural: &str) -> Resource {
        let (group, plural) = (group.to_owned(), plural.to_owned());
        Resource { group, version: "v1".to_owned(), plural, namespaced: true, has_status: true }
    }

    fn deployment() -> Object {
        apps::deployment(1, "web:v1")
            .with("/metadata/resourceVersion", json!("7"))
            .with("/metadata/uid", json!("u"))
            .build()
    }

    fn why() -> Why {
        Why::new("Test", "for a test")
    }

    #[test]
    fn patches_carry_their_fence() {
        let patch = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 2}});
        let permit = convoy_plan::gate::grant(1, &[]).permit().expect("nothing limits");
        let action = Action::patch(Verb::Scale(permit), &deployment(), patch, why());
        let sent = request(
            &action,
            &resource("apps", "deployments"),
            &OwnVersions::default(),
            FIELD_MANAGER,
        );
        assert_eq!(sent.method, Method::PATCH);
        assert_eq!(sent.path, "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=convoy");
        assert_eq!(
            sent.body,
            json!({"metadata": {"annotations": {"a": "b"}, "uid": "u", "resourceVersion": "7"},
                "spec": {"replicas": 2}})
        );
    }

    #[test]
    fn an_apply_names_its_manager_and_whether_it_takes_fields_from_others() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}});
        let deployments = resource("apps", "deployments");
        let path = "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=agent";
        for (force, expected) in [(false, path.to_owned()), (true, format!("{path}&force=true"))] {
            let action = Action::apply(Verb::Advance, &deployment(), object.clone(), force, why());
            let sent = request(&action, &deployments, &OwnVersions::default(), "agent");
            assert_eq!((sent.method, sent.path), (Method::PATCH, expected));
            assert_eq!(sent.content_type, "application/apply-patch+yaml");
            assert_eq!(sent.body["metadata"]["resourceVersion"], "7");
            assert_eq!(sent.body["metadata"]["uid"], "u");
        }
        let target = DEPLOYMENT.key("shop", "web");
        let action = Action::apply_new(Verb::Create, target, object.clone(), false, why());
        let sent = request(&action, &deployments, &OwnVersions::default(), "agent");
        assert_eq!(sent.body, object, "nothing is expected of an object that is not there");
        let action = action.managed_by("work-agent a&b");
        let sent = request(&action, &deployments, &OwnVersions::default(), "agent");
        assert!(sent.path.ends_with("?fieldManager=work-agent%20a%26b"), "{}", sent.path);
    }

    #[test]
    fn the_fence_of_a_second_write_follows_the_first_write() {
        let object = deployment();
        let mut own = OwnVersions::default();
        own.note(object.key(), Some("7"), Some("9"));
        own.note(object.key(), Some("9"), Some("11"));
        let fence = own.fence(object.key(), &Precondition::observed(&object));
        assert_eq!(fence.resource_version.as_deref(), Some("11"));
        let other = Precondition { resource_version: Some("8".to_owned()), ..fence };
        assert_eq!(own.fence(object.key(), &other), other);
    }

    #[test]
    fn a_status_is_sent_as_what_changes() {
        let object = deployment().with_raw({
            let mut raw = deployment().raw().clone();
            raw["status"] = json!({"replicas": 1, "readyReplicas": 1});
            raw
        });
        let mut step = convoy_plan::Step::new("apps", &object, convoy_plan::Verdict::Moving);
        assert_eq!(status(step.status.as_ref(), &object), None);
        step.status = Some(json!({"replicas": 2}));
        let action = status(step.status.as_ref(), &object).unwrap();
        let with_status = resource("apps", "deployments");
        let sent = request(&action, &with_status, &OwnVersions::default(), FIELD_MANAGER);
        assert!(sent.path.contains("/deployments/web/status?"), "{}", sent.path);
        assert_eq!(sent.body["status"], json!({"replicas": 2, "readyReplicas": null}));
        let without = Resource { has_status: false, ..with_status };
        let sent = request(&action, &without, &OwnVersions::default(), FIELD_MANAGER);
        assert!(sent.path.contains("/deployments/web?"), "{}", sent.path);
    }

    #[test]
    fn deletes_and_evictions_carry_their_preconditions() {
        let pod = apps::replica("a", "web-1", "2026-01-01T00:00:00Z")
            .with("/metadata/resourceVersion", json!("7"))
            .with("/metadata/uid", json!("u"))
            .build();
        let pods = resource("", "pods");
        let action = Action::delete(Verb::Delete, &pod, Propagation::Background, why());
        let sent = request(&action, &pods, &OwnVersions::default(), FIELD_MANAGER);
        assert_eq!(
            (sent.method, sent.path.as_str()),
            (Method::DELETE, "/api/v1/namespaces/shop/pods/a")
        );
        assert_eq!(sent.body["preconditions"], json!({"uid": "u", "resourceVersion": "7"}));
        assert_eq!(sent.body["propagationPolicy"], "Background");
        let sent = request(
            &Action::evict(&pod, Some(5), why()),
            &pods,
            &OwnVersions::default(),
            FIELD_MANAGER,
        );
        assert!(sent.path.starts_with("/api/v1/namespaces/shop/pods/a/eviction"), "{}", sent.path);
        assert_eq!(sent.body["deleteOptions"]["preconditions"], json!({"uid": "u"}));
        assert_eq!(sent.body["deleteOptions"]["gracePeriodSeconds"], 5);
    }

    #[test]
    fn a_dry_run_is_told_where_the_server_reads_it() {
        let pod = apps::replica("a", "web-1", "2026-01-01T00:00:00Z").build();
        let sent = |action: &Action| {
            request(action, &resource("", "pods"), &OwnVersions::default(), FIELD_MANAGER).dry_run()
        };
        let delete = sent(&Action::delete(Verb::Delete, &pod, Propagation::Background, why()));
        assert_eq!(delete.body["dryRun"], json!(["All"]), "it has options in its body");
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let patch = sent(&Action::patch(Verb::Record, &pod, patch, why()));
        assert!(patch.path.ends_with("?fieldManager=convoy&dryRun=All"), "{}", patch.path);
        assert!(patch.body.get("dryRun").is_none());
    }

    #[test]
    fn objects_of_cluster_scope_have_no_namespace_in_their_path() {
        let nodes = Resource { namespaced: false, ..resource("", "nodes") };
        assert_eq!(nodes.collection(""), "/api/v1/nodes");
        assert_eq!(resource("", "pods").collection(""), "/api/v1/pods");
        let made = json!({"apiVersion": "v1", "kind": "Pod"});
        let create = Action::create(Verb::Create, POD.key("shop", "a"), made.clone(), why());
        let sent = request(&create, &resource("", "pods"), &OwnVersions::default(), FIELD_MANAGER);
        assert_eq!(sent.path, "/api/v1/namespaces/shop/pods?fieldManager=convoy");
        assert_eq!((sent.method, sent.body), (Method::POST, made));
        let old = json!({"apiVersion": "apps/v1beta1", "kind": "Deployment"});
        let create = Action::create(Verb::Create, DEPLOYMENT.key("shop", "a"), old, why());
        let sent = request(
            &create,
            &resource("apps", "deployments"),
            &OwnVersions::default(),
            FIELD_MANAGER,
        );
        assert!(sent.path.starts_with("/apis/apps/v1beta1/namespaces/"), "{}", sent.path);
    }
}
