//! Starts etcd, kube-apiserver and kube-controller-manager on free ports.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::programs::Programs;
use crate::running::{Process, Running, flags, free_ports};

/// An API server with its etcd. Controllers are started separately.
#[derive(Debug)]
pub struct ControlPlane {
    pub running: Running,
    pub programs: Programs,
    /// Address, as `https://HOST:PORT`.
    pub address: String,
    /// Kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// Of the API server.
    arguments: Vec<String>,
}

/// Controllers of kube-controller-manager to run beside Convoy, which handles Deployments.
pub const WITHOUT_DEPLOYMENTS: &str = "*,-deployment-controller";

const TOKENS: &str = "tokens.csv";

/// Timeout for the API server to become ready.
const PATIENCE: Duration = Duration::from_mins(2);
/// Attempts to start, in case another process takes a chosen port.
const ATTEMPTS: usize = 3;

impl ControlPlane {
    /// Starts an empty API server with additional flags.
    pub fn start(programs: &Programs, more: &[(&str, &str)]) -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::attempt(programs, more) {
                Err(error) if attempt < ATTEMPTS => eprintln!("retrying the start: {error:#}"),
                ended => return ended,
            }
            attempt += 1;
        }
    }

    fn attempt(programs: &Programs, more: &[(&str, &str)]) -> Result<Self> {
        let mut running = Running::new("kubernetes")?;
        let [client, peer, port] = free_ports()?;
        start_etcd(&mut running, &programs.etcd, client, peer)?;
        running.openssl("genrsa -out service-account.key 2048")?;
        let token = running.openssl("rand -hex 16")?;
        running.write(TOKENS, &users(&token))?;
        let address = format!("https://127.0.0.1:{port}");
        let kubeconfig = running.write("kubeconfig", &kubeconfig(&address, &token))?;
        let etcd = format!("http://127.0.0.1:{client}");
        let port = port.to_string();
        let mut arguments = flags(&[
            ("--etcd-servers", etcd.as_str()),
            ("--bind-address", "127.0.0.1"),
            ("--advertise-address", "127.0.0.1"),
            ("--secure-port", &port),
            ("--cert-dir", "certificates"),
            ("--service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
            ("--service-account-key-file", "service-account.key"),
            ("--service-account-signing-key-file", "service-account.key"),
            ("--token-auth-file", TOKENS),
            ("--authorization-mode", "RBAC"),
            // As on every cluster where packages change nodes.
            ("--allow-privileged", "true"),
            ("--service-cluster-ip-range", "10.96.0.0/16"),
            ("--endpoint-reconciler-type", "none"),
        ]);
        arguments.extend(flags(more));
        running.spawn(&programs.apiserver, &arguments)?;
        let programs = programs.clone();
        let mut control_plane = Self { running, programs, address, kubeconfig, arguments };
        control_plane.wait_until_ready()?;
        Ok(control_plane)
    }

    /// Kills the API server, and starts it again after `pause`; its etcd runs on.
    pub fn interrupt(&mut self, pause: Duration) -> Result<()> {
        self.running.kill_last();
        std::thread::sleep(pause);
        self.running.spawn(&self.programs.apiserver, &self.arguments)?;
        self.wait_until_ready()
    }

    /// Starts kube-controller-manager with these controllers and additional flags.
    pub fn manage(&self, controllers: &str, more: &[(&str, &str)]) -> Result<Process> {
        let kubeconfig = self.kubeconfig.to_string_lossy();
        let mut arguments = flags(&[
            ("--kubeconfig", kubeconfig.as_ref()),
            ("--controllers", controllers),
            ("--leader-elect", "false"),
            ("--secure-port", "0"),
            ("--service-account-private-key-file", "service-account.key"),
        ]);
        arguments.extend(flags(more));
        self.running.start(&self.programs.controller_manager, &arguments)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE && !self.running.has_ended() {
            if self.kubectl(&["get", "--raw", "/readyz"], "").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        let log = std::fs::read_to_string(self.running.log(&self.programs.apiserver));
        let log = log.unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        bail!("the API server was not ready after {:?}: {}", started.elapsed(), last.join("\n"))
    }

    /// A kubeconfig with a token.
    pub fn kubeconfig_of(&self, name: &str, token: &str) -> Result<PathBuf> {
        let text = kubeconfig(&self.address, token);
        self.running.write(&format!("{name}.kubeconfig"), &text)
    }

    /// The token of a user.
    pub fn token_of(&self, user: &str) -> Result<String> {
        let users = std::fs::read_to_string(self.tokens())?;
        let mut lines = users.lines().map(|line| line.split(','));
        let found = lines.find_map(|mut words| {
            let token = words.next()?;
            (words.next()? == user).then(|| token.to_owned())
        });
        found.with_context(|| format!("no user {user}"))
    }

    /// The token file.
    pub fn tokens(&self) -> PathBuf {
        self.running.directory.join(TOKENS)
    }

    /// Runs kubectl against the server and returns its output.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.kubectl_command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("could not run kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl's input is piped")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {complaint}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.programs.kubectl);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }
}

/// Starts a single etcd with its defaults.
pub fn start_etcd(running: &mut Running, etcd: &Path, client: u16, peer: u16) -> Result<()> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let cluster = format!("default={peer}");
    let arguments = flags(&[
        ("--data-dir", "etcd"),
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
        ("--initial-cluster", &cluster),
    ]);
    running.spawn(etcd, &arguments)
}

/// The users in the scripts of `crates/apiserver/tests/exchanges`, with random tokens.
fn users(token: &str) -> String {
    format!(
        "{token},admin,uid-admin,system:masters\n{token}-alice,alice,uid-alice,team\n{token}-bob,bob,uid-bob\n"
    )
}

fn kubeconfig(address: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: here, cluster: {{server: \"{address}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: here, user: {{token: \"{token}\"}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: here}}}}]\n"
    )
}
