//! Webhooks that the server has built in: those of the dialects, answered in process by the
//! same functions that `convoy run` serves on other API servers.

use std::fmt;

use convoy_api::Object;
use convoy_api::rbac::{AccessTarget, Attributes};
use convoy_plan::admission::{
    Circumstances, GuardedKinds, NeededRight, Role, Webhook, answer, rights,
};
use convoy_plan::{Dialect, World};
use serde_json::Value;

use crate::encoding;
use crate::resource_request::ResourceRequest;

/// A built-in webhook and its dialect.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) dialect: &'static dyn Dialect,
    pub(super) webhook: &'static Webhook,
}

impl Own {
    pub(super) fn webhook(&self) -> &'static Webhook {
        self.webhook
    }

    /// Whether a request is about its kind. Told without looking at the object: nearly all
    /// requests are about others.
    pub(super) fn is_about(&self, request: &ResourceRequest) -> bool {
        let about = &self.webhook.about;
        if let Role::Guards(guarded) = self.webhook.role {
            // The fleet is that of the first cluster; its members have their own rules.
            let group = request.resource.group.as_str();
            let names = |it: &GuardedKinds| it.group == "*" || it.group == group;
            return request.cluster.name.is_empty() && guarded.kinds.iter().any(names);
        }
        request.target.subresource.is_empty()
            && request.resource.is(&about.kind.group, about.plural)
    }

    /// What it says to a review.
    pub(super) fn call(&self, request: &ResourceRequest, review: &Value) -> Result<Value, String> {
        let world = self.beside(request);
        let mut denied = rights(self.dialect, self.webhook, review);
        denied.retain(|right| !may(request, right));
        let circumstances = Circumstances { now: request.server.now(), denied: &denied };
        let answer = answer(self.dialect, self.webhook, &world, review, circumstances);
        answer.ok_or_else(|| "what was sent is no review".to_owned())
    }

    /// What the store holds of the kinds that it looks at.
    fn beside(&self, request: &ResourceRequest) -> World {
        let snapshot = request.server.store.snapshot();
        let mut world = World::new();
        for served in self.webhook.beside {
            let group = &served.kind.group;
            let Some(resource) = request.registry.get(group, served.version, served.plural) else {
                continue; // its definition is not there, so it has no objects
            };
            let entries = snapshot.list(&request.cluster.shelf(resource));
            let objects = entries.map(|entry| Object::from_value(encoding::read_entry(entry)));
            for object in objects.filter_map(Result::ok) {
                world.insert(object);
            }
        }
        world
    }
}

/// Whether the caller has a right.
fn may(request: &ResourceRequest, right: &NeededRight) -> bool {
    let NeededRight { verb, group, resource, subresource, namespace, name } = right;
    let target = AccessTarget::Resource { group, resource, subresource, name };
    let attributes = Attributes { verb, namespace, target };
    request.guard().may(&request.caller, &attributes)
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Own").field(&self.webhook.name).finish()
    }
}
