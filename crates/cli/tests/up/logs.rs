//! What `convoy run` logs, and how that is changed while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;

use crate::home::control_loop;
use crate::running::Running;

/// Sends a request to the metrics port; the response.
fn ask(address: &str, method: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{method} /debug/log-level HTTP/1.0\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn logs_are_objects_and_their_level_can_be_changed() {
    let server = Running::start();
    let mut command = control_loop(&server.kubeconfig, "apps");
    command.args(["--log-format=json", "--metrics-listen=127.0.0.1:0"]);
    let command = command.env("CONVOY_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((first["level"].as_str(), first["target"].as_str()), (Some("info"), Some("convoy")));
    let said = first["msg"].as_str().unwrap();
    let address = said.strip_prefix("serving metrics on http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    assert!(ask(address, "GET", "").ends_with("warn\n"));
    let refused = ask(address, "PUT", "loud");
    assert!(refused.starts_with("HTTP/1.0 400"), "{refused}");
    assert!(refused.contains("expected error, warn, info, debug or trace"), "{refused}");
    assert!(ask(address, "PUT", "debug").ends_with("logging at debug\n"));
    assert!(ask(address, "GET", "").ends_with("debug\n"));
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("Running"), "{ready}");
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        let line = line.unwrap();
        let object: Value = serde_json::from_str(&line).unwrap();
        assert!(object["msg"].is_string() && object["ts"].is_string(), "{line}");
    }
}
