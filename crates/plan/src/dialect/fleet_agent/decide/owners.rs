//! Whose an object on the member is, and whether this Work may have it.

use convoy_api::Object;
use convoy_api::object::meta::OwnerReference;

use crate::dialect::fleet_agent::names::APPLIED_WORK;

/// Who owns an object, seen from one Work.
#[derive(Clone, Debug)]
pub(crate) struct Owners<'o> {
    pub(crate) is_ours: bool,
    /// All others, without Works that are gone: they are left over from an earlier membership.
    pub(crate) others: Vec<OwnerReference<'o>>,
}

impl<'o> Owners<'o> {
    /// `work_exists` says whether the member has a Work of a name.
    pub(crate) fn of(
        live: &'o Object,
        applied_work: &Object,
        work_exists: impl Fn(&str) -> bool,
    ) -> Self {
        let is_ours = |owner: &OwnerReference<'_>| Some(owner.uid) == applied_work.uid();
        // One that goes by this Work's name stood for it before.
        let is_live = |name: &str| name != applied_work.name() && work_exists(name);
        let mut owners = Self { is_ours: false, others: Vec::new() };
        for owner in live.owners() {
            if is_ours(&owner) {
                owners.is_ours = true;
            } else if !is_applied_work(&owner) || is_live(owner.name) {
                owners.others.push(owner);
            }
        }
        owners
    }

    /// Why the object cannot belong to this Work too.
    pub(crate) fn conflict(&self, allow_co_ownership: bool) -> Option<String> {
        let shown = |owner: &OwnerReference<'_>| format!("{} {}", owner.kind, owner.name);
        if let Some(work) = self.others.iter().find(|owner| is_applied_work(owner)) {
            return Some(format!(
                "the object belongs to Work {} already; an object can be placed once",
                work.name
            ));
        }
        let first = self.others.first().filter(|_| !allow_co_ownership)?;
        Some(format!(
            "the object belongs to {} already; set applyStrategy.allowCoOwnership to share it",
            shown(first)
        ))
    }
}

fn is_applied_work(owner: &OwnerReference<'_>) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    owner.kind == APPLIED_WORK.kind && group == APPLIED_WORK.group
}
