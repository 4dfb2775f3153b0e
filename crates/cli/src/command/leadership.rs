//! Leader election of the commands that run controllers.

use std::hash::{BuildHasher, RandomState};

use anyhow::{Result, bail};
use convoy_controllers::leader::Leader;
use convoy_controllers::lease::Election;
use convoy_controllers::{Clusters, Settings, run as run_loop};
use kube::Client;

/// Runs while this process holds the Lease, which `client` reaches, and releases it at the end.
pub(super) async fn lead(
    client: Client,
    clusters: impl Into<Clusters>,
    settings: Settings,
    election: Election,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let name = format!("{}/{}", election.namespace, election.name);
    let mut leader = Leader::new(client, election);
    let settings = Settings { fence: leader.fence(), ..settings };
    let mut shutdown = std::pin::pin!(shutdown);
    // A standby is ready: a rolling update must not wait for it to become the leader.
    settings.metrics.set_ready(true);
    tokio::select! {
        () = &mut shutdown => return Ok(()),
        () = leader.acquire() => settings.metrics.set_ready(false),
    }
    let mut lost = None;
    let ended = async {
        tokio::select! {
            () = &mut shutdown => {}
            why = leader.hold() => lost = Some(why),
        }
    };
    run_loop(clusters, settings, ended).await;
    if let Some(why) = lost {
        bail!("lost the Lease {name}: {why}");
    }
    leader.release().await;
    Ok(())
}

/// Identity of this candidate for the Lease; in a cluster, the host name is the pod's name. A
/// container that is restarted has the same host name and process id, so those are not enough.
pub(super) fn identity() -> String {
    let host = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME"));
    let unique = RandomState::new().hash_one(std::process::id());
    format!("{}_{unique:016x}", host.unwrap_or_else(|_| "convoy".to_owned()))
}
