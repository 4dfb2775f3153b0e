//! The numbers that a control loop serves on a port of loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(2);

/// All of them, in the text format of Prometheus.
pub(crate) fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
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
