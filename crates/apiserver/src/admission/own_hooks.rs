//! The webhooks of the dialects that a server has built in.

use std::sync::Arc;

use convoy_plan::Dialect;
use convoy_plan::admission::Role;

use super::hook::Hook;
use super::own::Own;
use crate::resource_request::ResourceRequest;
use crate::server::Server;

/// The built-in webhooks, called before those that users register.
#[derive(Debug, Default)]
pub(super) struct OwnHooks {
    mutating: Vec<Hook>,
    validating: Vec<Hook>,
}

impl Server {
    /// The same server, with the rules of these dialects about their own kinds built in.
    #[must_use]
    pub fn with_own_webhooks(self, dialects: &[&'static dyn Dialect]) -> Self {
        self.attached.set(OwnHooks::of_dialects(dialects));
        self
    }

    /// The built-in webhooks.
    pub(super) fn own_hooks(&self) -> Arc<OwnHooks> {
        self.attached.get(OwnHooks::default)
    }
}

impl OwnHooks {
    /// Those of these dialects.
    fn of_dialects(dialects: &[&'static dyn Dialect]) -> Self {
        let mut hooks = Self::default();
        for dialect in dialects {
            for webhook in dialect.webhooks() {
                let hook = Hook::own(Own { dialect: *dialect, webhook });
                match webhook.role {
                    Role::Mutates => hooks.mutating.extend(hook),
                    Role::Validates | Role::Warns | Role::Guards(_) => {
                        hooks.validating.extend(hook);
                    }
                }
            }
        }
        hooks
    }

    pub(super) fn mutating<'s>(
        &'s self,
        request: &'s ResourceRequest,
    ) -> impl Iterator<Item = &'s Hook> {
        self.mutating.iter().filter(|hook| hook.is_own_about(request))
    }

    pub(super) fn validating<'s>(
        &'s self,
        request: &'s ResourceRequest,
    ) -> impl Iterator<Item = &'s Hook> {
        self.validating.iter().filter(|hook| hook.is_own_about(request))
    }
}
