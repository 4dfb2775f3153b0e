//! A running API server on loopback, for as long as the value lives.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::binaries::Binaries;

/// etcd, kube-apiserver and a proxy that speaks plain HTTP, with their files.
pub(super) struct Server {
    directory: PathBuf,
    children: Vec<Child>,
    proxy: String,
}

/// How long the API server may take to be ready.
const PATIENCE: Duration = Duration::from_mins(2);

impl Server {
    pub(super) fn start(binaries: &Binaries) -> Result<Self> {
        let directory =
            std::env::temp_dir().join(format!("convoy-kubernetes-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let mut server = Self { directory, children: Vec::new(), proxy: String::new() };
        let [client, peer, secure] = free_ports()?;
        server.start_etcd(&binaries.etcd, client, peer)?;
        server.start_apiserver(&binaries.apiserver, client, secure)?;
        server.wait_until_ready()?;
        server.start_proxy()?;
        Ok(server)
    }

    fn start_etcd(&mut self, etcd: &Path, client: u16, peer: u16) -> Result<()> {
        let (client, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let cluster = format!("default={peer}");
        let arguments = [
            ("--data-dir", "etcd"),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        self.spawn(etcd, &arguments.map(|(flag, value)| format!("{flag}={value}")))
    }

    fn start_apiserver(&mut self, apiserver: &Path, etcd: u16, port: u16) -> Result<()> {
        let key = self.directory.join("service-account.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output();
        ensure!(made.context("could not run openssl")?.status.success(), "openssl genrsa failed");
        let token = Command::new("openssl").args(["rand", "-hex", "16"]).output()?.stdout;
        let token = String::from_utf8_lossy(&token).trim().to_owned();
        self.write("tokens.csv", &format!("{token},admin,admin,system:masters\n"))?;
        self.write("kubeconfig", &kubeconfig(port, &token))?;
        let etcd = format!("http://127.0.0.1:{etcd}");
        let port = port.to_string();
        let arguments = [
            ("--etcd-servers", etcd.as_str()),
            ("--bind-address", "127.0.0.1"),
            ("--advertise-address", "127.0.0.1"),
            ("--secure-port", &port),
            ("--cert-dir", "certificates"),
            ("--service-account-issuer", "https://kubernetes.default.svc"),
            ("--service-account-key-file", "service-account.key"),
            ("--service-account-signing-key-file", "service-account.key"),
            ("--token-auth-file", "tokens.csv"),
            ("--authorization-mode", "AlwaysAllow"),
            ("--anonymous-auth", "false"),
            ("--service-cluster-ip-range", "10.96.0.0/16"),
            ("--disable-admission-plugins", "ServiceAccount"),
            ("--endpoint-reconciler-type", "none"),
        ];
        self.spawn(apiserver, &arguments.map(|(flag, value)| format!("{flag}={value}")))
    }

    fn start_proxy(&mut self) -> Result<()> {
        let mut command = self.kubectl_command(&["proxy", "--port=0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().context("the proxy's output is piped")?;
        self.children.push(child);
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
        bail!("the API server is not ready after {PATIENCE:?}; its log is {}", self.log().display())
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
        command.args(arguments).env("KUBECONFIG", self.directory.join("kubeconfig"));
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

    fn spawn(&mut self, program: &Path, arguments: &[String]) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.directory);
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        self.children.push(child.with_context(|| format!("could not run {}", program.display()))?);
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.directory.join(name), text)
            .with_context(|| format!("could not write {name}"))
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // One that has gone by itself needs no ending.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn free_ports() -> Result<[u16; 3]> {
    let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

fn kubeconfig(port: u16, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: here, cluster: {{server: \"https://127.0.0.1:{port}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: here, user: {{token: \"{token}\"}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: here}}}}]\n"
    )
}
