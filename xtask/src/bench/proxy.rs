//! Many small requests to an API server, through `kubectl proxy`, which has the credentials.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::{Process, Running, flags, free_ports};
use serde_json::Value;

use super::up::Up;

/// How long the proxy may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
}

/// A running `kubectl proxy`.
pub(super) struct Proxy {
    port: u16,
    /// Ended when the proxy is dropped.
    _process: Process,
}

impl Proxy {
    pub(super) fn start(up: &Up, running: &Running) -> Result<Self> {
        let [port] = free_ports()?;
        let config = up.kubeconfig.to_string_lossy();
        let mut arguments = vec!["proxy".to_owned()];
        arguments.extend(flags(&[("--kubeconfig", &config), ("--port", &port.to_string())]));
        let process = running.start(&up.kubectl, &arguments)?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(begun.elapsed() < START_TIMEOUT, "kubectl proxy does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { port, _process: process })
    }

    /// Sends all jobs over so many connections. A write that is refused ends it.
    pub(super) fn send(&self, jobs: &[Job], connections: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            let stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_nodelay(true)?;
            let mut connection = BufReader::new(stream);
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (code, body) = exchange(&mut connection, job)?;
                let answer = String::from_utf8_lossy(&body);
                ensure!((200..300).contains(&code), "{} {}: {code} {answer}", job.method, job.path);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..connections).map(|_| scope.spawn(work)).collect();
            let joined = threads.into_iter().map(|it| it.join().expect("no thread panics"));
            joined.collect::<Result<Vec<()>>>().map(|_| ())
        })
    }
}

/// Sends one request and reads the response: its code and its body.
fn exchange(connection: &mut BufReader<TcpStream>, job: &Job) -> Result<(u16, Vec<u8>)> {
    let body = job.body.to_string();
    let kind = if job.method == "PATCH" { "merge-patch+json" } else { "json" };
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\n\
         Content-Length: {}\r\n\r\n",
        job.method,
        job.path,
        body.len()
    );
    connection.get_mut().write_all(format!("{head}{body}").as_bytes())?;
    let status = line(connection)?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.with_context(|| format!("no status in {status:?}"))?;
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let header = line(connection)?.to_ascii_lowercase();
        match header.split_once(": ") {
            Some(("content-length", value)) => length = value.parse()?,
            Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
            Some(_) => {}
            None => break,
        }
    }
    let mut body = Vec::new();
    if !is_chunked {
        append(connection, &mut body, length)?;
        return Ok((code, body));
    }
    loop {
        let size = usize::from_str_radix(&line(connection)?, 16)?;
        append(connection, &mut body, size)?;
        line(connection)?;
        if size == 0 {
            return Ok((code, body));
        }
    }
}

fn line(connection: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    ensure!(connection.read_line(&mut line)? > 0, "the proxy closed a connection");
    Ok(line.trim_end().to_owned())
}

fn append(connection: &mut BufReader<TcpStream>, body: &mut Vec<u8>, size: usize) -> Result<()> {
    let start = body.len();
    body.resize(start + size, 0);
    connection.read_exact(&mut body[start..])?;
    Ok(())
}
