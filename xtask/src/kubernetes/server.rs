//! An API server that is asked in plain HTTP, through a proxy.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use anyhow::{Context, Result};
use convoy_kubernetes::{ControlPlane, Programs};
use serde_json::Value;

/// kube-apiserver and a proxy in front of it.
pub(super) struct Server {
    pub(super) control_plane: ControlPlane,
    proxy: String,
}

impl Server {
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        // Accounts are made by a controller that does not run here.
        let flags = [("--disable-admission-plugins", "ServiceAccount")];
        let control_plane = ControlPlane::start(programs, &flags)?;
        let mut server = Self { control_plane, proxy: String::new() };
        server.start_proxy()?;
        Ok(server)
    }

    fn start_proxy(&mut self) -> Result<()> {
        let mut command = self.control_plane.kubectl_command(&["proxy", "--port=0"]);
        let running = &mut self.control_plane.running;
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = running.start_as(command)?;
        let line = process.first_line()?;
        running.keep(process);
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        address.clone_into(&mut self.proxy);
        Ok(())
    }

    /// Runs kubectl against the server and returns what it prints.
    pub(super) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
        self.control_plane.kubectl(arguments, input)
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
