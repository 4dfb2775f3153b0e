//! A Skyhook as the engine sees it: read once from its object, defaults filled in.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::ViewError;
use convoy_api::object::member::member;
use convoy_api::skyhook::{Interrupt, InterruptionBudget, ResourceOverrides, SkyhookSpec};
use convoy_api::text::duration::GoDuration;
use convoy_api::{Object, skyhook as wire};
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::skyhook::names::{DISABLE, Keys, PAUSE, UNSCHEDULABLE, unique};
use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::options::Options;
use crate::selector::Selector;
use crate::taint::Toleration;
use crate::text::glob;

/// The priority of a Skyhook that does not name one.
const USUAL_PRIORITY: i64 = 200;

/// One Skyhook.
#[derive(Clone, Debug)]
pub(crate) struct Hook<'o> {
    pub(crate) object: &'o Object,
    pub(crate) keys: Keys,
    pub(crate) priority: i64,
    pub(crate) serial: bool,
    pub(crate) paused: bool,
    pub(crate) disabled: bool,
    pub(crate) runtime: Runtime,
    /// The nodes it targets.
    pub(crate) selector: Selector,
    /// Pods that have to finish by themselves.
    pub(crate) protected: Selector,
    /// Empty: no policy, the legacy budget counts.
    pub(crate) policy: String,
    pub(crate) budget: Option<InterruptionBudget>,
    /// Whether batch state is reset; absent: as the policy says.
    pub(crate) reset: Option<bool>,
    /// By name.
    pub(crate) packages: Vec<Package<'o>>,
}

/// The nodes that a Skyhook's status names as picked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picks<'o> {
    by_node: &'o Value,
}

impl<'o> Picks<'o> {
    /// When a node was picked.
    pub(crate) fn at(self, node: &str) -> Option<&'o str> {
        member(self.by_node, node)?.as_str()
    }

    /// The instants at which nodes were picked, each once.
    pub(crate) fn instants(self) -> BTreeSet<&'o str> {
        let entries = self.by_node.as_object().into_iter().flatten();
        entries.filter_map(|(_, at)| at.as_str()).collect()
    }
}

/// Whether the packages whose config changed are the same in both versions of a Skyhook.
pub(crate) fn has_same_config_updates(before: &Object, after: &Object) -> bool {
    before.status().get("configUpdates") == after.status().get("configUpdates")
}

/// Whether workloads wait for this Skyhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Optional,
    Required,
    /// And nodes never seen before get the taint.
    RequiredOfNewNodes,
}

/// One package of a Skyhook.
#[derive(Clone, Debug)]
pub(crate) struct Package<'o> {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) unique: String,
    /// Without a tag.
    pub(crate) image: String,
    pub(crate) container_sha: String,
    pub(crate) agent_image: Option<String>,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) config_interrupts: BTreeMap<String, Interrupt>,
    /// The interrupts in effect: those of changed config keys if any changed, its own otherwise.
    pub(crate) interrupts: Vec<Interrupt>,
    /// Unique names.
    pub(crate) depends_on: Vec<String>,
    pub(crate) config: BTreeMap<String, String>,
    /// The keys of its config that changed.
    pub(crate) updated: Vec<String>,
    /// As it was written, to be copied on.
    pub(crate) env: Option<&'o Vec<Value>>,
    pub(crate) resources: Option<ResourceOverrides>,
    pub(crate) grace_secs: Option<i64>,
}

impl<'o> Hook<'o> {
    /// Reads a Skyhook; which field does not fit, otherwise.
    pub(crate) fn read(object: &'o Object) -> Result<Self, ViewError> {
        let spec: SkyhookSpec = object.spec_view()?;
        let flag = |key| object.annotation(key) == Some("true");
        let runtime = match (spec.runtime_required, spec.auto_taint_new_nodes) {
            (Some(true), Some(true)) => Runtime::RequiredOfNewNodes,
            (Some(true), _) => Runtime::Required,
            _ => Runtime::Optional,
        };
        Ok(Self {
            object,
            keys: Keys::of(object.name()),
            priority: spec.priority.unwrap_or(USUAL_PRIORITY),
            serial: spec.serial.unwrap_or(false),
            paused: flag(PAUSE),
            disabled: flag(DISABLE),
            runtime,
            selector: targets(object)?,
            protected: selector(object, "podNonInterruptLabels")?,
            policy: spec.deployment_policy.unwrap_or_default(),
            budget: spec.interruption_budget,
            reset: spec
                .deployment_policy_options
                .and_then(|options| options.reset_batch_state_on_completion),
            packages: packages(object, spec.packages.unwrap_or_default()),
        })
    }

    pub(crate) fn name(&self) -> &SmolStr {
        self.object.name()
    }

    /// Who goes first on a node: lower priority, then name.
    pub(crate) fn order(&self) -> (i64, &str) {
        (self.priority, self.name())
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package<'o>> {
        let at = self.packages.binary_search_by(|package| package.name.as_str().cmp(name)).ok()?;
        self.packages.get(at)
    }

    /// Whether people asked it to stand still.
    pub(crate) fn stands_still(&self) -> bool {
        self.paused || self.disabled
    }

    pub(crate) fn runtime_required(&self) -> bool {
        self.runtime != Runtime::Optional
    }

    /// The status word that was last published. The status is read field by field: as a whole it
    /// names up to ten thousand picked nodes, which would be parsed for one word.
    pub(crate) fn published_word(&self) -> Option<&'o str> {
        self.object.status().get("status").and_then(Value::as_str)
    }

    /// The packages that were last published, by name and version; none if there were none.
    pub(crate) fn published_packages(&self) -> Option<impl Iterator<Item = (&'o str, &'o str)>> {
        let list = self.object.status().get("packageList").and_then(Value::as_str);
        let list = list.filter(|list| !list.is_empty())?;
        Some(list.split(',').filter_map(|item| item.split_once(':')))
    }

    /// The batch state that was last published of a compartment.
    pub(crate) fn published_batch(&self, compartment: &str) -> BatchState {
        let all = self.object.status().get("compartmentStatuses");
        BatchState::read(all.and_then(|all| all.get(compartment)?.get("batchState")))
    }

    /// The nodes that were picked and are not complete, with when.
    pub(crate) fn published_picks(&self) -> Picks<'o> {
        Picks { by_node: self.object.status().get("nodePriority").unwrap_or(&Value::Null) }
    }

    /// The boot of a node that was last published.
    pub(crate) fn published_boot(&self, node: &str) -> Option<&'o str> {
        self.object.status().get("nodeBootIds")?.get(node)?.as_str()
    }

    /// What its choice of nodes tolerates.
    pub(crate) fn tolerations<'t>(&'t self, options: &'t Options) -> Vec<Toleration<'t>> {
        let mut tolerations = vec![Toleration {
            key: UNSCHEDULABLE,
            operator: "Exists",
            value: "",
            effect: "NoSchedule",
        }];
        if self.runtime_required() {
            let taint = &options.runtime_taint;
            tolerations.push(Toleration {
                key: &taint.key,
                operator: "Equal",
                value: &taint.value,
                effect: &taint.effect,
            });
        }
        tolerations.extend(self.additional_tolerations().iter().map(Toleration::from_value));
        tolerations
    }

    /// As they were written.
    pub(crate) fn additional_tolerations(&self) -> &'o [Value] {
        let list = self.object.spec().get("additionalTolerations").and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// `name:version` of every package, sorted, joined by commas.
    pub(crate) fn package_list(&self) -> String {
        let list: Vec<String> = self
            .packages
            .iter()
            .map(|package| format!("{}:{}", package.name, package.version))
            .collect();
        list.join(",")
    }
}

impl Package<'_> {
    /// Whether it ends with an interrupt and what follows it.
    pub(crate) fn has_interrupt(&self) -> bool {
        !self.interrupts.is_empty()
    }
}

/// The policy that a Skyhook names. Read from the JSON: it is asked of every Skyhook whenever a
/// policy changes, and the typed view would parse all packages for it.
pub(crate) fn policy_name(skyhook: &Object) -> Option<&str> {
    skyhook.spec().get("deploymentPolicy").and_then(Value::as_str)
}

/// The nodes that a Skyhook targets.
pub(crate) fn targets(object: &Object) -> Result<Selector, ViewError> {
    selector(object, "nodeSelectors")
}

fn selector(object: &Object, field: &str) -> Result<Selector, ViewError> {
    let value = object.spec().get(field).unwrap_or(&Value::Null);
    Selector::from_value(value).map_err(|error| {
        let below = if error.field.is_empty() { "" } else { "." };
        ViewError { field: format!("spec.{field}{below}{}", error.field), message: error.message }
    })
}

fn packages(object: &Object, wire: BTreeMap<String, wire::Package>) -> Vec<Package<'_>> {
    let updates = object.status().get("configUpdates");
    let raw = object.spec().get("packages");
    let read = |(name, package): (String, wire::Package)| {
        let updated = updates.and_then(|updates| updates.get(&name)).and_then(Value::as_array);
        let updated = updated.into_iter().flatten().filter_map(Value::as_str);
        let mut updated: Vec<String> = updated.map(str::to_owned).collect();
        updated.sort_unstable();
        updated.dedup();
        let config_interrupts = package.config_interrupts.unwrap_or_default();
        let depends_on = package.depends_on.unwrap_or_default();
        Package {
            interrupts: in_effect(package.interrupt.as_ref(), &config_interrupts, &updated),
            unique: unique(&name, &package.version),
            env: raw.and_then(|raw| raw.get(&name)?.get("env")?.as_array()),
            name,
            version: package.version,
            image: without_tag(&package.image).to_owned(),
            container_sha: package.container_sha.unwrap_or_default(),
            agent_image: package.agent_image_override.filter(|image| !image.is_empty()),
            interrupt: package.interrupt,
            config_interrupts,
            depends_on: depends_on.iter().map(|(name, version)| unique(name, version)).collect(),
            config: package.config_map.unwrap_or_default(),
            updated,
            resources: package.resources,
            grace_secs: package.graceful_shutdown.as_deref().and_then(grace_secs),
        }
    };
    wire.into_iter().map(read).collect()
}

fn grace_secs(text: &str) -> Option<i64> {
    text.parse::<GoDuration>().ok().map(GoDuration::as_secs)
}

/// Once config keys changed, only what they ask for counts, each disturbance once.
fn in_effect(
    own: Option<&Interrupt>,
    by_key: &BTreeMap<String, Interrupt>,
    updated: &[String],
) -> Vec<Interrupt> {
    if updated.is_empty() {
        return own.cloned().into_iter().collect();
    }
    let touched = |pattern: &str| updated.iter().any(|changed| glob::matches(pattern, changed));
    let mut interrupts: Vec<Interrupt> = by_key
        .iter()
        .filter(|(pattern, _)| touched(pattern))
        .map(|(_, interrupt)| interrupt.clone())
        .collect();
    interrupts.sort();
    interrupts.dedup();
    interrupts
}

/// An image without its tag, which stands after the last `/` only: a registry's port stays.
pub(crate) fn without_tag(image: &str) -> &str {
    let path = image.rfind('/').map_or(0, |slash| slash + 1);
    match image[path..].find([':', '@']) {
        Some(at) if image[path + at..].starts_with(':') => &image[..path + at],
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_cut_and_a_port_is_kept() {
        let cases = [
            ("ghcr.io/x/y", "ghcr.io/x/y"),
            ("ghcr.io/x/y:1.2", "ghcr.io/x/y"),
            ("host:5000/x", "host:5000/x"),
            ("host:5000/x:tag", "host:5000/x"),
            ("busybox:bogus", "busybox"),
        ];
        for (image, cut) in cases {
            assert_eq!(without_tag(image), cut);
        }
    }
}
