//! The write of an eviction: the binding goes, and the cluster's resources with it.

use crate::dialect::fleet::decide::eviction::Eviction;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) fn actions(decided: &Eviction<'_>) -> Vec<Action> {
    let Eviction::Evicted { delete: Some((binding, permit)), message } = decided else {
        return Vec::new();
    };
    let why = Why::new("Evicted", message.clone());
    vec![Action::delete(Verb::Remove(*permit), binding, Propagation::Background, why)]
}
