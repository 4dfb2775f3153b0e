//! A running API server on loopback, for as long as the value lives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::binaries::Binaries;
use crate::running::{Running, flags, free_ports};

/// etcd, kube-apiserver and a proxy that speaks plain HTTP, with their files.
pub(super) struct Server {
    running: Running,
    address: String,
    proxy: String,
}

const TOKENS: &str = "tokens.csv";

/// How long the API server may take to be ready.
const PATIENCE: Duration = Duration::from_mins(2);

impl Server {
    pub(super) fn start(binaries: &Binaries) -> Result<Self> {
        let running = Running::new("kubernetes")?;
        let (address, proxy) = (String::new(), String::new());
        let mut server = Self { running, address, proxy };
        let [client, peer, secure] = free_ports()?;
        start_etcd(&mut server.running, &binaries.etcd, client, peer)?;
        server.start_apiserver(&binaries.apiserver, client, secure)?;
        server.wait_until_ready()?;
        server.start_proxy()?;
        Ok(server)
    }

    fn start_apiserver(&mut self, apiserver: &Path, etcd: u16, port: u16) -> Result<()> {
        self.running.openssl("genrsa -out service-account.key 2048")?;
        let token = self.running.openssl("rand -hex 16")?;
        self.running.write(TOKENS, &users(&token))?;
        self.running.write("kubeconfig", &kubeconfig(port, &token))?;
        self.address = format!("https://127.0.0.1:{port}");
        let etcd = format!("http://127.0.0.1:{etcd}");
        let port = port.to_string();
        let arguments = flags(&[
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
            ("--service-cluster-ip-range", "10.96.0.0/16"),
            ("--disable-admission-plugins", "ServiceAccount"),
            ("--endpoint-reconciler-type", "none"),
        ]);
        self.running.spawn(apiserver, &arguments)
    }

    fn start_proxy(&mut self) -> Result<()> {
        let mut command = self.kubectl_command(&["proxy", "--port=0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().context("the proxy's output is piped")?;
        self.running.add(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        address.clone_into(&mut self.proxy);
        Ok(())
    }

    fn wait_until_ready(&self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.kubectl(&["get", "--raw", "/readyz"], "").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        bail!(
            "the API server is not ready after {PATIENCE:?}; its log is {}",
            self.running.log().display()
        )
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The file that lists its users.
    pub(super) fn tokens(&self) -> PathBuf {
        self.running.directory.join(TOKENS)
    }

    /// Runs kubectl against the server and returns what it prints.
    pub(super) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
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

    fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.running.directory.join("kubeconfig"));
        command
    }

    /// Posts an object and returns the answer, whatever its status.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = serde_json::to_vec(body)?;
        let mut stream = TcpStream::connect(&self.proxy)?;
        let length = body.len();
        // Version 1.0 asks for an answer in one piece.
        write!(
            stream,
            "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )?;
        stream.write_all(&body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let body = end.map_or(&[][..], |end| &answer[end + 4..]);
        serde_json::from_slice(body).context("the answer is JSON")
    }
}

/// A durable etcd of one node, with its defaults.
pub(crate) fn start_etcd(running: &mut Running, etcd: &Path, client: u16, peer: u16) -> Result<()> {
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

/// Those that the scripts of `crates/apiserver/tests/exchanges` name, with tokens that nobody
/// else knows.
fn users(token: &str) -> String {
    format!(
        "{token},admin,uid-admin,system:masters\n{token}-alice,alice,uid-alice,team\n{token}-bob,bob,uid-bob\n"
    )
}

fn kubeconfig(port: u16, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: here, cluster: {{server: \"https://127.0.0.1:{port}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: here, user: {{token: \"{token}\"}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: here}}}}]\n"
    )
}
