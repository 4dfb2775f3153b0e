//! The flags of the agents of Open Cluster Management, under the names that upstream's agents use.

use clap::ValueEnum;
use convoy_plan::Dialect;
use convoy_plan::dialect::ocm_agent::{Features, OcmAgent, Options};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use jiff::SignedDuration;

use super::hub::duration;

/// Options of the agents of a managed cluster.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Open Cluster Management agents")]
pub(crate) struct OcmAgentFlags {
    /// Whose AppliedManifestWorks on the member are this agent's [default: the SHA-256 of the
    /// hub's address]
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// Least time between two reports of polled status feedback
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = signed)]
    status_sync_interval: SignedDuration,
    /// How long the objects of a ManifestWork stay that is missing on the hub; 876000h or more
    /// for ever
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = signed)]
    appliedmanifestwork_eviction_grace_period: SignedDuration,
    /// Most bytes of one JSON value of status feedback
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    max_json_raw_length: u32,
    /// Most ClusterClaims to report, beside the reserved ones
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    max_custom_cluster_claims: u32,
    /// Suffixes of ClusterClaims that are reserved too, separated by commas
    #[arg(long, value_name = "SUFFIXES", value_delimiter = ',')]
    reserved_cluster_claim_suffixes: Vec<String>,
}

/// An agent of a managed cluster, by the name that the flags use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentPart {
    /// Applies ManifestWorks and reports about them
    WorkAgent,
    /// Renews the Lease, says that the cluster is available, reports resources and claims
    RegistrationAgent,
}

/// What the flags ask for.
#[derive(Clone, Debug)]
pub(crate) struct OcmAgents {
    flags: OcmAgentFlags,
    features: Features,
    parts: Vec<AgentPart>,
}

/// What an agent finds out when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// Name of the managed cluster.
    pub(crate) cluster: &'a str,
    /// Address of the hub, as the kubeconfig writes it.
    pub(crate) hub_server: &'a str,
    /// Version of the member's API server; empty if it did not answer.
    pub(crate) kubernetes_version: &'a str,
}

impl OcmAgentFlags {
    pub(crate) fn resolve(self, parts: Vec<AgentPart>, features: Features) -> OcmAgents {
        OcmAgents { flags: self, features, parts }
    }
}

impl OcmAgents {
    /// The dialects of one cluster's agents. Created once, and used until the process exits.
    pub(crate) fn dialects(&self, surroundings: Surroundings<'_>) -> Vec<&'static dyn Dialect> {
        let dialects = self.parts.iter().map(|part| -> &'static dyn Dialect {
            match part {
                AgentPart::WorkAgent => Box::leak(Box::new(OcmAgent::new(self.work(surroundings)))),
                AgentPart::RegistrationAgent => {
                    let options = self.registration(surroundings);
                    Box::leak(Box::new(OcmRegistration::new(options)))
                }
            }
        });
        dialects.collect()
    }

    fn work(&self, surroundings: Surroundings<'_>) -> Options {
        let defaults = Options::new(surroundings.cluster, surroundings.hub_server);
        let OcmAgentFlags {
            agent_id,
            status_sync_interval,
            appliedmanifestwork_eviction_grace_period,
            max_json_raw_length,
            ..
        } = &self.flags;
        Options {
            agent_id: agent_id.as_ref().map_or(defaults.agent_id, Into::into),
            status_sync_interval: *status_sync_interval,
            eviction_grace_period: *appliedmanifestwork_eviction_grace_period,
            max_json_raw_length: usize::try_from(*max_json_raw_length).unwrap_or(usize::MAX),
            features: self.features,
            ..defaults
        }
    }

    fn registration(&self, surroundings: Surroundings<'_>) -> ocm_registration::Options {
        let flags = &self.flags;
        let claims = usize::try_from(flags.max_custom_cluster_claims).unwrap_or(usize::MAX);
        ocm_registration::Options {
            kubernetes_version: surroundings.kubernetes_version.into(),
            max_custom_cluster_claims: claims,
            reserved_cluster_claim_suffixes: flags.reserved_cluster_claim_suffixes.clone(),
            ..ocm_registration::Options::new(surroundings.cluster)
        }
    }
}

fn signed(text: &str) -> Result<SignedDuration, String> {
    SignedDuration::try_from(duration(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command::features::FeatureFlags;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        agents: OcmAgentFlags,
        #[command(flatten)]
        features: FeatureFlags,
    }

    const HERE: Surroundings<'static> = Surroundings {
        cluster: "eu",
        hub_server: "https://hub:6443",
        kubernetes_version: "v1.34.0",
    };

    fn agents(flags: &[&str]) -> anyhow::Result<OcmAgents> {
        let program = Program::try_parse_from([&["convoy"], flags].concat())?;
        let Program { agents, features } = program;
        let (_, features) = features.resolve()?;
        Ok(agents.resolve(AgentPart::value_variants().to_vec(), features))
    }

    #[test]
    fn defaults_are_those_of_the_dialects() {
        let found = agents(&[]).unwrap();
        assert_eq!(found.work(HERE), Options::new("eu", "https://hub:6443"));
        let registration = ocm_registration::Options {
            kubernetes_version: "v1.34.0".into(),
            ..ocm_registration::Options::new("eu")
        };
        assert_eq!(found.registration(HERE), registration);
        let names: Vec<&str> = found.dialects(HERE).iter().map(|it| it.name()).collect();
        assert_eq!(names, ["ocm-agent", "ocm-registration"]);
    }

    #[test]
    fn flags_reach_the_agents() {
        let found = agents(&[
            "--agent-id=second",
            "--status-sync-interval=1s",
            "--appliedmanifestwork-eviction-grace-period=876000h",
            "--feature-gates=RawFeedbackJsonString=true,ExecutorValidatingCaches=false",
            "--max-custom-cluster-claims=1",
        ]);
        let found = found.unwrap();
        let options = found.work(HERE);
        assert_eq!(options.agent_id, "second");
        assert_eq!(options.status_sync_interval, SignedDuration::from_secs(1));
        assert_eq!(options.eviction_grace_period, SignedDuration::from_hours(876_000));
        assert!(options.features.raw_feedback_json_string);
        assert_eq!(found.registration(HERE).max_custom_cluster_claims, 1);
        for wrong in ["--feature-gates=Nothing=true", "--feature-gates=RawFeedbackJsonString"] {
            assert!(agents(&[wrong]).is_err(), "{wrong}");
        }
        assert!(agents(&["--status-sync-interval=-1s"]).is_err());
    }
}
