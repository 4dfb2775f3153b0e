//! What one container of one pod does: the scenario's latencies, then its rules in order, then
//! the rules and the other annotations of the node, then those of the pod.

use convoy_api::object::member::{field, list, text};
use serde::Deserialize;
use serde_json::Value;

use super::{Condition, Latency, Rule, Scenario};
use crate::seed::Seed;

/// What annotations of ours begin with.
pub const PREFIX: &str = "sim.convoy.dev/";

/// The annotation of a node with rules for its pods, as in a scenario file.
const RULES: &str = "rules";

/// What a rule or an annotation changes; absent stays as it was.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Adjustment {
    pub pull: Option<Latency>,
    pub start: Option<Latency>,
    pub ready: Option<Latency>,
    pub stop: Option<Latency>,
    /// How long an init container runs.
    pub init: Option<Latency>,
    /// After so long the container ends with exit code 0.
    pub completes: Option<Latency>,
    pub fails: Option<Failure>,
    /// How long a container runs before it crashes.
    pub after: Option<Latency>,
    /// How often a crash or an image error happens before all is well; absent: always.
    pub times: Option<u32>,
    pub exit_code: Option<i32>,
    /// The machine reboots for so long in place of the first end of the container.
    pub reboots: Option<Latency>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Whatever earlier rules and rates say, it does not fail.
    Never,
    NeverReady,
    Crash,
    ImagePullError,
}

/// Everything about one container, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    pub pull: Latency,
    pub start: Latency,
    pub ready: Latency,
    pub stop: Latency,
    pub init: Latency,
    pub completes: Option<Latency>,
    pub failure: Failure,
    pub after: Latency,
    pub times: u32,
    pub exit_code: i32,
    pub reboots: Option<Latency>,
    /// An annotation that could not be understood; the container does not start.
    pub complaint: Option<String>,
}

impl Scenario {
    /// What `container` of `pod` does on `node`, whose object may be unknown.
    pub fn behaviour(&self, pod: &Value, container: &Value, node: &Value) -> Behaviour {
        let mut total = Adjustment::default();
        let node_name = text(field(pod, "spec"), "nodeName");
        let mut complaint = None;
        let of_node = annotated_rules(node).unwrap_or_else(|message| {
            complaint = Some(message);
            Vec::new()
        });
        for rule in self.rules.iter().chain(&of_node) {
            if rule.when.holds(pod, container, node_name) {
                total.add(rule.then);
            }
        }
        for object in [node, pod] {
            match Adjustment::annotated(object) {
                Ok(adjustment) => total.add(adjustment),
                Err(message) => complaint = Some(message),
            }
        }
        let latencies = self.latencies;
        let is_job = || controller_kind(pod) == "Job";
        Behaviour {
            pull: total.pull.unwrap_or(latencies.pull),
            start: total.start.unwrap_or(latencies.start),
            ready: total.ready.unwrap_or(latencies.ready),
            stop: total.stop.unwrap_or(latencies.stop),
            init: total.init.unwrap_or(latencies.init),
            completes: total.completes.or_else(|| is_job().then_some(latencies.job)),
            failure: total.fails.unwrap_or_else(|| self.failure_by_chance(pod)),
            after: total.after.unwrap_or(Latency::from_millis(1_000, 1_000)),
            times: total.times.unwrap_or(u32::MAX),
            exit_code: total.exit_code.unwrap_or(1),
            reboots: total.reboots,
            complaint,
        }
    }

    /// One draw per pod, so that the rates are shares of the pods and exclude each other.
    fn failure_by_chance(&self, pod: &Value) -> Failure {
        let uid = text(field(pod, "metadata"), "uid");
        let drawn = f64::from(Seed::new(self.seed).child("failure", uid).millionths()) / 1e6;
        let rates = self.rates;
        let mut bound = 0.0;
        let shares = [
            (rates.crash, Failure::Crash),
            (rates.image_pull_error, Failure::ImagePullError),
            (rates.never_ready, Failure::NeverReady),
        ];
        for (rate, failure) in shares {
            bound += rate;
            if drawn < bound {
                return failure;
            }
        }
        Failure::Never
    }
}

impl Adjustment {
    fn add(&mut self, later: Self) {
        let Self { pull, start, ready, stop, init, completes, .. } = later;
        let Self { fails, after, times, exit_code, reboots, .. } = later;
        *self = Self {
            pull: pull.or(self.pull),
            start: start.or(self.start),
            ready: ready.or(self.ready),
            stop: stop.or(self.stop),
            init: init.or(self.init),
            completes: completes.or(self.completes),
            fails: fails.or(self.fails),
            after: after.or(self.after),
            times: times.or(self.times),
            exit_code: exit_code.or(self.exit_code),
            reboots: reboots.or(self.reboots),
        };
    }

    /// What the annotations of an object say; the names are those of the fields, with dashes.
    fn annotated(object: &Value) -> Result<Self, String> {
        let mut found = Self::default();
        let annotations = field(field(object, "metadata"), "annotations").as_object();
        for (key, value) in annotations.into_iter().flatten() {
            let Some(name) = key.strip_prefix(PREFIX) else { continue };
            let value = value.as_str().unwrap_or_default();
            let understood = found.set(name, value);
            understood.map_err(|message| format!("annotation {key}: {message}"))?;
        }
        Ok(found)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let latency = || value.parse::<Latency>().map(Some).map_err(|error| error.to_string());
        let wrong = |want: &str| format!("{value:?}: want {want}");
        match name {
            "pull" => self.pull = latency()?,
            "start" => self.start = latency()?,
            "ready" => self.ready = latency()?,
            "stop" => self.stop = latency()?,
            "init" => self.init = latency()?,
            "completes" => self.completes = latency()?,
            "after" => self.after = latency()?,
            "reboots" => self.reboots = latency()?,
            "times" => {
                self.times = Some(value.parse().map_err(|_| wrong("a whole number"))?);
            }
            "exit-code" => {
                self.exit_code = Some(value.parse().map_err(|_| wrong("a whole number"))?);
            }
            "fails" => {
                let parsed = Failure::deserialize(Value::from(value));
                let want = "never, never-ready, crash or image-pull-error";
                self.fails = Some(parsed.map_err(|_| wrong(want))?);
            }
            // Others are about nodes, or notes of people.
            _ => {}
        }
        Ok(())
    }
}

impl Condition {
    fn holds(&self, pod: &Value, container: &Value, node: &str) -> bool {
        let metadata = field(pod, "metadata");
        let labels = field(metadata, "labels");
        let is = |pattern: &Option<super::Pattern>, value: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(value))
        };
        is(&self.image, text(container, "image"))
            && is(&self.namespace, text(metadata, "namespace"))
            && is(&self.node, node)
            && is(&self.container, text(container, "name"))
            && (self.command.is_none() || is(&self.command, &command(container)))
            && self.env.iter().all(|(name, wanted)| wanted.matches(variable(container, name)))
            && self.package.as_ref().is_none_or(|package| package.holds(pod, container))
            && self.labels.iter().all(|(key, value)| text(labels, key) == value)
    }
}

/// What a container runs, as one line.
fn command(container: &Value) -> String {
    let words = ["command", "args"].into_iter().flat_map(|part| list(container, part));
    words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// The value of a container's variable, where it is given outright.
fn variable<'c>(container: &'c Value, name: &str) -> &'c str {
    let mut variables = list(container, "env").iter();
    variables.find(|variable| text(variable, "name") == name).map_or("", |it| text(it, "value"))
}

/// The rules that a node brings for its own pods.
fn annotated_rules(node: &Value) -> Result<Vec<Rule>, String> {
    let annotations = field(field(node, "metadata"), "annotations");
    let key = format!("{PREFIX}{RULES}");
    let Some(rules) = annotations.get(&key).and_then(Value::as_str) else { return Ok(Vec::new()) };
    serde_saphyr::from_str(rules).map_err(|error| format!("annotation {key}: {error}"))
}

fn controller_kind(pod: &Value) -> &str {
    let owners = list(field(pod, "metadata"), "ownerReferences");
    let controller = owners.iter().find(|owner| field(owner, "controller") == &Value::Bool(true));
    controller.map_or("", |owner| text(owner, "kind"))
}
