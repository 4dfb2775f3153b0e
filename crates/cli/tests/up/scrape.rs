//! The numbers that a control loop serves on a port of loopback.

use std::io::{Read, Write};
use std::net::TcpStream;

/// All of them, in the text format of Prometheus.
pub(crate) fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
