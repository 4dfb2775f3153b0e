//! The flags of the API server itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use convoy_api::clock::Clock;
use convoy_apiserver::access::{AccessSettings, Authorization};
use convoy_apiserver::home::{OwnWebhooks, Settings};
use convoy_apiserver::kubeconfig::ContextNames;
use convoy_apiserver::server::Limits;
use convoy_store::backend::{Durability, OnLoss};
use jiff::Timestamp;

use super::directory::{OwnDirectory, data_directory};
use crate::command::hub::duration;

/// Where and how the server keeps and serves its objects.
#[derive(Debug, clap::Args)]
pub(super) struct ServerFlags {
    /// Directory for objects, certificates and keys [default: ~/.local/share/convoy]
    #[arg(long, value_name = "DIR", env = "CONVOY_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Keep everything in memory; objects and certificates are lost when the server stops
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", env = "CONVOY_LISTEN")]
    listen: SocketAddr,
    /// File to write the kubeconfig to [default: admin.kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context of the first cluster
    #[arg(long, value_name = "NAME", default_value = "convoy", value_parser = NonEmptyStringValueParser::new())]
    context: String,
    /// Prefix of the kubeconfig contexts of the other logical clusters; may be empty
    #[arg(long, value_name = "PREFIX", default_value = "convoy-")]
    context_prefix: String,
    /// When to sync writes to disk: `sync` (before each is acknowledged), `interval:50ms` (at
    /// this interval; a power failure loses at most that much), `none` (never)
    #[arg(long, value_name = "MODE", default_value = "sync", value_parser = durability)]
    durability: Durability,
    /// Start although stored data is lost or damaged: report what is lost, keep damaged files, and
    /// continue with the objects that can be read
    #[arg(long, conflicts_with = "ephemeral")]
    accept_loss: bool,
    /// Accept the bearer tokens in a CSV file with lines `token,user,uid,"group1,group2"`
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// How to authorize requests
    #[arg(long, value_enum, default_value_t = AuthorizationMode::Rbac)]
    authorization: AuthorizationMode,
    /// Append an audit event for every request to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// File with an `audit.k8s.io/v1` Policy [default: log metadata of all requests]
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// Time that the server, its controllers and its simulated nodes start at, such as
    /// 2026-03-29T00:59:00Z; the clock then runs at its usual pace [default: the machine's time]
    #[arg(long, value_name = "TIME")]
    clock: Option<Timestamp>,
    /// How long to wait for requests in progress at shutdown
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    shutdown_timeout: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuthorizationMode {
    /// By RBAC roles and bindings
    Rbac,
    /// Allow everything to every authenticated user; for tests
    AlwaysAllow,
}

impl From<AuthorizationMode> for Authorization {
    fn from(mode: AuthorizationMode) -> Self {
        match mode {
            AuthorizationMode::Rbac => Self::Rbac,
            AuthorizationMode::AlwaysAllow => Self::AlwaysAllow,
        }
    }
}

impl ServerFlags {
    /// What the flags ask for, and the directory of the server's own files.
    pub(super) fn settings(self, own_webhooks: OwnWebhooks) -> Result<(Settings, OwnDirectory)> {
        let data_directory = data_directory(self.ephemeral, self.data_dir)?;
        warn_of_loss(self.durability, data_directory.as_deref());
        let directory = OwnDirectory::of(data_directory.as_deref())?;
        let default = || directory.path().join("admin.kubeconfig");
        let settings = Settings {
            data_directory,
            durability: self.durability,
            on_loss: if self.accept_loss { OnLoss::Accept } else { OnLoss::Refuse },
            listen: self.listen,
            kubeconfig: self.kubeconfig.unwrap_or_else(default),
            contexts: ContextNames { first: self.context, prefix: self.context_prefix },
            limits: Limits { shutdown_timeout: self.shutdown_timeout, ..Limits::default() },
            clock: self.clock.map_or_else(Clock::default, clock_at),
            access: AccessSettings {
                authorization: self.authorization.into(),
                token_file: self.token_auth_file,
                audit_log: self.audit_log,
                audit_policy: self.audit_policy,
            },
            own_webhooks,
        };
        Ok((settings, directory))
    }
}

fn clock_at(time: Timestamp) -> Clock {
    Clock::showing(time, Timestamp::now())
}

/// In memory nobody expects a crash to leave anything.
fn warn_of_loss(durability: Durability, data_directory: Option<&Path>) {
    if durability != Durability::Sync && data_directory.is_some() {
        eprintln!(
            "warning: with --durability {durability:?}, a crash can lose acknowledged writes"
        );
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match text.split_once(':') {
        None if text == "sync" => Ok(Durability::Sync),
        None if text == "none" => Ok(Durability::None),
        Some(("interval", interval)) => duration(interval)
            .ok()
            .filter(|interval| !interval.is_zero())
            .map(Durability::Interval)
            .ok_or_else(|| format!("invalid interval {interval:?}; use a value such as 50ms")),
        _ => Err("expected sync, interval:DURATION or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_read_or_refused() {
        assert_eq!(durability("sync"), Ok(Durability::Sync));
        assert_eq!(
            durability("interval:50ms"),
            Ok(Durability::Interval(Duration::from_millis(50)))
        );
        for text in ["", "fast", "interval:", "interval:-1s", "interval:0s"] {
            assert!(durability(text).is_err(), "{text}");
        }
    }
}
