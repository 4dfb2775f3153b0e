//! The servers that are measured, started alike: one node, durable, TLS, RBAC, and a client
//! that is known by its certificate and may do everything through a binding.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::{Programs, Running, flags, free_ports, own_kubectl, start_etcd};

/// The server to measure, with its programs.
pub(super) enum ServerKind {
    Convoy(PathBuf),
    Kubernetes(Programs),
}

/// A running server; stops when the value is dropped.
pub(super) struct Server {
    pub(super) running: Running,
    pub(super) address: String,
    pub(super) begun: Instant,
    pub(super) ready_after: Duration,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    /// Certificate and key of the client certificate authority.
    authority: (PathBuf, PathBuf),
}

impl ServerKind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Convoy(_) => "convoy",
            Self::Kubernetes(_) => "kube-apiserver + etcd",
        }
    }
}

impl Server {
    /// Starts an empty server and waits until it is ready.
    pub(super) fn start(kind: &ServerKind, load: &Path) -> Result<Self> {
        let running = Running::new("bench")?;
        let [port, client, peer] = free_ports()?;
        let directory = running.directory.clone();
        let mut server = Self {
            running,
            address: format!("127.0.0.1:{port}"),
            begun: Instant::now(),
            ready_after: Duration::ZERO,
            kubectl: own_kubectl()
                .map_or_else(|| Programs::find().map(|found| found.kubectl), Ok)?,
            kubeconfig: directory.join("admin.kubeconfig"),
            authority: (directory.join("ca.crt"), directory.join("ca.key")),
        };
        if let ServerKind::Kubernetes(_) = kind {
            server.prepare_kubernetes()?;
        }
        server.begun = Instant::now();
        match kind {
            ServerKind::Convoy(convoy) => server.start_convoy(convoy)?,
            ServerKind::Kubernetes(programs) => {
                start_etcd(&mut server.running, &programs.etcd, client, peer)?;
                server.start_apiserver(&programs.apiserver, client, port)?;
            }
        }
        let mut command = Command::new(load);
        command.args(["--server", &server.address, "ready"]).stdout(Stdio::null());
        let ready = command.status().context("could not run convoy-load")?.success();
        ensure!(ready, "{} is not ready", kind.name());
        server.ready_after = server.begun.elapsed();
        Ok(server)
    }

    fn start_convoy(&mut self, convoy: &Path) -> Result<()> {
        let data = self.running.directory.join("data");
        self.kubeconfig = data.join("admin.kubeconfig");
        self.authority = (data.join("pki/ca.crt"), data.join("pki/ca.key"));
        let data = data.to_string_lossy().into_owned();
        let arguments = [("--data-dir", data.as_str()), ("--listen", &self.address)];
        let arguments = [vec!["up".to_owned()], flags(&arguments)].concat();
        self.running.spawn(convoy, &arguments)
    }

    fn prepare_kubernetes(&self) -> Result<()> {
        let running = &self.running;
        running.openssl("genrsa -out service-account.key 2048")?;
        running.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -subj /CN=bench -days 2",
        )?;
        self.sign("admin", "/O=system:masters/CN=admin")?;
        running.write("admin.kubeconfig", &format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
             clusters: [{{name: here, cluster: {{server: \"https://{}\", insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: here, user: {{client-certificate: admin.crt, client-key: admin.key}}}}]\n\
             contexts: [{{name: here, context: {{cluster: here, user: here}}}}]\n",
            self.address
        ))?;
        Ok(())
    }

    /// Starts kube-apiserver with its defaults, except for raised limits on concurrent requests and
    /// without plugins that need controllers.
    fn start_apiserver(&mut self, apiserver: &Path, etcd: u16, port: u16) -> Result<()> {
        let etcd = format!("http://127.0.0.1:{etcd}");
        let port = port.to_string();
        let arguments = flags(&[
            ("--etcd-servers", etcd.as_str()),
            ("--bind-address", "127.0.0.1"),
            ("--advertise-address", "127.0.0.1"),
            ("--secure-port", &port),
            ("--cert-dir", "certificates"),
            ("--client-ca-file", "ca.crt"),
            ("--authorization-mode", "RBAC"),
            ("--service-account-issuer", "https://kubernetes.default.svc"),
            ("--service-account-key-file", "service-account.key"),
            ("--service-account-signing-key-file", "service-account.key"),
            ("--service-cluster-ip-range", "10.96.0.0/16"),
            ("--disable-admission-plugins", "ServiceAccount"),
            ("--endpoint-reconciler-type", "none"),
            ("--max-requests-inflight", "3000"),
            ("--max-mutating-requests-inflight", "1000"),
        ]);
        self.running.spawn(apiserver, &arguments)
    }

    /// Creates the certificate of the load generator and binds it to cluster-admin.
    pub(super) fn admit_load(&self) -> Result<()> {
        self.sign("load", "/O=loaders/CN=load")?;
        self.kubectl(&[
            "create",
            "clusterrolebinding",
            "load",
            "--clusterrole=cluster-admin",
            "--user=load",
        ])?;
        Ok(())
    }

    fn sign(&self, name: &str, subject: &str) -> Result<()> {
        let (certificate, key) = (self.authority.0.display(), self.authority.1.display());
        let running = &self.running;
        running.write("client.cnf", "extendedKeyUsage=clientAuth\nkeyUsage=digitalSignature\n")?;
        running.openssl(&format!(
            "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj {subject}"
        ))?;
        running.openssl(&format!(
            "x509 -req -in {name}.csr -CA {certificate} -CAkey {key} -CAcreateserial -CAserial serial -days 2 -extfile client.cnf -out {name}.crt"
        ))?;
        Ok(())
    }

    pub(super) fn kubectl(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.kubectl);
        let output = command.args(arguments).env("KUBECONFIG", &self.kubeconfig).output();
        let output = output.context("could not run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {complaint}", arguments.join(" "));
        Ok(())
    }
}
