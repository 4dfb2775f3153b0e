//! Logs of pods. No container runs here; its log is what happened to its pod, one line each.

use bytes::Bytes;
use convoy_api::schema::{FieldError, Reason};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::handler_response::HandlerResponse;
use crate::metadata;
use crate::resource_request::ResourceRequest;
use crate::response;
use crate::status::{ApiResult, Status};

/// The part of a log that the query selects.
#[derive(Debug, Default)]
struct Options {
    since: Option<Timestamp>,
    tail: Option<usize>,
    bytes: Option<usize>,
    timestamps: bool,
}

/// A log never grows while it is read, so following it ends with its last line.
pub(super) fn get(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let name = &request.target.name;
    let options = Options::read(request)?;
    let snapshot = request.server.store.snapshot();
    let Some(entry) = snapshot.get(&request.key(name)) else {
        return Err(Status::not_found(&request.resource, name));
    };
    let pod = request.read(entry);
    let container = container(&pod, request.query.get("container").unwrap_or_default())?;
    if !node_of(&pod).is_empty() {
        let previous = request.query.flag("previous");
        has_log(&pod, &container, previous).map_err(Status::bad_request)?;
    }
    let text = options.cut(&lines(&pod, &container));
    Ok(HandlerResponse::Raw(response::bytes(200, "text/plain", Bytes::from(text))))
}

impl Options {
    fn read(request: &ResourceRequest) -> ApiResult<Self> {
        let mut errors = Vec::new();
        let mut count = |field: &str, least: i64| -> ApiResult<Option<i64>> {
            let value = request.query.integer(field)?;
            if let Some(value) = value.filter(|value| *value < least) {
                let detail = match least {
                    0 => "must be greater than or equal to 0",
                    _ => "must be greater than 0",
                };
                errors.push(FieldError::invalid(field, &json!(value), detail));
            }
            Ok(value)
        };
        let tail = count("tailLines", 0)?;
        let bytes = count("limitBytes", 1)?;
        let seconds = count("sinceSeconds", 1)?;
        let time = request.query.get("sinceTime").filter(|time| !time.is_empty());
        if seconds.is_some() && time.is_some() {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::plain(Reason::Forbidden, "", detail));
        }
        if !errors.is_empty() {
            return Err(Status::invalid_thing("PodLogOptions", &request.target.name, &errors));
        }
        let since = match (seconds, time) {
            (Some(seconds), _) => {
                request.server.now().checked_sub(SignedDuration::from_secs(seconds)).ok()
            }
            (None, Some(time)) => Some(time.parse().map_err(|_| {
                Status::bad_request(format!("the value {time:?} of sinceTime is not a time"))
            })?),
            (None, None) => None,
        };
        let size = |value: Option<i64>| value.and_then(|value| usize::try_from(value).ok());
        Ok(Self {
            since,
            tail: size(tail),
            bytes: size(bytes),
            timestamps: request.query.flag("timestamps"),
        })
    }

    fn cut(&self, lines: &[(Timestamp, String)]) -> String {
        let recent: Vec<_> = lines
            .iter()
            .filter(|(time, _)| self.since.is_none_or(|since| *time >= since))
            .collect();
        let skipped = self.tail.map_or(0, |tail| recent.len().saturating_sub(tail));
        let mut text = String::new();
        for (time, line) in &recent[skipped..] {
            if self.timestamps {
                text.push_str(&time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z ").to_string());
            }
            text.push_str(line);
            text.push('\n');
        }
        if let Some(most) = self.bytes.filter(|most| *most < text.len()) {
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
        }
        text
    }
}

/// The container that is meant: named, marked as the default, or the only one.
fn container(pod: &Value, asked: &str) -> ApiResult<String> {
    let name = metadata::text(pod, "name");
    let names = |list: &str| -> Vec<&str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|one| one["name"].as_str()).collect()
    };
    let (regular, init) = (names("containers"), names("initContainers"));
    let all = [regular.clone(), init.clone(), names("ephemeralContainers")].concat();
    if !asked.is_empty() {
        return if all.contains(&asked) {
            Ok(asked.to_owned())
        } else {
            Err(Status::bad_request(format!("container {asked} is not valid for pod {name}")))
        };
    }
    let marked = &pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
    if let Some(marked) = marked.as_str().filter(|marked| all.contains(marked)) {
        return Ok(marked.to_owned());
    }
    if let [only] = regular[..] {
        return Ok(only.to_owned());
    }
    let mut message = format!(
        "a container name must be specified for pod {name}, choose one of: [{}]",
        regular.join(" ")
    );
    if !init.is_empty() {
        message = format!("{message} or one of the init containers: [{}]", init.join(" "));
    }
    Err(Status::bad_request(message))
}

fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Whether a container has started, or with `previous` has ended before; why it has no log, in the
/// words of a kubelet.
fn has_log(pod: &Value, container: &str, previous: bool) -> Result<(), String> {
    let named = format!("container {container:?} in pod {:?}", metadata::text(pod, "name"));
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut statuses =
        lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    let Some(status) = statuses.find(|status| status["name"] == container) else {
        return Err(format!("{named} is not available"));
    };
    let (state, last) = (&status["state"], &status["lastState"]);
    if previous {
        let has_ended = last.get("terminated").is_some();
        return has_ended
            .then_some(())
            .ok_or_else(|| format!("previous terminated {named} not found"));
    }
    if ["running", "terminated"].iter().any(|name| state.get(name).is_some())
        || last.get("terminated").is_some()
    {
        return Ok(());
    }
    let why = match state["waiting"]["reason"].as_str() {
        Some("ErrImagePull") => ": image can't be pulled".to_owned(),
        Some("ImagePullBackOff") => ": trying and failing to pull image".to_owned(),
        Some(reason) => format!(": {reason}"),
        None => " - no logs yet".to_owned(),
    };
    Err(format!("{named} is waiting to start{why}"))
}

/// What is known to have happened, in order. A pod without a node has no log.
fn lines(pod: &Value, container: &str) -> Vec<(Timestamp, String)> {
    let node = node_of(pod);
    if node.is_empty() {
        return Vec::new();
    }
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    if let Some(at) = time(&pod["metadata"]["creationTimestamp"]) {
        lines.push((at, format!("simulated container {container} on node {node}")));
    }
    if let Some(at) = time(&pod["status"]["startTime"]) {
        lines.push((at, "started".to_owned()));
    }
    for condition in pod["status"]["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap_or_default();
        let status = condition["status"].as_str().unwrap_or_default();
        if let Some(at) = time(&condition["lastTransitionTime"]) {
            lines.push((at, format!("condition {kind} is {status}")));
        }
    }
    if let Some(at) = time(&pod["metadata"]["deletionTimestamp"]) {
        lines.push((at, "stopping".to_owned()));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]},
            "status": {"startTime": "2026-01-01T00:00:01Z", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:02Z"}]}})
    }

    #[test]
    fn options_cut_the_log() {
        let lines = lines(&pod(), "a");
        assert_eq!(lines.len(), 3);
        let cut = |options: Options| options.cut(&lines);
        assert_eq!(
            cut(Options { tail: Some(1), ..Options::default() }),
            "condition Ready is True\n"
        );
        assert_eq!(cut(Options { tail: Some(0), ..Options::default() }), "");
        let since = Some("2026-01-01T00:00:01Z".parse().unwrap());
        assert_eq!(
            cut(Options { since, ..Options::default() }),
            "started\ncondition Ready is True\n"
        );
        assert_eq!(cut(Options { bytes: Some(9), ..Options::default() }), "simulated");
        let stamped = cut(Options { tail: Some(1), timestamps: true, ..Options::default() });
        assert!(stamped.starts_with("2026-01-01T00:00:02.000000000Z condition"), "{stamped}");
    }

    #[test]
    fn a_container_that_has_not_started_has_no_log() {
        let mut pod = pod();
        let mut told = |state: Value, last: Value, previous: bool| {
            pod["status"]["containerStatuses"] =
                json!([{"name": "a", "state": state, "lastState": last}]);
            has_log(&pod, "a", previous).err().unwrap_or_default()
        };
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let named = "container \"a\" in pod \"p\"";
        let starts = format!("{named} is waiting to start");
        assert_eq!(told(json!({"running": {}}), json!({}), false), "");
        assert_eq!(told(json!({"terminated": {}}), json!({}), false), "");
        assert_eq!(told(waiting("CrashLoopBackOff"), json!({"terminated": {}}), false), "");
        let creating = told(waiting("ContainerCreating"), json!({}), false);
        assert_eq!(creating, format!("{starts}: ContainerCreating"));
        let pulling = told(waiting("ImagePullBackOff"), json!({}), false);
        assert_eq!(pulling, format!("{starts}: trying and failing to pull image"));
        let before = told(json!({"running": {}}), json!({}), true);
        assert_eq!(before, format!("previous terminated {named} not found"));
        assert_eq!(told(json!({"running": {}}), json!({"terminated": {}}), true), "");
        assert!(has_log(&pod, "b", false).is_err());
    }

    #[test]
    fn one_container_is_meant() {
        assert_eq!(container(&pod(), "b").unwrap(), "b");
        let refused = container(&pod(), "").unwrap_err();
        assert_eq!(
            refused.message,
            "a container name must be specified for pod p, choose one of: [a b]"
        );
        assert_eq!(
            container(&pod(), "x").unwrap_err().message,
            "container x is not valid for pod p"
        );
        let mut marked = pod();
        marked["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/default-container": "b"});
        assert_eq!(container(&marked, "").unwrap(), "b");
    }
}
