//! Refused objects take no part in the decisions of the dialect that refuses them. A member
//! that nobody can read would then look like one that left, and its work would be deleted or
//! its place given away. So whoever hangs on a refused object stands still and says so, and
//! everybody else goes on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{Object, ObjectKey};

use crate::diagnostic::{Diagnostic, Severity};
use crate::dialect::Dialect;
use crate::hold::{Hold, HoldReason};
use crate::world::World;

/// The objects of a world that validation refuses, each with the first error about it.
#[derive(Debug)]
pub(crate) struct Refusals<'d> {
    diagnostics: &'d [Diagnostic],
    errors: BTreeMap<&'d ObjectKey, &'d Diagnostic>,
}

impl<'d> Refusals<'d> {
    pub(crate) fn among(diagnostics: &'d [Diagnostic]) -> Self {
        let mut errors = BTreeMap::new();
        for found in diagnostics.iter().filter(|found| found.severity == Severity::Error) {
            errors.entry(&found.key).or_insert(found);
        }
        Self { diagnostics, errors }
    }

    /// Everything that was found.
    pub(crate) fn diagnostics(&self) -> &'d [Diagnostic] {
        self.diagnostics
    }

    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.errors.contains_key(key)
    }

    /// The world without what `dialect` refuses. What another one refuses is still there: to a
    /// placement that carries it to clusters, a Deployment is content like any other.
    pub(crate) fn sound<'w>(&self, dialect: &dyn Dialect, world: &'w World) -> Cow<'w, World> {
        let refused = self.errors.keys().filter(|key| dialect.validates(&key.kind));
        world.without(&refused.copied().cloned().collect::<BTreeSet<_>>())
    }

    /// What `rollout` waits for if it hangs on an object that `dialect` refuses.
    pub(crate) fn hold(
        &self,
        dialect: &dyn Dialect,
        world: &World,
        rollout: &Object,
    ) -> Option<Hold> {
        if !self.errors.keys().any(|key| dialect.validates(&key.kind)) {
            return None;
        }
        let seen = dialect.snapshot(world, rollout);
        let mut errors = seen.iter().filter_map(|object| {
            let error = self.errors.get(object.key())?;
            let concerned =
                dialect.validates(object.kind()) && dialect.hangs_on(world, rollout, object);
            concerned.then_some(*error)
        });
        let Diagnostic { object, field, message, .. } = errors.next()?;
        let others = u32::try_from(errors.count()).unwrap_or(u32::MAX);
        let (object, field, message) = (object.clone(), field.clone(), message.clone());
        Some(Hold::of_rollout(HoldReason::HangsOnRefused { object, field, message, others }))
    }
}
