//! A cluster as the source of objects, chosen by the flags that kubectl has.

use std::path::PathBuf;

use anyhow::{Context, Result};
use convoy_controllers::connect::{Impersonation, Overrides, connect_with};
use convoy_controllers::live_objects::{self, LiveObjects};
use convoy_plan::Dialect;
use convoy_plan::dialect::{apps, fleet, karpenter, ocm, skyhook};
use tokio::runtime::Runtime;

/// Flags that choose a cluster, a namespace and a user.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Cluster of the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// User of the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Namespace of the rollouts [default: that of the context]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Rollouts of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,
    /// Group to impersonate; can be repeated
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    as_group: Vec<String>,
    /// UID to impersonate
    #[arg(long, value_name = "UID", requires = "as_user")]
    as_uid: Option<String>,
}

/// The dialects as commands read for them. A hub says which kinds its placements need.
static SKYHOOK: skyhook::Skyhook = skyhook::Skyhook::new();
static HUB: fleet::Hub = fleet::Hub { options: fleet::Options::new() };
pub(crate) static READERS: [&dyn Dialect; 5] =
    [&SKYHOOK, &HUB, &apps::Apps, &karpenter::Karpenter, &ocm::Ocm];

/// A connection to a cluster.
pub(crate) struct Cluster {
    runtime: Runtime,
    client: kube::Client,
    /// The namespace that was asked for, or that of the context; none: all.
    pub(crate) namespace: Option<String>,
}

impl ClusterArgs {
    pub(crate) fn connect(self) -> Result<Cluster> {
        let Self { kubeconfig, context, cluster, user, .. } = self;
        let Self { namespace, all_namespaces, as_user, as_group, as_uid, .. } = self;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().context("could not start the runtime")?;
        let impersonation = Impersonation { user: as_user, groups: as_group, uid: as_uid };
        let overrides = Overrides { cluster, user, impersonation, ..Overrides::default() };
        let connection = connect_with(kubeconfig.as_deref(), context.as_deref(), overrides);
        let client = runtime.block_on(connection)?.client;
        let own = || namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        let namespace = (!all_namespaces).then(own);
        Ok(Cluster { runtime, client, namespace })
    }

    /// The namespace that was asked for, of objects that are not in a cluster.
    pub(crate) fn given_namespace(&self) -> Option<String> {
        self.namespace.clone()
    }
}

impl Cluster {
    /// Reads what decisions about rollouts look at; of these dialects, or of all if there are none.
    pub(crate) fn read(&self, dialects: &[&str]) -> Result<LiveObjects> {
        let is_wanted = |dialect: &&&'static dyn Dialect| {
            dialects.is_empty() || dialects.contains(&dialect.name())
        };
        let readers: Vec<&'static dyn Dialect> =
            READERS.iter().filter(is_wanted).copied().collect();
        let read = live_objects::read(self.client.clone(), &readers, self.namespace.as_deref());
        Ok(self.runtime.block_on(read)?)
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Waits for requests.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}
