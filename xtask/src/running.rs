//! Programs that run for as long as a value lives, in a directory of their own that goes with
//! them.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, ensure};

pub(crate) struct Running {
    pub(crate) directory: PathBuf,
    children: Vec<Child>,
}

impl Running {
    /// An empty directory that no other run has.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("convoy-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        Ok(Self { directory, children: Vec::new() })
    }

    /// Starts a program in the directory; its output goes to the log.
    pub(crate) fn spawn(&mut self, program: &Path, arguments: &[String]) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.directory);
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        self.add(child.with_context(|| format!("could not run {}", program.display()))?);
        Ok(())
    }

    /// Has a program end with the others.
    pub(crate) fn add(&mut self, child: Child) {
        self.children.push(child);
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.directory.join(name), text)
            .with_context(|| format!("could not write {name}"))
    }

    /// Runs openssl in the directory.
    pub(crate) fn openssl(&self, arguments: &str) -> Result<String> {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(&self.directory);
        let output = command.output().context("could not run openssl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "openssl {arguments}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Memory that is resident, of all programs together.
    pub(crate) fn resident_mib(&self) -> Result<f64> {
        let mut sum = 0.0;
        for child in &self.children {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let line = line.context("the system says what is resident")?;
            let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
            sum += kib / 1024.0;
        }
        Ok(sum)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // One that has gone by itself needs no ending.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Ports of loopback that nobody listens on.
pub(crate) fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let listeners = [0; COUNT].map(|_| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; COUNT];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

pub(crate) fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(flag, value)| format!("{flag}={value}")).collect()
}
