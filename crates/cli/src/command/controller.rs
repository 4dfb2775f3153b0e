//! The parts of a control plane that `convoy run` and `convoy up` can run.

use clap::ValueEnum;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use convoy_plan::dialect::skyhook::{Options, Skyhook};
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Controller {
    /// Deployments: in place of kube-controller-manager's deployment controller
    Apps,
    /// ReplicaSets, where no kube-controller-manager keeps them
    #[value(name = "replicasets")]
    ReplicaSets,
    /// DaemonSets, where no kube-controller-manager keeps them
    #[value(name = "daemonsets")]
    DaemonSets,
    /// StatefulSets, where no kube-controller-manager keeps them
    #[value(name = "statefulsets")]
    StatefulSets,
    /// Jobs, where no kube-controller-manager keeps them
    Jobs,
    /// Skyhooks and their policies: in place of NVIDIA's operator
    Skyhook,
}

impl Controller {
    fn dialect(self, skyhook: &Options) -> &'static dyn Dialect {
        match self {
            Self::Apps => &Deployments,
            Self::ReplicaSets => &ReplicaSets,
            Self::DaemonSets => &DAEMON_SETS,
            Self::StatefulSets => &STATEFUL_SETS,
            Self::Jobs => &JOBS,
            // Made once, and there as long as the process.
            Self::Skyhook => Box::leak(Box::new(Skyhook { options: skyhook.clone() })),
        }
    }

    /// What a home without a kube-controller-manager needs.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Their dialects, each once.
    pub(crate) fn dialects(
        mut controllers: Vec<Self>,
        skyhook: &Options,
    ) -> Vec<&'static dyn Dialect> {
        controllers.sort_unstable();
        controllers.dedup();
        controllers.into_iter().map(|controller| controller.dialect(skyhook)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_run_once_under_the_name_it_was_asked_for_by() {
        let given = vec![Controller::Jobs, Controller::Apps, Controller::Jobs];
        let options = Options::new();
        let dialects = Controller::dialects(given, &options);
        let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name()).collect();
        assert_eq!(names, ["apps", "jobs"]);
        for controller in Controller::all() {
            let value = controller.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), controller.dialect(&options).name());
        }
    }
}
