//! An API server as a kubeconfig leads to it, and stock kubectl to speak with it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::audit;

#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) kubeconfig: PathBuf,
    /// What kubectl works in; none: what the kubeconfig says.
    namespace: Option<String>,
    context: Option<String>,
}

/// How long anything may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_mins(2);

impl Access {
    pub(crate) fn new(kubeconfig: PathBuf) -> Self {
        Self { kubeconfig, namespace: None, context: None }
    }

    /// Another server that the same kubeconfig knows.
    pub(crate) fn at(&self, context: &str) -> Self {
        Self { context: Some(context.to_owned()), ..Self::new(self.kubeconfig.clone()) }
    }

    /// The same server, in a new namespace.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        self.kubectl(&format!("create namespace {namespace}"));
        Self { namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    /// An object, or a list of them.
    pub(crate) fn get(&self, what: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("get {what} -o json"))).unwrap()
    }

    /// Looks at what `get` finds until it is as it should be, and gives it back.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let found = self.get(what);
            if is_so(&found) {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{what} never got there: {found:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs kubectl until it succeeds and prints `wanted`, and gives back what it prints.
    pub(crate) fn until_prints(&self, arguments: &str, wanted: &str) -> String {
        let started = Instant::now();
        loop {
            let output = self.try_kubectl(arguments, "");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() && text.contains(wanted) {
                return text;
            }
            let late = started.elapsed() > PATIENCE;
            assert!(!late, "kubectl {arguments} never prints {wanted:?}: {output:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs kubectl; its output must be a success.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.kubectl_with(arguments, "")
    }

    pub(crate) fn kubectl_with(&self, arguments: &str, input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let text = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}\n{text}\n{complaint}");
        text
    }

    /// What kubectl prints on standard error when it fails, which it must.
    pub(crate) fn refused(&self, arguments: &str, input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "kubectl {arguments} succeeded\n{text}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn try_kubectl(&self, arguments: &str, input: &str) -> Output {
        audit::no_account_is_refused();
        let mut child = self.kubectl_command(arguments).spawn().unwrap_or_else(|error| {
            panic!("kubectl cannot be run ({error}): `cargo xtask ci` brings one, or set CONVOY_KUBECTL")
        });
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    pub(crate) fn kubectl_command(&self, arguments: &str) -> Command {
        let program = std::env::var_os("CONVOY_KUBECTL").unwrap_or_else(|| "kubectl".into());
        let mut command = Command::new(program);
        let namespace = self.namespace.iter().flat_map(|namespace| ["--namespace", namespace]);
        let context = self.context.iter().flat_map(|context| ["--context", context]);
        command
            .args(namespace)
            .args(context)
            .args(split(arguments))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Words, with single quotes keeping blanks together.
pub(crate) fn split(arguments: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in arguments.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
