//! The binary where nothing else is: in an empty root it plans a rollout, and serves an API and
//! profiles of itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::{Running, free_ports};

use crate::kubernetes::root;

/// Runs a binary in a root that holds it, an example and an empty `/tmp`.
pub(super) fn check(binary: &str) -> Result<()> {
    let running = Running::new("dist")?;
    let place = running.directory.join("root");
    fs::create_dir_all(place.join("tmp"))?;
    fs::copy(binary, place.join("convoy")).with_context(|| format!("could not copy {binary}"))?;
    fs::copy(root().join("examples/skyhook.yaml"), place.join("skyhook.yaml"))?;
    let output = alone(&place, &["plan", "-f", "/skyhook.yaml"]).output();
    let output = output.context("could not run unshare, which gives the binary its own root")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "plan failed: {complaint}");
    let [port] = free_ports()?;
    let metrics = format!("--metrics-listen=127.0.0.1:{port}");
    let mut up = alone(&place, &["up", "--ephemeral", "--listen=127.0.0.1:0", &metrics]);
    let mut up = running.start_as(up.stdout(Stdio::piped()))?;
    let ready = up.first_line()?;
    ensure!(ready.contains("is ready"), "up printed {ready:?}");
    for path in ["profile?seconds=1", "heap"] {
        let profile = get(port, &format!("/debug/pprof/{path}"))?;
        ensure!(!profile.is_empty(), "/debug/pprof/{path} is empty");
    }
    Ok(())
}

/// The body of a response; an error if it is not 200 OK.
fn get(port: u16, path: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let split = memchr::memmem::find(&response, b"\r\n\r\n").context("no end of the headers")?;
    let (headers, body) = (&response[..split], &response[split + 4..]);
    let told = || String::from_utf8_lossy(headers).into_owned() + &String::from_utf8_lossy(body);
    ensure!(headers.starts_with(b"HTTP/1.1 200 "), "{path}: {}", told());
    Ok(body.to_vec())
}

/// A command of the binary, whose root is `place`; a user namespace allows that without privileges.
fn alone(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "chroot"]).arg(place).arg("/convoy");
    command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}
