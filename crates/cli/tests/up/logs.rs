//! What `convoy run` logs, and how that is changed while it runs.

use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::control_loop;
use crate::running::Running;
use crate::scrape::request;

/// The lines of a log so far, which a thread reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    fn read(lines: std::io::Lines<BufReader<ChildStderr>>) -> (Self, std::thread::JoinHandle<()>) {
        let log = Self::default();
        let read = log.clone();
        let reading = std::thread::spawn(move || {
            for line in lines {
                let line = line.unwrap();
                let object: Value = serde_json::from_str(&line).unwrap();
                assert!(object["msg"].is_string() && object["ts"].is_string(), "{line}");
                read.0.lock().unwrap().push(object);
            }
        });
        (log, reading)
    }

    fn at_debug(&self) -> Vec<Value> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line["level"] == "debug").cloned().collect()
    }
}

/// Has the loop decide and write something.
fn roll_out(server: &Running, name: &str) {
    server.kubectl(&format!("create deployment {name} --image=example/web:1"));
    server.until_prints(&format!("get replicasets -l app={name} -o name"), name);
}

#[test]
fn logs_are_objects_and_their_level_can_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Running::start_in(directory.path(), &["--controllers", "none"]);
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
    let ask = |method: &str, body: &str| request(address, method, "/debug/log-level", body);
    let (log, reading) = Log::read(lines);
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("Running"), "{ready}");

    assert!(ask("GET", "").ends_with("warn\n"));
    let refused = ask("PUT", "loud");
    assert!(refused.starts_with("HTTP/1.0 400"), "{refused}");
    assert!(refused.contains("expected error, warn, info, debug or trace"), "{refused}");
    roll_out(&server, "before");
    // What it had logged by now would be in the pipe, and soon here.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(log.at_debug(), [Value::Null; 0]);

    assert!(ask("PUT", "debug").ends_with("logging at debug\n"));
    assert!(ask("GET", "").ends_with("debug\n"));
    roll_out(&server, "after");
    let begun = Instant::now();
    while !log.at_debug().iter().any(|line| line.to_string().contains("default/after")) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:#?}", log.at_debug());
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap();
}
