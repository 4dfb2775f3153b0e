//! The watches of a simulated control loop: lists, events in order, and streams that break.

use std::borrow::Cow;

use convoy_controllers::cache::CacheEvent;
use convoy_controllers::reflector::{ReflectorRequest, StreamEvent, WatchEnd};
use convoy_controllers::request::Request;
use convoy_controllers::response::Response;
use jiff::SignedDuration;

use super::{Controller, ControllerEvent, Scheduled, Stream};
use crate::simulation::cluster::{Author, Cluster, WriteRecord, path_in};
use crate::simulation::environment::Environment;
use crate::simulation::faults::{RequestFault, WatchFault};

impl Controller {
    pub(super) fn follow(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let is_down = self.is_down(&self.streams[index].reflector.collection().cluster);
        let stream = &mut self.streams[index];
        stream.at = None;
        if stream.is_stopped {
            return;
        }
        let collection = stream.reflector.collection().kind.in_cluster(&stream.cluster);
        match stream.reflector.next_request().0 {
            _ if is_down => {
                scheduled.push((
                    environment.random.millis(0, 5_000),
                    ControllerEvent::Listed(index, None),
                ));
            }
            ReflectorRequest::Discover => {
                let resource = environment.cluster.resource(&collection);
                if let Some(event) = stream.reflector.discovered(resource) {
                    self.reconciler.handle(event);
                }
                self.follow_on(index, environment, scheduled);
            }
            ReflectorRequest::List { path } => {
                let response = match environment.faults.of_read(environment.random) {
                    RequestFault::None => {
                        let path = path_in(&collection.cluster, &path);
                        Some(environment.cluster.send(&Request::get(path), Author::Controller))
                    }
                    RequestFault::Refused(code) => Some(Response { code, ..Response::default() }),
                    RequestFault::Failed | RequestFault::Lost => None,
                };
                scheduled.push((
                    environment.random.millis(0, 20),
                    ControllerEvent::Listed(index, response),
                ));
            }
            ReflectorRequest::Watch { version, .. } => {
                let version = version.parse().unwrap_or(0);
                stream.at = Some(environment.cluster.index_after(version));
                self.schedule_delivery(index, environment, scheduled);
            }
        }
    }

    pub(super) fn follow_on(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let (_, pause) = self.streams[index].reflector.next_request();
        self.streams[index].at = None;
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        scheduled.push((
            pause.saturating_add(environment.random.millis(0, 10)),
            ControllerEvent::Follow(index),
        ));
    }

    pub(super) fn listed(
        &mut self,
        index: usize,
        response: Option<Response>,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let reflector = &mut self.streams[index].reflector;
        let listed = response
            .ok_or_else(|| "no response".to_owned())
            .and_then(|response| reflector.listed(response));
        let event = listed.unwrap_or_else(|why| {
            reflector.failed();
            let collection = reflector.collection().clone();
            Some(CacheEvent::Failed { collection, why })
        });
        if let Some(event) = event.filter(|_| !self.streams[index].is_stopped) {
            self.reconciler.handle(event);
        }
        self.follow_on(index, environment, scheduled);
    }

    /// Delivers one event, or all pending ones, unless the watch fails.
    pub(super) fn deliver(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let is_down = self.is_down(&self.streams[index].reflector.collection().cluster);
        let stream = &mut self.streams[index];
        stream.is_scheduled = false;
        let Some(at) = stream.at.filter(|_| !stream.is_stopped) else { return };
        let end = match environment.faults.of_watch(environment.random) {
            _ if is_down => Some(WatchEnd::Broken("no response".to_owned())),
            WatchFault::None => None,
            WatchFault::Ended => Some(WatchEnd::Closed),
            WatchFault::Broken => Some(WatchEnd::Broken("broken".to_owned())),
            WatchFault::Expired => Some(WatchEnd::Expired),
        };
        if let Some(end) = end {
            if let Err(why) = stream.reflector.watch_ended(end) {
                let collection = stream.reflector.collection().clone();
                self.reconciler.handle(CacheEvent::Failed { collection, why });
            }
            return self.follow_on(index, environment, scheduled);
        }
        let mut from = at;
        while let Some((place, record)) = stream.next(environment.cluster, from) {
            from = place + 1;
            let raw = Cow::Borrowed(record.object.raw());
            let event = if record.is_deletion() {
                StreamEvent::Deleted(raw)
            } else {
                StreamEvent::Applied(raw)
            };
            if let Some(event) = stream.reflector.observed(event) {
                self.reconciler.handle(event);
            }
            if !self.behaviour.batches_events {
                break;
            }
        }
        stream.at = Some(from);
        self.schedule_delivery(index, environment, scheduled);
    }

    pub(super) fn schedule_delivery(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let lag = self.lag(&self.streams[index].reflector.collection().cluster, environment);
        let stream = &mut self.streams[index];
        let is_idle = !stream.is_scheduled && !stream.is_stopped;
        let Some(at) = stream.at.filter(|_| is_idle) else { return };
        if stream.next(environment.cluster, at).is_some() {
            stream.is_scheduled = true;
            let delay = environment.faults.delay(environment.random).saturating_add(lag);
            scheduled.push((delay, ControllerEvent::Deliver(index)));
        } else {
            stream.at = Some(environment.cluster.written());
        }
    }
}

impl Stream {
    /// The next record of its collection.
    pub(super) fn next<'c>(
        &self,
        cluster: &'c Cluster,
        at: usize,
    ) -> Option<(usize, &'c WriteRecord)> {
        let mut records = cluster.records(at).iter().enumerate();
        let kind = &self.reflector.collection().kind;
        let (found, record) = records.find(|(_, record)| {
            let key = record.object.key();
            key.kind == *kind && key.cluster == self.cluster
        })?;
        Some((at + found, record))
    }
}
