//! Exchanges: the same requests to a real API server and to ours get the same answers.
//!
//! `scripts/*.yaml` say what is asked, `recorded/*.jsonl` what a kube-apiserver answered. Every
//! `cargo test` replays them against a server in this process. With `CONVOY_KUBERNETES` (the
//! address of a running one, which `cargo xtask kubernetes` sets together with
//! `CONVOY_KUBERNETES_TOKENS`) both servers are asked, and the recordings are held against the
//! real one too; with `CONVOY_EXCHANGES=record` as well, they are written anew.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

mod compare;
mod normal;
mod run;
mod script;
mod servers;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use compare::{compared, differences};
use script::Script;
use servers::Target;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges")
}

/// All scripts, or the one that `CONVOY_EXCHANGE` names.
fn scripts() -> Vec<Script> {
    let wanted = std::env::var("CONVOY_EXCHANGE").ok();
    let entries = std::fs::read_dir(directory().join("scripts")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let scripts: Vec<Script> = paths.iter().map(|path| Script::read(path)).collect();
    let is_wanted = |script: &Script| wanted.as_ref().is_none_or(|name| *name == script.name);
    let chosen: Vec<Script> = scripts.into_iter().filter(is_wanted).collect();
    assert!(!chosen.is_empty(), "no scripts");
    chosen
}

fn recorded_file(script: &Script) -> PathBuf {
    directory().join("recorded").join(format!("{}.jsonl", script.name))
}

fn read_recorded(script: &Script) -> Vec<Value> {
    let text = std::fs::read_to_string(recorded_file(script)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
}

fn write_recorded(script: &Script, answers: &[Value]) {
    let kept = script.steps.iter().zip(answers).map(|(step, answer)| compared(step, answer));
    let lines: Vec<String> = kept.map(|answer| answer.to_string()).collect();
    std::fs::write(recorded_file(script), lines.join("\n") + "\n").unwrap();
}

/// Plays a script to a target; answers as they are compared.
fn played(script: &Script, target: &Target) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run::play(script, target))
}

/// Every script to a server of ours of its own, all at the same time: most of them wait for
/// the end of a watch.
fn played_by_ours(scripts: &[Script]) -> Vec<Vec<Value>> {
    std::thread::scope(|scope| {
        let plays = scripts.iter().map(|script| scope.spawn(|| played(script, &Target::Ours)));
        let plays: Vec<_> = plays.collect();
        plays.into_iter().map(|play| play.join().unwrap()).collect()
    })
}

#[test]
fn answers_are_those_of_a_real_server() {
    let real = Target::real();
    let is_recording = std::env::var("CONVOY_EXCHANGES").is_ok_and(|mode| mode == "record");
    let scripts = scripts();
    let (mut asked, mut count, mut report) = (0, 0, String::new());
    for (script, ours) in scripts.iter().zip(played_by_ours(&scripts)) {
        let mut wanted = read_recorded(script);
        if let Some(real) = &real {
            let answers = played(script, real);
            if is_recording {
                write_recorded(script, &answers);
                wanted.clone_from(&answers);
            }
            let found = differences(script, &wanted, &answers, true);
            count += found.len();
            note(&mut report, &script.name, "the real one on record and now", &found);
            wanted = answers;
        }
        let found = differences(script, &wanted, &ours, false);
        asked += script.steps.len();
        count += found.len();
        note(&mut report, &script.name, "the real one and ours", &found);
    }
    assert!(count == 0, "{count} differences in {asked} requests\n{report}");
}

fn note(report: &mut String, script: &str, who: &str, found: &[String]) {
    if !found.is_empty() {
        writeln!(report, "{script}: {who}\n{}", found.join("\n")).unwrap();
    }
}

/// What differs is in the documents, in the words of the scripts.
#[test]
fn every_exception_is_documented() {
    let page = directory().join("../../../../docs/reference/apiserver.md");
    let page = std::fs::read_to_string(page).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for script in scripts() {
        for reason in script.steps.iter().flat_map(|step| &step.differs) {
            assert!(page.contains(&reason.because), "{}: {:?}", script.name, reason.because);
        }
    }
}
