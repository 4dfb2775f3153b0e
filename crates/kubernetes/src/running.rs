//! Child processes with a temporary directory; both are removed when the value is dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// A temporary directory and the processes that run in it.
#[derive(Debug)]
pub struct Running {
    pub directory: PathBuf,
    processes: Vec<Process>,
}

/// A child process; killed when the value is dropped or when this process exits.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// A shell that kills the child when this process exits: statics are never dropped, and this
    /// process may be killed.
    guard: Child,
}

impl Running {
    /// Creates an empty directory.
    pub fn new(name: &str) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("convoy-{name}-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory)?;
        Ok(Self { directory, processes: Vec::new() })
    }

    /// Starts a program in the directory, with its output in a log file.
    pub fn spawn(&mut self, program: &Path, arguments: &[String]) -> Result<()> {
        let process = self.start(program, arguments)?;
        self.processes.push(process);
        Ok(())
    }

    /// The same, for a program that ends before the others.
    pub fn start(&self, program: &Path, arguments: &[String]) -> Result<Process> {
        let log = fs::File::options().create(true).append(true).open(self.log(program))?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(log.try_clone()?).stderr(log);
        self.start_as(&mut command)
    }

    /// Starts a prepared command.
    pub fn start_as(&self, command: &mut Command) -> Result<Process> {
        let child = command.current_dir(&self.directory).stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("could not run {command:?}"))?;
        let script = r#"read -r _; kill -KILL "$0"; sleep 1; rm -rf "$1""#;
        let mut guard = Command::new("sh");
        guard.args(["-c", script, &child.id().to_string()]).arg(&self.directory);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().context("could not run sh")?;
        Ok(Process { child, guard })
    }

    /// Kills the process that was started last.
    pub(crate) fn kill_last(&mut self) {
        drop(self.processes.pop());
    }

    /// Keeps a process running until this value is dropped.
    pub fn keep(&mut self, process: Process) {
        self.processes.push(process);
    }

    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text).with_context(|| format!("could not write {name}"))?;
        Ok(path)
    }

    /// Runs openssl in the directory.
    pub fn openssl(&self, arguments: &str) -> Result<String> {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(&self.directory);
        let output = command.output().context("could not run openssl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "openssl {arguments}: {complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The log of a program.
    pub fn log(&self, program: &Path) -> PathBuf {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        self.directory.join(format!("{name}.log"))
    }

    /// Whether a process has exited.
    pub fn has_ended(&mut self) -> bool {
        let mut processes = self.processes.iter_mut();
        processes.any(|process| process.child.try_wait().is_ok_and(|status| status.is_some()))
    }

    /// Resident memory of all processes.
    pub fn resident_mib(&self) -> Result<f64> {
        self.processes.iter().map(|process| process.memory_mib("VmRSS:")).sum()
    }
}

/// The unit of times in /proc, which Linux fixes for programs.
const TICKS_PER_SECOND: f64 = 100.0;

impl Process {
    /// Waits for the first line of output; the command must pipe it.
    pub fn first_line(&mut self) -> Result<String> {
        let output = self.child.stdout.take().context("standard output is not piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(!line.is_empty(), "a program ended before it was ready");
        Ok(line)
    }

    /// Waits until the process exits, and returns its exit code; nothing if it still runs after this
    /// time, or if a signal ended it.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<i32>> {
        let started = Instant::now();
        while started.elapsed() < at_most {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(None)
    }

    /// Peak resident memory.
    pub fn peak_mib(&self) -> Result<f64> {
        self.memory_mib("VmHWM:")
    }

    /// Resident memory.
    pub fn resident_mib(&self) -> Result<f64> {
        self.memory_mib("VmRSS:")
    }

    /// Processor time used so far, in seconds.
    pub fn processor_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may have spaces.
        let (_, fields) = stat.rsplit_once(") ").context("no times in /proc")?;
        let times = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
        let ticks: f64 = times.sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS_PER_SECOND)
    }

    fn memory_mib(&self, line: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|found| found.strip_prefix(line));
        let line = line.context("no memory figure in /proc")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib / 1024.0)
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().context("could not run kill")?;
        Ok(())
    }

    /// Sends SIGTERM, waits, and returns the exit code.
    pub fn end(mut self) -> Result<Option<i32>> {
        self.terminate()?;
        Ok(self.child.wait()?.code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard first, so that it does not kill another process that has reused the id.
        for child in [&mut self.guard, &mut self.child] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Free loopback ports.
pub fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let listeners = [0; COUNT].map(|_| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; COUNT];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

pub fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(flag, value)| format!("{flag}={value}")).collect()
}
