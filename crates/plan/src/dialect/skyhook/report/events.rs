//! The events of a decision, in the words of upstream's operator.

use convoy_api::ObjectKey;
use convoy_api::skyhook::{Stage, StatusWord};

use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::safety::passed_by_failures;
use crate::dialect::skyhook::names::SAFETY_PROGRESS;
use crate::dialect::skyhook::read::node::word_text;
use crate::dialect::skyhook::read::state::stage_word;
use crate::dialect::skyhook::write::orphan::package_result;
use crate::step::{Event, EventType};

/// What people watching the objects are told.
pub(crate) fn events(decision: &Decision<'_, '_>, rolled_up: StatusWord) -> Vec<Event> {
    let skyhook = decision.hook.name();
    let on_skyhook = decision.hook.object.key();
    let mut events = Vec::new();
    let mut tell = |regarding: &ObjectKey, reason: &str, message: String| {
        events.push(Event::new(regarding, EventType::Normal, reason, message));
    };
    for (index, member) in decision.members.iter().enumerate() {
        let (on_node, node) = (member.node.key(), member.node.name());
        if member.rebooted {
            let message = format!("detected reboot, resetting node [{node}] to be reapplied");
            tell(on_skyhook, "Reboot", message.clone());
            tell(on_node, "Reboot", message);
        }
        for (name, version, state) in member.seen.iter().flat_map(|seen| &seen.results) {
            tell(on_node, "Apply", package_result(skyhook, name, version, *state));
        }
        let came_from = [StatusWord::InProgress, StatusWord::Erroring, StatusWord::Waiting];
        if member.is_complete() && member.observed.is_some_and(|word| came_from.contains(&word)) {
            tell(on_node, "State", format!("Skyhook [{skyhook}] complete."));
        }
        let Some(plan) = decision.plan(index) else { continue };
        if !plan.evictions.is_empty() {
            let package = &plan.drained_for;
            let message =
                format!("draining node [{node}] package [{package}] from [skyhook:{skyhook}]");
            tell(on_node, "Interrupt", message);
        }
        for pod in &plan.pods {
            let package = format!("{}:{}", pod.entry.name, pod.entry.version);
            if pod.entry.stage == Stage::Interrupt {
                let message = format!(
                    "Interrupting node [{node}] package [{package}] from [skyhook:{skyhook}]"
                );
                tell(on_skyhook, "Interrupt", message);
                continue;
            }
            let stage = stage_word(pod.entry.stage);
            let what = format!("Applying package [{package}]");
            tell(on_node, "Apply", format!("{what} from [skyhook:{skyhook}] stage [{stage}]"));
            tell(on_skyhook, "Apply", format!("{what} to node [{node}] stage [{stage}]"));
        }
    }
    let old = decision.hook.published_word().unwrap_or("unknown");
    let new = word_text(rolled_up);
    if old != new {
        tell(on_skyhook, "State", format!("Skyhook transitioned [{old}] -> [{new}]"));
    }
    for passed in passed_by_failures(decision).filter(|passed| passed.is_new) {
        let message = format!(
            "{}. To count only completed nodes as progress, annotate DeploymentPolicy {} with \
             {SAFETY_PROGRESS}=completed",
            passed.text(),
            decision.hook.policy
        );
        events.push(Event::new(on_skyhook, EventType::Warning, "SafetyLimitPassed", message));
    }
    events
}
