//! The Open Cluster Management flags of `convoy run` and `convoy up`.

use clap::ValueEnum;
use convoy_plan::dialect::ocm::HubControllers;

use super::ocm_agent::AgentPart;

/// Options of the ocm controller.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Open Cluster Management")]
pub(crate) struct OcmFlags {
    /// Parts of the ocm controller that run, separated by commas; leave out those that upstream's
    /// controllers do
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_values_t = OcmPart::all())]
    ocm_parts: Vec<OcmPart>,
}

/// A part of the ocm controller, by the name that the flag uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OcmPart {
    /// Placements and their decisions
    Placement,
    /// ManifestWorkReplicaSets and their ManifestWorks
    Work,
    /// Namespace, rights and Lease of accepted clusters; whether they are available
    Registration,
    /// Taints of clusters that are not available
    Taints,
    /// Status of cluster sets and of their bindings
    ClusterSets,
    /// The cluster sets default and global
    BuiltInSets,
    /// Rules that are checked, and values that are set, before objects are stored
    Admission,
    /// Work agents of the member clusters of `convoy up`
    WorkAgent,
    /// Registration agents of the member clusters of `convoy up`
    RegistrationAgent,
}

impl OcmPart {
    fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }
}

impl std::fmt::Display for OcmPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", clap::builder::PossibleValue::get_name))
    }
}

impl OcmFlags {
    pub(crate) fn parts(&self) -> HubControllers {
        let has = |part| self.ocm_parts.contains(&part);
        HubControllers {
            placement: has(OcmPart::Placement),
            work: has(OcmPart::Work),
            registration: has(OcmPart::Registration),
            taints: has(OcmPart::Taints),
            cluster_sets: has(OcmPart::ClusterSets),
            built_in_sets: has(OcmPart::BuiltInSets),
            admission: has(OcmPart::Admission),
        }
    }

    /// The agents that run for each member cluster.
    pub(crate) fn agents(&self) -> Vec<AgentPart> {
        let agents = [
            (OcmPart::WorkAgent, AgentPart::WorkAgent),
            (OcmPart::RegistrationAgent, AgentPart::RegistrationAgent),
        ];
        let runs = agents.into_iter().filter(|(part, _)| self.ocm_parts.contains(part));
        runs.map(|(_, agent)| agent).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: OcmFlags,
    }

    #[test]
    fn parts_run_unless_they_are_left_out() {
        let of = |line: &[&str]| Line::try_parse_from(line).map(|line| line.flags.parts());
        assert_eq!(of(&["x"]).unwrap(), HubControllers::ALL);
        let two = HubControllers { placement: true, taints: true, ..HubControllers::NONE };
        assert_eq!(of(&["x", "--ocm-parts", "taints,placement"]).unwrap(), two);
        assert!(of(&["x", "--ocm-parts", "agent"]).is_err());
        let agents = |line: &[&str]| Line::try_parse_from(line).unwrap().flags.agents();
        assert_eq!(agents(&["x"]), AgentPart::value_variants());
        let only = agents(&["x", "--ocm-parts", "work,registration-agent"]);
        assert_eq!(only, [AgentPart::RegistrationAgent]);
    }
}
