//! Connects to the API server of a kubeconfig.

use std::path::Path;

use convoy_controllers::connect::{identified, missing_kubeconfig};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Why no API server could be addressed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no cluster: {looked}; pass --kubeconfig, or start a cluster with `convoy up`")]
    NoKubeconfig { looked: String },
    #[error("could not read the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("could not make a client")]
    Client(#[source] kube::Error),
}

/// A client for the server of a kubeconfig, by default the one that kubectl would use.
pub async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<String>,
) -> Result<Client, ConnectError> {
    if let Some(looked) = missing_kubeconfig(kubeconfig) {
        return Err(ConnectError::NoKubeconfig { looked });
    }
    let found = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(found.map_err(ConnectError::Kubeconfig)?, &options)
        .await
        .map_err(ConnectError::Kubeconfig)?;
    Client::try_from(identified(config)).map_err(ConnectError::Client)
}
