//! The server of the demo: `convoy up` in the background, with everything in a temporary directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{own_program, temporary_directory};

/// Members of the hub.
const MEMBERS: [&str; 2] = ["--members", "4"];

pub(super) struct DemoServer {
    directory: TempDir,
    pub(super) kubeconfig: PathBuf,
}

impl DemoServer {
    /// Starts it, and returns once it serves.
    pub(super) fn start() -> Result<Self> {
        let directory = temporary_directory("convoy-demo-")?;
        let scenario = directory.path().join("scenario.yaml");
        std::fs::write(&scenario, include_str!("objects/scenario.yaml"))
            .with_context(|| format!("could not write {}", scenario.display()))?;
        let started = convoy()?
            .args(["up", "--detach", "-o", "json", "--listen", "127.0.0.1:0", "--nodes", "6"])
            .arg("--data-dir")
            .arg(directory.path())
            .arg("--scenario")
            .arg(&scenario)
            .args(MEMBERS)
            .args(["--member-nodes", "2", "--member-labels", "member-1:canary=yes"])
            // Changes are few here, and nobody wants to wait for more.
            .args(["--resource-snapshot-creation-minimum-interval", "0s"])
            .args(["--resource-changes-collection-duration", "0s"])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("could not start the server")?;
        if !started.status.success() {
            // The one in the background may still be on its way out.
            _ = end(directory.path());
            directory.close().context("could not remove the temporary directory")?;
            bail!("the server did not start");
        }
        let ready: Value = serde_json::from_slice(&started.stdout)
            .context("could not read what the server printed")?;
        let kubeconfig = ready["kubeconfig"].as_str().context("the server has no kubeconfig")?;
        Ok(Self { kubeconfig: PathBuf::from(kubeconfig), directory })
    }

    /// Ends it, and removes its directory.
    pub(super) fn stop(self) -> Result<()> {
        let path = self.directory.path();
        ensure!(end(path)?, "the server in {} runs on", path.display());
        self.directory.close().context("could not remove the temporary directory")
    }

    /// Leaves it running; gives its directory.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

/// Ends the server of a directory; whether it has ended.
fn end(directory: &Path) -> Result<bool> {
    let mut command = convoy()?;
    command.arg("down").arg("--data-dir").arg(directory);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    Ok(ended.context("could not stop the server")?.success())
}

/// This program, with no setting of this process in its environment.
fn convoy() -> Result<Command> {
    let mut command = Command::new(own_program()?);
    command.env_remove("CONVOY_DATA_DIR").current_dir(Path::new("/"));
    Ok(command)
}
