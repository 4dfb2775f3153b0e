//! The flags of the property provider in KubeFleet's member agent.

use clap::ValueEnum;
use convoy_plan::dialect::fleet_agent::PropertyProvider;

/// What an agent reports about its member beside nodes and resources.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "KubeFleet member agent")]
pub(crate) struct PropertyFlags {
    /// Where further properties of the member cluster come from
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Provider::None)]
    property_provider: Provider,
    /// Report the namespaces of the member cluster, up to 200; needs a property provider
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    enable_namespace_collection_in_property_provider: bool,
}

/// A property provider, by the name that the flag uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// Only the number of nodes, and capacity and use of cpu and memory
    None,
    /// Also the version, the address and the certificates of the API server
    Kubernetes,
}

/// What is known about a member cluster when its agent starts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberFacts<'a> {
    /// Version of the API server; empty if it did not answer.
    pub(crate) kubernetes_version: &'a str,
    /// Address of the API server.
    pub(crate) server: &'a str,
    /// Certificates, in PEM, by which clients know it; may be empty.
    pub(crate) certificate_authority: &'a str,
}

impl PropertyFlags {
    /// Whether a provider runs, which wants to know about the member.
    pub(crate) fn is_on(self) -> bool {
        self.property_provider != Provider::None
    }

    pub(crate) fn provider(self, facts: MemberFacts<'_>) -> Option<PropertyProvider> {
        self.is_on().then(|| PropertyProvider {
            kubernetes_version: facts.kubernetes_version.into(),
            server: facts.server.into(),
            certificate_authority: facts.certificate_authority.to_owned(),
            collects_namespaces: self.enable_namespace_collection_in_property_provider,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        flags: PropertyFlags,
    }

    fn provider(flags: &[&str]) -> Option<PropertyProvider> {
        let program = Program::try_parse_from([&["convoy"], flags].concat()).unwrap();
        let facts = MemberFacts { kubernetes_version: "v1.34.1", ..MemberFacts::default() };
        program.flags.provider(facts)
    }

    #[test]
    fn there_is_none_unless_one_is_asked_for() {
        let collection = "--enable-namespace-collection-in-property-provider";
        assert_eq!(provider(&[]), None);
        assert_eq!(provider(&[collection]), None);
        let found = provider(&["--property-provider=kubernetes"]).unwrap();
        assert_eq!(found.kubernetes_version, "v1.34.1");
        assert!(!found.collects_namespaces);
        assert!(
            provider(&["--property-provider=kubernetes", collection]).unwrap().collects_namespaces
        );
    }
}
