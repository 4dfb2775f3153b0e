//! A shell in a directory of its own, where blocks of the documents are pasted as they stand, but for
//! the names in capitals that readers replace. Exported variables stay from block to block.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::blocks::{Block, root, run_by};
use crate::helm::Helm;
use crate::home::CONVOY;

/// What readers replace; processes that stay in the foreground are interrupted.
const REPLACED: [(&str, &str); 8] = [
    ("REGISTRY", "registry.example.com"),
    ("VERSION", "9.9.9"),
    ("NAME", "web"),
    ("=FILE", "=hub.kubeconfig"),
    ("PARTS", "placement,cluster-sets"),
    ("convoy run ", "timeout --preserve-status --signal INT 5 convoy run "),
    ("convoy agent ", "timeout --preserve-status --signal INT 5 convoy agent "),
    ("convoy fleet ", "timeout --preserve-status --signal INT 5 convoy fleet "),
];

/// What a shell leaves behind for the next one.
const STATE: &str = ".state";

pub(crate) struct Shell {
    pub(crate) directory: tempfile::TempDir,
}

impl Shell {
    /// A directory with the chart and the examples in it, and a shell there that finds the programs.
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        for name in ["convoy", "kubectl-convoy", "kubectl-skyhook"] {
            symlink(CONVOY, programs.join(name)).unwrap();
        }
        if let Some(kubectl) = std::env::var_os("CONVOY_KUBECTL") {
            symlink(kubectl, programs.join("kubectl")).unwrap();
        }
        for name in ["deploy", "examples"] {
            symlink(root().join(name), directory.path().join(name)).unwrap();
        }
        std::fs::create_dir(directory.path().join("tmp")).unwrap();
        let shell = Self { directory };
        shell.run(&format!("export KUBECONFIG='{}'", kubeconfig.display()));
        shell
    }

    /// Writes a file that readers have.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Runs a script with what readers replace, which must succeed; what it printed.
    pub(crate) fn run(&self, script: &str) -> String {
        let mut script = script.to_owned();
        for (word, by) in REPLACED {
            script = script.replace(word, by);
        }
        let output = self.attempt(&script);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a script as it stands, whatever comes of it.
    pub(crate) fn attempt(&self, script: &str) -> Output {
        if script.contains("helm ") {
            self.provide_helm();
        }
        let directory = self.directory.path();
        let path = std::env::var("PATH").unwrap();
        let script = format!("[ ! -e {STATE} ] || . ./{STATE}\n{script}\nexport -p > {STATE}");
        Command::new("sh")
            .args(["-ec", &script])
            .current_dir(directory)
            .env("PATH", format!("{}:{path}", directory.join("programs").display()))
            .env("HOME", directory)
            .env("TMPDIR", directory.join("tmp"))
            .env("CONVOY_LISTEN", "127.0.0.1:0")
            .env("NO_COLOR", "1")
            .output()
            .unwrap()
    }

    fn provide_helm(&self) {
        let link = self.directory.path().join("programs/helm");
        if !link.exists() {
            symlink(Helm::new(Path::new("/dev/null")).program(), link).unwrap();
        }
    }
}

/// Servers in the background end with their shell.
impl Drop for Shell {
    fn drop(&mut self) {
        for below in [".", "tmp"] {
            let entries = std::fs::read_dir(self.directory.path().join(below));
            for path in entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
                if path.join("convoy.pid").exists() {
                    drop(Command::new(CONVOY).args(["down", "--data-dir"]).arg(path).output());
                }
            }
        }
    }
}

/// The blocks that `blocks.txt` says a test pastes. It has to paste all of them.
pub(crate) struct Guides {
    test: &'static str,
    left: Vec<Block>,
}

impl Guides {
    pub(crate) fn of(test: &'static str) -> Self {
        Self { test, left: run_by(test) }
    }

    /// The first block of a page that has a line which begins with these words.
    pub(crate) fn take(&mut self, page: &str, begins: &str) -> String {
        let is_it = |block: &Block| block.page.ends_with(page) && block.has_line(begins);
        let position = self.left.iter().position(is_it);
        let position = position.unwrap_or_else(|| {
            panic!("blocks.txt has no block of {page} with {begins:?} for {}", self.test)
        });
        self.left.remove(position).body
    }

    /// All blocks that are left, in order.
    pub(crate) fn rest(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.left)
    }
}

impl Drop for Guides {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let left: Vec<String> = self.left.iter().map(Block::place).collect();
            assert!(left.is_empty(), "{} does not paste {}", self.test, left.join(", "));
        }
    }
}
