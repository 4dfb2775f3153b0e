//! `convoy demo`, `status --watch` and `up` on a terminal: what a person sees on the screen, not only
//! what is written to it, and what Ctrl-C leaves behind.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

use crate::daily::{apply, web};
use crate::home::CONVOY;
use crate::running::{Running, command};

/// A demo of one dialect, on a machine that does other things too.
const DEMO_MAX: Duration = Duration::from_mins(3);
const BEGINNING: &str = "Now these change:";

/// A program on a terminal of its own.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    output: Receiver<Vec<u8>>,
    /// Everything that was written, and the screen as it looks after it.
    written: Vec<u8>,
    screen: Parser,
    begun: Instant,
}

impl Terminal {
    fn demo(directory: &Path, environment: &[(&str, &str)]) -> Self {
        Self::run(&["demo", "--dialect", "apps"], directory, environment)
    }

    /// `convoy` with a temporary directory of its own.
    fn run(arguments: &[&str], directory: &Path, environment: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(size(24, 100)).unwrap();
        let mut command = CommandBuilder::new(CONVOY);
        command.args(arguments);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("TMPDIR", directory);
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // A terminal whose last program has ended gives an error.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (screen, begun) = (Parser::new(cells(24), cells(100), 0), Instant::now());
        Self { child, master: pair.master, output, written: Vec::new(), screen, begun }
    }

    /// Takes in what is written, up to the next pause; whether more can come.
    fn read(&mut self) -> bool {
        assert!(self.begun.elapsed() < DEMO_MAX, "it takes too long:\n{}", self.contents());
        match self.output.recv_timeout(Duration::from_mins(1)) {
            Ok(bytes) => {
                self.screen.process(&bytes);
                self.written.extend(bytes);
                true
            }
            Err(_) => false,
        }
    }

    fn read_until(&mut self, text: &str) {
        while !self.text().contains(text) {
            assert!(self.read(), "it ended before {text:?}:\n{}", self.text());
        }
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.master.resize(size(rows, columns)).unwrap();
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn press(&mut self, keys: &str) {
        let mut writer = self.master.take_writer().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads to the end; the exit status.
    fn end(&mut self) -> u32 {
        while self.read() {}
        self.child.wait().unwrap().exit_code()
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

/// Processes that have a directory on their command line.
fn processes_of(directory: &Path) -> Vec<String> {
    let directory = directory.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(directory)).collect()
}

#[test]
fn the_tree_is_drawn_over_itself_whatever_becomes_of_the_window() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::demo(directory.path(), &[]);
    terminal.read_until(BEGINNING);
    terminal.read_until("\x1b[J");
    // The line that announces it, and the one in the tree.
    let shown = terminal.contents().matches("Deployment shop/web").count();
    assert_eq!(shown, 2, "{}", terminal.contents());
    terminal.resize(8, 40);
    for _ in 0..3 {
        terminal.read();
    }
    terminal.resize(30, 120);
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    let contents = terminal.contents();
    assert!(contents.contains("6 of 6 replicas have what is new"), "{contents}");
    assert!(contents.contains("No budget was exceeded"), "{contents}");
    let text = terminal.text();
    let (off, on) = (text.matches("\x1b[?7l").count(), text.matches("\x1b[?7h").count());
    assert!(off > 0 && off == on, "lines are wrapped again after each of {off} trees, {on} times");
    assert!(text.contains("\x1b[3"), "there are colors on a terminal");
}

#[test]
fn a_terminal_without_colors_gets_plain_lines() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::demo(directory.path(), &[("NO_COLOR", "1")]);
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    assert!(!terminal.text().contains('\x1b'), "{}", terminal.text());
    assert!(terminal.text().contains("No budget was exceeded"), "{}", terminal.text());
}

#[test]
fn control_c_ends_the_demo_and_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::demo(directory.path(), &[]);
    terminal.read_until(BEGINNING);
    assert!(!processes_of(directory.path()).is_empty(), "its server runs");
    terminal.press("\x03");
    assert_eq!(terminal.end(), 130, "{}", terminal.text());
    assert_eq!(processes_of(directory.path()), [""; 0], "nothing runs on");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A rollout that nobody carries out is watched on a terminal of each kind, and given up.
#[test]
fn a_watched_rollout_is_left_by_control_c() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let running = Running::start_as(command(&data).arg("--controllers=none"));
    apply(&running, &web("example/web:1"));
    let kubeconfig = running.kubeconfig.to_str().unwrap();
    let watch = ["status", "web", "--watch"];
    let end = ["status", "web", "--watch", "--timeout", "2s"];
    let told = "0 of 3 done, 3 in flight";
    let mut terminal = Terminal::run(&watch, directory.path(), &[("KUBECONFIG", kubeconfig)]);
    terminal.read_until(told);
    terminal.resize(4, 20);
    terminal.press("\x03");
    assert_ne!(terminal.end(), 0, "{}", terminal.text());
    assert!(!terminal.text().contains("\x1b[?25l"), "the cursor stays: {}", terminal.text());
    let mut terminal = Terminal::run(&end, directory.path(), &[("KUBECONFIG", kubeconfig)]);
    assert_eq!(terminal.end(), 1, "{}", terminal.text());
    assert!(terminal.text().contains("\x1b["), "the tree has colors: {}", terminal.text());
    let plain = [("KUBECONFIG", kubeconfig), ("NO_COLOR", "1")];
    let mut terminal = Terminal::run(&end, directory.path(), &plain);
    assert_eq!(terminal.end(), 1, "{}", terminal.text());
    assert!(terminal.text().contains(told), "{}", terminal.text());
    assert!(!terminal.text().contains('\x1b'), "{:?}", terminal.text());
    let piped = running.convoy("status web --watch --timeout 2s");
    assert!(!piped.stdout.contains(&0x1b), "{:?}", String::from_utf8_lossy(&piped.stdout));
    let left = processes_of(directory.path());
    assert!(left.iter().all(|line| line.contains("--data-dir")), "only the server runs: {left:?}");
}

/// A server in the foreground: an ephemeral one leaves nothing, another one its data only.
#[test]
fn control_c_ends_a_server() {
    for flags in [&["--ephemeral"][..], &[]] {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        let arguments = [&["up", "--listen", "127.0.0.1:0"], flags].concat();
        let environment = [("HOME", home), ("XDG_DATA_HOME", "")];
        let mut terminal = Terminal::run(&arguments, directory.path(), &environment);
        terminal.read_until("KUBECONFIG");
        terminal.press("\x03");
        assert_eq!(terminal.end(), 0, "{}", terminal.text());
        assert_eq!(processes_of(directory.path()), [""; 0], "nothing runs on");
        let left = std::fs::read_dir(directory.path()).unwrap().flatten();
        let left: Vec<String> =
            left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if flags.is_empty() {
            assert_eq!(left, [".local"], "its data stay");
            let data = directory.path().join(".local/share/convoy");
            assert!(!data.join("convoy.pid").exists(), "nobody takes it for running");
        } else {
            assert_eq!(left, [""; 0], "{}", terminal.text());
        }
    }
}
