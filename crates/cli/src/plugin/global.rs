//! Flags of every command of `kubectl skyhook`: those that kubectl has for a connection, and how to
//! print.

use std::path::PathBuf;
use std::time::Duration;

use convoy_api::text::GoDuration;
use convoy_controllers::connect::{Impersonation, Overrides};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Global {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Cluster of the kubeconfig [default: that of the context]
    #[arg(long, global = true, value_name = "NAME")]
    cluster: Option<String>,
    /// User of the kubeconfig [default: that of the context]
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    server: Option<String>,
    /// Bearer token for the API server
    #[arg(long, global = true)]
    token: Option<String>,
    /// Do not verify the certificate of the API server
    #[arg(long, global = true)]
    insecure_skip_tls_verify: bool,
    /// Time limit of one request; 0 for none
    #[arg(long, global = true, value_name = "DURATION", default_value = "0", value_parser = limit)]
    request_timeout: GoDuration,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    as_user: Option<String>,
    /// Group to impersonate; can be repeated
    #[arg(long, global = true, value_name = "GROUP")]
    as_group: Vec<String>,
    /// Namespace of package pods
    #[arg(short, long, global = true, default_value = "skyhook")]
    namespace: String,
    /// Output format: table, json, yaml or wide
    #[arg(short, long, global = true, default_value = "table")]
    pub(super) output: String,
    /// Print more detail
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Print the changes without making them
    #[arg(long, global = true)]
    pub(super) dry_run: bool,
}

impl Global {
    pub(super) fn namespace(&self) -> &str {
        match self.namespace.trim() {
            "" => "skyhook",
            namespace => namespace,
        }
    }

    pub(super) fn overrides(&self) -> Overrides {
        let timeout = Duration::try_from(self.request_timeout.signed()).unwrap_or_default();
        Overrides {
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            token: self.token.clone(),
            skips_verification: self.insecure_skip_tls_verify,
            timeout: (!timeout.is_zero()).then_some(timeout),
            impersonation: Impersonation {
                user: self.as_user.clone(),
                groups: self.as_group.clone(),
                uid: None,
            },
        }
    }
}

/// A duration, or a number of seconds.
fn limit(text: &str) -> Result<GoDuration, String> {
    match text.parse::<i64>() {
        Ok(secs) => Ok(GoDuration::from_secs(secs)),
        Err(_) => super::arguments::duration(text),
    }
}
