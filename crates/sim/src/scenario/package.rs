//! Rules about the packages of Skyhooks: which stage, of which package, on which node, and which
//! of the containers that carry it out.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use convoy_api::object::member::{field, list, text};
use convoy_api::skyhook::names::PACKAGE;
use serde::Deserialize;
use serde_json::Value;

use super::Pattern;

/// Which package pods, and which of their containers; all that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PackageCondition {
    pub skyhook: Option<Pattern>,
    pub name: Option<Pattern>,
    pub version: Option<Pattern>,
    pub stage: Option<Pattern>,
    /// What an interrupt is to do, in the agent's words.
    pub interrupt: Option<Pattern>,
    pub step: Step,
}

/// The containers of a package's pod, in their order.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Copies the package to the node; the only one that has the package's own image.
    Init,
    /// Carries out the stage, or the interrupt.
    #[default]
    Run,
    /// Looks whether the stage did what it should.
    Check,
}

impl PackageCondition {
    pub(super) fn holds(&self, pod: &Value, container: &Value) -> bool {
        let Some(tag) = tag(pod) else { return false };
        let is = |pattern: &Option<Pattern>, value: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(value))
        };
        let stage = text(&tag, "stage");
        step(text(container, "name"), stage) == Some(self.step)
            && is(&self.skyhook, text(&tag, "skyhook"))
            && is(&self.name, text(&tag, "name"))
            && is(&self.version, text(&tag, "version"))
            && is(&self.stage, stage)
            && self.interrupt.as_ref().is_none_or(|wanted| {
                order(container).is_some_and(|order| wanted.matches(text(&order, "type")))
            })
    }
}

fn tag(pod: &Value) -> Option<Value> {
    let annotations = field(field(pod, "metadata"), "annotations");
    serde_json::from_str(annotations.get(PACKAGE)?.as_str()?).ok()
}

fn step(container: &str, stage: &str) -> Option<Step> {
    if container == "interrupt" {
        return Some(Step::Run);
    }
    let rest = container.strip_suffix(stage).or_else(|| container.strip_suffix("init"));
    if rest.is_some_and(|package| package.ends_with('-')) {
        return Some(if container.ends_with(stage) { Step::Run } else { Step::Init });
    }
    let checked = container.strip_suffix("check")?.strip_suffix(stage)?;
    checked.ends_with('-').then_some(Step::Check)
}

/// What an interrupt's container is told to do.
fn order(container: &Value) -> Option<Value> {
    let argument = list(container, "args").get(3)?.as_str()?;
    serde_json::from_slice(&BASE64_STANDARD.decode(argument).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_tell_their_step_by_their_name() {
        let cases = [
            ("driver-init", "apply", Some(Step::Init)),
            ("driver-apply", "apply", Some(Step::Run)),
            ("driver-applycheck", "apply", Some(Step::Check)),
            ("driver-post-interruptcheck", "post-interrupt", Some(Step::Check)),
            ("health-check-config", "config", Some(Step::Run)),
            ("interrupt", "interrupt", Some(Step::Run)),
            ("pause", "apply", None),
        ];
        for (container, stage, expected) in cases {
            assert_eq!(step(container, stage), expected, "{container}");
        }
    }
}
