//! Runs specs in several processes side by side, each with a server of its own.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use convoy_kubernetes::Programs;

use super::list::{Home, SpecResult, first_line};
use super::servers::Server;
use super::suite::{Ended, Suite};

/// What is needed to run specs.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) suite: Suite,
    pub(super) convoy: PathBuf,
    pub(super) programs: Programs,
    /// How many processes run side by side.
    pub(super) shards: usize,
    /// Timeout of a batch; a spec that is alone in its batch may take as long.
    pub(super) timeout: Duration,
    pub(super) batches: AtomicUsize,
}

/// Specs that one process runs one after the other, against a server that nobody else uses. More of
/// them share the cost of a start, which takes seconds; fewer wait for one that fails after minutes.
const BATCH: usize = 6;

impl Runner {
    /// Runs specs of one home.
    pub(super) fn run(&self, home: Home, specs: &[String]) -> Result<Vec<Ended>> {
        // A kube-apiserver with etcd and kube-controller-manager takes a gigabyte and a core.
        let shards = if home == Home::Real { self.shards.min(2) } else { self.shards };
        let size = specs.len().div_ceil(shards).clamp(1, BATCH);
        let queue: VecDeque<Vec<String>> = specs.chunks(size).map(<[String]>::to_vec).collect();
        let queue = Mutex::new(queue);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let shards: Vec<_> = (0..shards)
                .map(|_| scope.spawn(|| self.shard(home, &queue, &results, specs.len())))
                .collect();
            let ends =
                shards.into_iter().map(|shard| shard.join().expect("a shard does not panic"));
            ends.collect::<Result<Vec<()>>>()
        })?;
        Ok(results.into_inner().expect("no shard panicked"))
    }

    /// Takes batches from the queue until there are none.
    fn shard(
        &self,
        home: Home,
        queue: &Mutex<VecDeque<Vec<String>>>,
        results: &Mutex<Vec<Ended>>,
        total: usize,
    ) -> Result<()> {
        loop {
            let next = queue.lock().expect("no shard panicked").pop_front();
            let Some(batch) = next else { return Ok(()) };
            let (ended, left) = self.batch(home, batch)?;
            let mut results = results.lock().expect("no shard panicked");
            for Ended { spec, outcome, seconds, .. } in &ended {
                let shown = match outcome {
                    SpecResult::Passed => "pass".to_owned(),
                    SpecResult::Failed(message) => format!("fail: {}", first_line(message)),
                    SpecResult::Skipped(message) => format!("skipped: {}", first_line(message)),
                };
                eprintln!("{home}: {spec} ({seconds:.1} s): {shown}");
            }
            results.extend(ended);
            eprintln!("{home}: {} of {total} specs have run", results.len());
            drop(results);
            if !left.is_empty() {
                queue.lock().expect("no shard panicked").push_front(left);
            }
        }
    }

    /// Runs one batch; the specs that ended, at least one, and those that have to run again.
    fn batch(&self, home: Home, batch: Vec<String>) -> Result<(Vec<Ended>, Vec<String>)> {
        let title = format!("{home}-{}", self.batches.fetch_add(1, Ordering::Relaxed));
        let log = self.suite.reports.join(format!("{title}.convoy.log"));
        let server = match home {
            Home::Embedded => Server::embedded(&self.convoy, &log)?,
            Home::Real => Server::real(&self.convoy, &self.programs, &log)?,
        };
        let ended = self.suite.run(&server.kubeconfig, &batch, self.timeout, &title);
        let failed = |message: String, seconds: f64| {
            let (spec, outcome) = (batch[0].clone(), SpecResult::Failed(message));
            Ended { spec, outcome, seconds, timed_out: false }
        };
        let seconds = self.timeout.as_secs_f64();
        let ended = ended.unwrap_or_else(|error| vec![failed(format!("{error:#}"), seconds)]);
        // A spec that shared the time with others may still pass.
        let (late, mut ended): (Vec<_>, Vec<_>) = ended.into_iter().partition(|end| end.timed_out);
        if ended.is_empty() {
            ended = late;
        }
        if ended.is_empty() {
            ended = vec![failed("the suite did not run this spec".to_owned(), 0.0)];
        }
        let has_ended = |spec: &String| ended.iter().any(|ended| ended.spec == *spec);
        let left = batch.iter().filter(|spec| !has_ended(spec)).cloned().collect();
        Ok((ended, left))
    }
}
