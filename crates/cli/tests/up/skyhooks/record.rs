//! Everything that became of some objects, in order: a watch that stock kubectl writes to a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::words::tag;
use crate::access::Access;

const PATIENCE: Duration = Duration::from_mins(2);

/// How an object came, and itself.
pub(crate) type Event = (String, Value);

/// A watch that stock kubectl writes to a file.
pub(crate) struct Watch {
    child: Child,
    file: PathBuf,
    read: RefCell<(u64, Rc<Vec<Event>>)>,
    /// What was there when it began.
    initial: BTreeMap<String, Value>,
}

/// Everything that became of some objects, from some instant on.
pub(crate) struct Record {
    watch: Rc<Watch>,
    after: u64,
}

/// The version of an object, or of a list.
fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

impl Watch {
    /// Watches a path from now on, whenever the watch itself begins.
    pub(crate) fn start(access: &Access, path: &str, selector: &str, within: &Path) -> Self {
        let list = access.kubectl(&format!("get --raw {path}?{selector}"));
        let mut list: Value = serde_json::from_str(&list).unwrap();
        let version = version(&list);
        let items = list["items"].as_array_mut().unwrap().drain(..);
        let initial = items.map(|object| (name(&object), object)).collect();
        // Two watches may begin at the same version of the same path, each by its own selector.
        let file = tempfile::Builder::new().suffix(".events").tempfile_in(within).unwrap();
        let (output, file) = file.keep().unwrap();
        let watch = format!("{path}?watch=true&timeoutSeconds=1800&resourceVersion={version}");
        let mut command = access.kubectl_command(&format!("get --raw {watch}&{selector}"));
        let child = command.stdout(output).spawn().unwrap();
        Self { child, file, read: RefCell::default(), initial }
    }

    /// What was there when it began.
    pub(crate) fn initial(&self) -> impl Iterator<Item = &Value> {
        self.initial.values()
    }

    /// What is written so far.
    fn events(&self) -> Rc<Vec<Event>> {
        let mut read = self.read.borrow_mut();
        let mut file = File::open(&self.file).unwrap();
        file.seek(SeekFrom::Start(read.0)).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let Some(end) = text.rfind('\n') else { return Rc::clone(&read.1) };
        read.0 += u64::try_from(end).unwrap() + 1;
        let new = text[..end].lines().map(|line| {
            let mut event: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let kind = event["type"].as_str().unwrap().to_owned();
            assert_ne!(kind, "ERROR", "{event}");
            (kind, event["object"].take())
        });
        let all: Vec<Event> = read.1.iter().cloned().chain(new).collect();
        read.1 = Rc::new(all);
        Rc::clone(&read.1)
    }

    /// An object as it is now; null if it is not there.
    fn latest(&self, wanted: &str) -> Value {
        let events = self.events();
        let last = events.iter().rev().find(|(_, object)| name(object) == wanted);
        match last {
            Some((kind, _)) if kind == "DELETED" => Value::Null,
            Some((_, object)) => object.clone(),
            None => self.initial.get(wanted).cloned().unwrap_or_default(),
        }
    }

    /// Waits until an object is as it should be, and gives it back. Nothing older than `now` is
    /// looked at: the watch may be behind.
    pub(super) fn until(&self, wanted: &str, now: &Value, is_so: impl Fn(&Value) -> bool) -> Value {
        let (started, least) = (Instant::now(), version(now));
        loop {
            let found = self.latest(wanted);
            if !found.is_null() && version(&found) >= least && is_so(&found) {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{wanted} never got there: {found:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Record {
    /// What a watch tells that is newer than a version.
    pub(crate) fn new(watch: Rc<Watch>, after: u64) -> Self {
        Self { watch, after }
    }

    fn events(&self) -> Vec<Event> {
        let events = self.watch.events();
        events.iter().filter(|(_, object)| version(object) > self.after).cloned().collect()
    }

    /// Waits until the record is as it should be, and gives it back.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let started = Instant::now();
        loop {
            let events = self.events();
            if is_so(&events) {
                return events;
            }
            let last = events.last();
            assert!(
                started.elapsed() < PATIENCE,
                "no {what} in {} events: {last:#?}",
                events.len()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The pods of a package that were made so far, by their identity.
    pub(crate) fn made(&self, package: &str) -> Vec<String> {
        let made = |(kind, pod): &Event| kind == "ADDED" && tag(pod)["name"] == package;
        let events = self.events().into_iter().filter(made);
        events.map(|(_, pod)| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
    }

    /// The first record in which some object is so.
    pub(crate) fn find(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let events = self.until(what, |events| events.iter().any(|(_, object)| is_so(object)));
        events.into_iter().map(|(_, object)| object).find(is_so).unwrap()
    }

    /// Everything up to what a server has now, given by the version of an object.
    pub(crate) fn all(&self, now: &Value) -> Vec<Event> {
        let wanted = version(now);
        self.until("news", |events| events.iter().any(|(_, object)| version(object) >= wanted))
    }

    /// What the pods stood for, as `PACKAGE STAGE`, in the order in which they were made; as many
    /// as there must be.
    pub(crate) fn stages(&self, count: usize) -> Vec<String> {
        let stages = |events: &[Event]| -> Vec<String> {
            let made = events.iter().filter(|(kind, _)| kind == "ADDED");
            let stage = |(_, pod): &Event| {
                let tag = tag(pod);
                format!("{} {}", tag["name"].as_str().unwrap(), tag["stage"].as_str().unwrap())
            };
            made.map(stage).collect()
        };
        let events = self.until("more stages", |events| stages(events).len() >= count);
        stages(&events)
    }

    /// The same in the order of their names.
    pub(crate) fn sorted_stages(&self, count: usize) -> Vec<String> {
        let mut stages = self.stages(count);
        stages.sort();
        stages
    }

    /// The pod of a stage, as it was made.
    pub(crate) fn pod(&self, package: &str, stage: &str) -> Value {
        self.find(&format!("{package} {stage}"), |pod| {
            let tag = tag(pod);
            tag["name"] == package && tag["stage"] == stage
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The words that nodes carried in a Skyhook's name, after each change of one of them.
pub(crate) fn words(events: &[Event], skyhook: &str) -> Vec<BTreeMap<String, String>> {
    let mut nodes: BTreeMap<String, String> = BTreeMap::new();
    let mut states = Vec::new();
    for (_, node) in events {
        let metadata = &node["metadata"];
        let word = &metadata["annotations"][format!("skyhook.nvidia.com/status_{skyhook}")];
        let name = metadata["name"].as_str().unwrap().to_owned();
        nodes.insert(name, word.as_str().unwrap_or_default().to_owned());
        states.push(nodes.clone());
    }
    states
}

/// How many of some nodes were in progress, change by change, without repetitions.
pub(crate) fn course(states: &[BTreeMap<String, String>], among: &[String]) -> Vec<usize> {
    let count = |state: &BTreeMap<String, String>| {
        let words = among.iter().filter_map(|name| state.get(name));
        words.filter(|word| *word == "in_progress").count()
    };
    let mut course: Vec<usize> = states.iter().map(count).collect();
    course.dedup();
    course
}
