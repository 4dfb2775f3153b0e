//! When a change of a package's config may be taken up, and when every node knows of it.

use convoy_api::skyhook::PackageState;

use crate::dialect::skyhook::decide::lifecycle::is_package_complete;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::read::config::has_read_config;
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::state::NodeState;

/// The keys that count as changed once this change is taken up; none while it has to wait.
///
/// With the package complete everywhere, earlier changes are over and only these count. With
/// a node failing on its config, the change may be the cure and is added to them.
pub(crate) fn accepted(
    package: &Package<'_>,
    changed: &[&String],
    members: &[Member<'_>],
) -> Option<Vec<String>> {
    let fresh: Vec<String> = changed.iter().map(|key| (*key).clone()).collect();
    if is_complete(package, members) && !has_pods(package, members) {
        return Some(fresh);
    }
    let fails =
        |member: &Member<'_>| {
            member.assessed.state.get(&package.unique).is_some_and(|entry| {
                entry.state == PackageState::Erroring && has_read_config(entry)
            })
        };
    members.iter().any(fails).then(|| {
        let mut keys = fresh;
        keys.extend(package.updated.iter().cloned());
        keys.sort_unstable();
        keys.dedup();
        keys
    })
}

fn is_complete(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    members.iter().all(|member| is_package_complete(package, &member.assessed.state))
}

fn has_pods(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    let seen = members.iter().filter_map(|member| member.seen.as_ref());
    seen.flat_map(|seen| &seen.live).any(|live| live.tag.unique() == package.unique)
}

/// Whether a package is complete everywhere, and only its last pods are still to go.
pub(crate) fn is_leaving(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    is_complete(package, members) && has_pods(package, members)
}

/// Whether the node's own annotation already shows that the package starts over.
pub(crate) fn is_marked(hook: &Hook<'_>, package: &Package<'_>, member: &Member<'_>) -> bool {
    let at_work = member.seen.as_ref().is_some_and(|seen| {
        let mut live = seen.live.iter().filter(|live| live.tag.unique() == package.unique);
        live.any(|live| {
            live.tag.depends_on_config() && !live.tag.invalid && !live.pod.is_deleting()
        })
    });
    if at_work {
        return false;
    }
    let text = member.node.annotation(&hook.keys.node_state);
    let Some(Ok(state)) = text.map(NodeState::parse) else { return true };
    state.get(&package.unique).is_none_or(|entry| !has_read_config(entry))
}
