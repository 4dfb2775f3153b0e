//! The numbers that a control loop serves on a port of loopback, and what else is there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(2);

/// All of them, in the text format of Prometheus.
pub(crate) fn scrape(port: u16) -> String {
    request(&format!("127.0.0.1:{port}"), "GET", "/metrics", "")
}

/// Sends a request to the port of metrics; the response.
pub(crate) fn request(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Waits until all of these lines are served; everything that is.
pub(crate) fn scrape_until(port: u16, lines: &[impl AsRef<str>]) -> String {
    let begun = Instant::now();
    loop {
        let text = scrape(port);
        let is_served = |line: &&str| text.lines().any(|found| found == *line);
        let missing = lines.iter().map(AsRef::as_ref).find(|line| !is_served(line));
        let Some(missing) = missing else { return text };
        assert!(begun.elapsed() < PATIENCE, "{missing} is not among\n{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
