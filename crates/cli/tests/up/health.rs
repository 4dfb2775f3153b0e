//! What happens to a control loop in production: its API server restarts, its credentials are
//! replaced, and a server is not the one that it trusts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use convoy_kubernetes::{ControlPlane, Process, Programs, Running, WITHOUT_DEPLOYMENTS};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::access::Access;
use crate::home;
use crate::running;

/// A control loop, and the file that has its log.
struct Logged {
    process: Process,
    log: PathBuf,
}

impl Logged {
    fn start(within: &Running, name: &str, command: &mut Command) -> Self {
        let log = within.directory.join(format!("{name}.log"));
        command.stderr(std::fs::File::create(&log).unwrap());
        Self { process: home::start(within, command).0, log }
    }

    fn lines(&self, word: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
    }

    fn ends_in_order(self) {
        let text = std::fs::read_to_string(&self.log).unwrap();
        assert_eq!(self.process.end().unwrap(), Some(0), "{text}");
    }
}

fn web(site: &Access, name: &str) {
    site.kubectl(&format!("create deployment {name} --image=example/web:1 --replicas=8"));
}

fn rolls_out(site: &Access, name: &str) {
    site.kubectl(&format!("rollout status deployment {name} --timeout=180s"));
}

#[test]
fn a_restart_of_the_api_server_interrupts_a_rollout_and_nothing_more() {
    let mut control_plane = home::real_control_plane();
    let _manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
    let _fleet = home::attach(&control_plane, &home::scenario("[{count: 2}]"));
    let access = Access::new(control_plane.kubeconfig.clone());
    home::install(&access, "deploy");
    let account = home::account(&control_plane, &access, "convoy-system", "convoy");
    let mut command = home::control_loop(&account, "apps");
    // The server may take longer to start than a Lease of 15 seconds is held.
    command.args(["--leader-elect", "--lease-duration=90"]);
    let control = Logged::start(&control_plane.running, "restart", &mut command);
    let site = access.within("shop");
    web(&site, "web");
    rolls_out(&site, "web");

    site.kubectl("set image deployment web web=example/web:2");
    control_plane.interrupt(Duration::from_secs(3)).unwrap();
    rolls_out(&site, "web");
    web(&site, "later");
    rolls_out(&site, "later");
    // However many kinds are watched, and however often each was tried. A server that has just
    // started refuses everything until it has read its roles: that is another matter.
    let mut failures = control.lines("list or watch failed");
    failures.retain(|line| !line.contains("is forbidden"));
    assert!(failures.len() <= 4, "{failures:#?}");
    assert_eq!(control.lines("ERROR"), Vec::<String>::new());
    control.ends_in_order();
}

/// An authority that an API server trusts, for users who come with a certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Writes the certificate of an administrator and its key, valid for so long from now.
    fn issue(&self, folder: &Path, valid: Duration) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "convoy");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.not_before =
            rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(Duration::from_mins(1));
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + (now + valid);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join("client.key"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("client.crt"), certificate.pem()).unwrap();
    }
}

/// A kubeconfig whose user has these fields.
fn kubeconfig(folder: &Path, server: &str, user: &str) -> PathBuf {
    let path = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: here, cluster: {{server: \"{server}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: here, user: {{{user}}}}}]\n\
         contexts: [{{name: here, context: {{cluster: here, user: here}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// A real API server that trusts an authority, with nodes.
fn trusting(authority: &Authority, folder: &Path) -> (ControlPlane, Vec<Process>) {
    let trusted = folder.join("trusted.crt");
    std::fs::write(&trusted, &authority.certificate).unwrap();
    let programs = Programs::find().unwrap_or_else(|error| panic!("this test needs it: {error}"));
    let flags = [("--client-ca-file", trusted.to_string_lossy().into_owned())];
    let flags = flags.each_ref().map(|(flag, value)| (*flag, value.as_str()));
    let control_plane = ControlPlane::start(&programs, &flags).unwrap();
    let manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
    let fleet = home::attach(&control_plane, &home::scenario("[{count: 2}]"));
    (control_plane, vec![manager, fleet])
}

#[test]
fn credentials_that_are_replaced_on_disk_are_used() {
    const VALID: Duration = Duration::from_secs(25);
    let (authority, folder) = (Authority::new("users"), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let (control_plane, _processes) = trusting(&authority, folder);
    let site = Access::new(control_plane.kubeconfig.clone());
    let place = &control_plane.running;

    // A certificate that expires.
    let issued = std::time::Instant::now();
    authority.issue(folder, VALID);
    let user = "client-certificate: client.crt, client-key: client.key";
    let account = kubeconfig(folder, &control_plane.address, user);
    let control = Logged::start(place, "certificate", &mut home::control_loop(&account, "apps"));
    web(&site, "valid");
    rolls_out(&site, "valid");
    std::thread::sleep((VALID + Duration::from_secs(1)).saturating_sub(issued.elapsed()));
    web(&site, "expired");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(site.kubectl("get replicasets -l app=expired -o name"), "");
    // Of every attempt, at the writes and at watches that were closed.
    let refused = "rejected the credentials";
    assert_eq!(control.lines(refused).len(), 1, "{:#?}", control.lines(refused));
    let watches = control.lines("list or watch failed");
    assert!(watches.len() <= 1, "{watches:#?}");
    authority.issue(folder, Duration::from_hours(1));
    rolls_out(&site, "expired");
    control.ends_in_order();

    // A token that is revoked.
    site.kubectl("create serviceaccount rotated");
    site.kubectl(
        "create clusterrolebinding rotated --clusterrole=cluster-admin --serviceaccount=default:rotated",
    );
    let token = |name: &str| {
        site.kubectl(&format!("create secret generic {name}"));
        let bound = format!("--bound-object-kind=Secret --bound-object-name={name}");
        let token = site.kubectl(&format!("create token rotated {bound}"));
        std::fs::write(folder.join("token"), token.trim()).unwrap();
    };
    token("first");
    let account = kubeconfig(folder, &control_plane.address, "tokenFile: token");
    let control = Logged::start(place, "token", &mut home::control_loop(&account, "apps"));
    web(&site, "first");
    rolls_out(&site, "first");
    token("second");
    site.kubectl("delete secret first");
    // Answers about a token are remembered by the server for ten seconds.
    std::thread::sleep(Duration::from_secs(11));
    web(&site, "second");
    rolls_out(&site, "second");
    assert!(!control.lines("kubeconfig or a file that it names has changed").is_empty());
    control.ends_in_order();
}

#[test]
fn a_server_that_is_not_trusted_is_one_line() {
    let site = running::Running::start();
    let place = Running::new("untrusted").unwrap();
    let text = std::fs::read_to_string(&site.kubeconfig).unwrap();
    let other = STANDARD.encode(Authority::new("somebody else").certificate);
    let (before, after) = text.split_once("certificate-authority-data").unwrap();
    let (sign, after) = after.split_at(after.find(|c: char| c.is_ascii_alphanumeric()).unwrap());
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let after = after.trim_start_matches(is_base64);
    let replaced = format!("{before}certificate-authority-data{sign}{other}{after}");
    let kubeconfig = place.write("kubeconfig", &replaced).unwrap();
    for flag in ["--concurrency=1", "--leader-elect"] {
        let mut command = home::control_loop(&kubeconfig, "apps");
        let control = Logged::start(&place, flag, command.arg(flag));
        // Several attempts of each watch, and of the Lease.
        std::thread::sleep(Duration::from_secs(5));
        let said = control.lines("certificate");
        assert_eq!(said.len(), 1, "{said:#?}");
        let advice = "compare certificate-authority of the kubeconfig";
        assert!(said[0].contains("WARN") && said[0].contains(advice), "{said:?}");
        control.ends_in_order();
    }
}
