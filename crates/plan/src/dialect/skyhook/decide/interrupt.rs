//! Interrupts: several packages that disturb a node do so once, together.

use convoy_api::skyhook::{Interrupt, InterruptType};

use crate::dialect::skyhook::read::hook::Package;

/// The one interrupt that serves several packages, and which of them runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Unique name of the package that runs it.
    pub(crate) runner: String,
    pub(crate) interrupt: Interrupt,
}

/// Merges the interrupts of `packages`, which come by name.
///
/// | interrupts                                        | runs             | by                |
/// |---------------------------------------------------|------------------|-------------------|
/// | bar: service b; foo: service a                     | service a, b     | bar, the first    |
/// | bar: service; omg: reboot                          | reboot           | omg               |
/// | bar: service; baz: restart all; foo: noop          | restart all      | baz               |
pub(crate) fn merge<'p>(packages: impl IntoIterator<Item = &'p Package<'p>>) -> Option<Merged> {
    let mut merged: Option<Merged> = None;
    for package in packages {
        for interrupt in &package.interrupts {
            merged = Some(match merged {
                Some(so_far) => joined(so_far, package, interrupt),
                None => Merged { runner: package.unique.clone(), interrupt: canonical(interrupt) },
            });
        }
    }
    merged
}

fn joined(mut so_far: Merged, package: &Package<'_>, interrupt: &Interrupt) -> Merged {
    let (old, new) = (rank(so_far.interrupt.kind), rank(interrupt.kind));
    if new > old {
        return Merged { runner: package.unique.clone(), interrupt: canonical(interrupt) };
    }
    if new == old && interrupt.kind == InterruptType::Service {
        let mut services = so_far.interrupt.services.take().unwrap_or_default();
        services.extend(interrupt.services.iter().flatten().cloned());
        so_far.interrupt.services = Some(services);
        so_far.interrupt = canonical(&so_far.interrupt);
    }
    so_far
}

/// Services sorted and named once; none at all reads as absent.
fn canonical(interrupt: &Interrupt) -> Interrupt {
    let mut services = interrupt.services.clone().unwrap_or_default();
    services.sort_unstable();
    services.dedup();
    Interrupt { kind: interrupt.kind, services: (!services.is_empty()).then_some(services) }
}

/// What disturbs more covers what disturbs less.
fn rank(kind: InterruptType) -> u8 {
    match kind {
        InterruptType::Noop => 0,
        InterruptType::Service => 1,
        InterruptType::RestartAllServices => 2,
        InterruptType::Reboot => 3,
    }
}

/// The word of a type in the names of pods.
pub(crate) fn word(kind: InterruptType) -> &'static str {
    match kind {
        InterruptType::Noop => "noop",
        InterruptType::Service => "service",
        InterruptType::RestartAllServices => "restartAllServices",
        InterruptType::Reboot => "reboot",
    }
}

/// The word of a type that the agent understands.
pub(crate) fn agent_word(kind: InterruptType) -> &'static str {
    match kind {
        InterruptType::Noop => "no_op",
        InterruptType::Service => "service_restart",
        InterruptType::RestartAllServices => "restart_all_services",
        InterruptType::Reboot => "node_restart",
    }
}

#[cfg(test)]
mod tests;
