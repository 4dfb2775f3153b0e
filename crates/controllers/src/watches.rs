//! Which collections are watched, for which rollouts, and which of them are known completely. The
//! tables of the dialects name the kinds of the home cluster; every other collection is watched
//! for as long as a rollout needs it. A collection that is not known, because a cluster does not
//! answer or a kind is not listed yet, holds up the rollouts that need it and nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use convoy_api::{CollectionKey, GroupKind, ObjectKey};
use convoy_plan::{Dialect, HoldReason, Need};
use smol_str::SmolStr;

use crate::projection::{Projection, Projections, united};
use crate::rollout::Rollout;

/// The most collections of one cluster that are watched because rollouts need them. A cluster with
/// many operators has a few hundred kinds, and each watch costs a connection's stream and a cache.
const NEEDED_MAX: usize = 500;

/// A watch that begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchChange {
    /// Lists and watches a collection, in this version if the server has it.
    Start {
        collection: CollectionKey,
        version: SmolStr,
    },
    Stop {
        collection: CollectionKey,
    },
    /// Finds out, again and again, which namespaced kinds a cluster serves.
    StartDiscovery {
        cluster: SmolStr,
    },
    StopDiscovery {
        cluster: SmolStr,
    },
}

/// The watches of a control loop.
pub struct Watches {
    dialects: Vec<&'static dyn Dialect>,
    /// What the tables keep of each kind in the home cluster, and in members.
    home: BTreeMap<GroupKind, Projection>,
    members: BTreeMap<GroupKind, Projection>,
    projections: Arc<Projections>,
    /// The member clusters to which there is a connection, whether or not they answer.
    joined: BTreeSet<SmolStr>,
    collections: BTreeMap<CollectionKey, Watched>,
    served: BTreeMap<SmolStr, ServedKinds>,
    needs: BTreeMap<Rollout, Needed>,
    /// Collections of the home cluster's table that are not listed.
    unlisted: BTreeSet<CollectionKey>,
    changes: Vec<WatchChange>,
}

#[derive(Debug)]
struct Watched {
    version: SmolStr,
    /// Whether a table of the home cluster names it: it is watched without being needed.
    is_table: bool,
    is_started: bool,
    extent: Extent,
    state: State,
    by: BTreeSet<Rollout>,
}

/// How much of each object is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Extent {
    Fields,
    /// All of it since the last list: versions that are known have to be read again.
    Rereading,
    Whole,
}

#[derive(Debug, PartialEq)]
enum State {
    Listed,
    /// With what went wrong, if anything did.
    Unlisted(String),
}

/// The namespaced kinds of a cluster, for the rollouts that need all of them.
#[derive(Debug, Default)]
struct ServedKinds {
    /// `None` until discovery has succeeded.
    kinds: Option<BTreeSet<GroupKind>>,
    failure: String,
    by: BTreeSet<Rollout>,
}

#[derive(Debug, Default)]
struct Needed {
    needs: Vec<Need>,
    collections: BTreeSet<CollectionKey>,
}

/// How a collection is needed.
#[derive(Debug, Default)]
struct Claim {
    version: SmolStr,
    is_whole: bool,
}

impl Watches {
    pub(crate) fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let mut watches = Self {
            home: united(dialects.iter().flat_map(|dialect| dialect.watches())),
            members: united(dialects.iter().flat_map(|dialect| dialect.member_watches())),
            dialects,
            projections: Arc::default(),
            joined: BTreeSet::from([SmolStr::default()]),
            collections: BTreeMap::new(),
            served: BTreeMap::new(),
            needs: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            changes: Vec::new(),
        };
        let kinds: Vec<GroupKind> = watches.home.keys().cloned().collect();
        for kind in kinds {
            let collection = kind.in_cluster("");
            watches.unlisted.insert(collection.clone());
            let mut asked = watches.dialects.iter().map(|dialect| dialect.version(&kind));
            let version = asked.find(|version| !version.is_empty()).unwrap_or_default();
            let claim = Claim { version: SmolStr::new_static(version), is_whole: false };
            watches.watch(collection, claim, true);
        }
        watches.start_pending("");
        for (dialect, with) in watches.dialects.clone().into_iter().enumerate() {
            watches.renew(&Rollout::standing(dialect), with.standing_needs());
        }
        watches
    }

    /// The fields to keep of each collection.
    pub fn projections(&self) -> &Arc<Projections> {
        &self.projections
    }

    /// The watches that begin and end since the last call, in order.
    pub fn take_changes(&mut self) -> Vec<WatchChange> {
        std::mem::take(&mut self.changes)
    }

    /// Whether the kinds of all tables are listed in the home cluster.
    pub fn is_home_listed(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Whether there is a connection to any member cluster.
    pub(crate) fn has_members(&self) -> bool {
        self.joined.len() > 1
    }

    /// Whether a dialect reads the collection of an object.
    pub(crate) fn is_read_by(&self, dialect: usize, key: &ObjectKey) -> bool {
        let with = self.dialects[dialect];
        let table = if key.cluster.is_empty() { with.watches() } else { with.member_watches() };
        table.iter().any(|watch| watch.kind == key.kind)
            || self
                .collections
                .get(&key.collection())
                .is_some_and(|watched| watched.by.iter().any(|rollout| rollout.dialect == dialect))
    }

    /// The member clusters that a rollout needs.
    pub(crate) fn clusters(&self, rollout: &Rollout) -> BTreeSet<SmolStr> {
        let needs = self.needs.get(rollout).into_iter().flat_map(|needed| &needed.needs);
        needs.map(Need::cluster).filter(|cluster| !cluster.is_empty()).cloned().collect()
    }

    /// What is not known of that which a rollout needs; `None` if it can be decided about.
    pub(crate) fn missing(&self, rollout: &Rollout) -> Option<HoldReason> {
        let needed = self.needs.get(rollout)?;
        for need in &needed.needs {
            let cluster = need.cluster();
            if !self.joined.contains(cluster) {
                return Some(unobserved(cluster, "", "there is no connection to it"));
            }
            let served = self.served.get(cluster).filter(|served| served.kinds.is_none());
            if let (Need::NamespacedKinds { .. }, Some(served)) = (need, served) {
                return Some(unobserved(cluster, "*", &served.failure));
            }
        }
        needed.collections.iter().find_map(|key| match &self.collections.get(key)?.state {
            State::Listed => None,
            State::Unlisted(why) => Some(unobserved(&key.cluster, &key.kind.to_string(), why)),
        })
    }

    /// Sets what a rollout needs; returns the collections that are watched no longer.
    pub(crate) fn set_needs(&mut self, rollout: &Rollout, needs: Vec<Need>) -> Vec<CollectionKey> {
        let known = self.needs.get(rollout).map_or(&[][..], |needed| &needed.needs);
        if known == needs { Vec::new() } else { self.renew(rollout, needs) }
    }

    /// A collection is listed, or not served. Returns the rollouts that waited for it.
    pub(crate) fn listed(&mut self, collection: &CollectionKey) -> Vec<Rollout> {
        self.unlisted.remove(collection);
        let Some(watched) = self.collections.get_mut(collection) else { return Vec::new() };
        if watched.extent == Extent::Rereading {
            watched.extent = Extent::Whole;
        }
        let before = std::mem::replace(&mut watched.state, State::Listed);
        if before == State::Listed { Vec::new() } else { watched.by.iter().cloned().collect() }
    }

    /// Whether the next list has to replace objects whose version is known.
    pub(crate) fn is_reread(&self, collection: &CollectionKey) -> bool {
        let watched = self.collections.get(collection);
        watched.is_some_and(|watched| watched.extent == Extent::Rereading)
    }

    pub(crate) fn is_watched(&self, collection: &CollectionKey) -> bool {
        self.collections.contains_key(collection)
    }

    /// A list or a watch has failed. Of a member cluster, nothing is known any more until it is
    /// listed again; of the home cluster, where the rollouts are, writes show whether what is
    /// known is up to date. Returns the rollouts that wait for another reason now.
    pub(crate) fn failed(&mut self, collection: &CollectionKey, why: &str) -> Vec<Rollout> {
        let Some(watched) = self.collections.get_mut(collection) else { return Vec::new() };
        let is_known = match &watched.state {
            State::Listed => collection.cluster.is_empty(),
            State::Unlisted(known) => known == why,
        };
        if is_known {
            return Vec::new();
        }
        watched.state = State::Unlisted(why.to_owned());
        watched.by.iter().cloned().collect()
    }

    /// There is a connection to a member cluster. Returns the rollouts that wait for it.
    pub(crate) fn join(&mut self, cluster: &SmolStr) -> BTreeSet<Rollout> {
        self.joined.insert(cluster.clone());
        self.start_pending(cluster);
        if self.served.contains_key(cluster) {
            self.changes.push(WatchChange::StartDiscovery { cluster: cluster.clone() });
        }
        self.concerned(cluster)
    }

    /// There is no connection to a member cluster any more. Returns its collections, and the
    /// rollouts that need it.
    pub(crate) fn leave(&mut self, cluster: &SmolStr) -> (Vec<CollectionKey>, BTreeSet<Rollout>) {
        if !self.joined.remove(cluster) {
            return (Vec::new(), BTreeSet::new());
        }
        let left: Vec<CollectionKey> = self.of_cluster(cluster).cloned().collect();
        for collection in &left {
            let Some(watched) = self.collections.get_mut(collection) else { continue };
            watched.state = State::Unlisted(String::new());
            if std::mem::take(&mut watched.is_started) {
                self.changes.push(WatchChange::Stop { collection: collection.clone() });
            }
        }
        if let Some(served) = self.served.get_mut(cluster) {
            served.kinds = None;
            self.changes.push(WatchChange::StopDiscovery { cluster: cluster.clone() });
        }
        (left, self.concerned(cluster))
    }

    /// The namespaced kinds that a cluster serves, or why they are not known. Returns the
    /// collections that are watched no longer, and the rollouts that need all of the kinds.
    pub(crate) fn set_served(
        &mut self,
        cluster: &SmolStr,
        kinds: Result<BTreeSet<GroupKind>, String>,
    ) -> (Vec<CollectionKey>, BTreeSet<Rollout>) {
        let Some(served) = self.served.get_mut(cluster) else { return Default::default() };
        match kinds {
            Ok(kinds) if served.kinds.as_ref() == Some(&kinds) => return Default::default(),
            Ok(kinds) => served.kinds = Some(kinds),
            Err(why) => {
                // What was served a minute ago is good enough to go on with.
                let is_new = served.kinds.is_none() && served.failure != why;
                served.failure = why;
                let by = if is_new { served.by.clone() } else { BTreeSet::new() };
                return (Vec::new(), by);
            }
        }
        let by = served.by.clone();
        let mut stopped = Vec::new();
        for rollout in &by {
            let needs = self.needs.get(rollout).map(|needed| needed.needs.clone());
            stopped.extend(self.renew(rollout, needs.unwrap_or_default()));
        }
        (stopped, by)
    }

    /// Watches what a rollout needs now, and no longer what only it needed before.
    fn renew(&mut self, rollout: &Rollout, needs: Vec<Need>) -> Vec<CollectionKey> {
        self.set_served_by(rollout, &needs);
        let claims = self.claims(rollout.dialect, &needs);
        let before = self.needs.remove(rollout).unwrap_or_default();
        let mut stopped = Vec::new();
        for collection in before.collections {
            if !claims.contains_key(&collection) && self.release(&collection, rollout) {
                stopped.push(collection);
            }
        }
        let collections: BTreeSet<CollectionKey> = claims.keys().cloned().collect();
        for (collection, claim) in claims {
            self.watch(collection.clone(), claim, false);
            if let Some(watched) = self.collections.get_mut(&collection) {
                watched.by.insert(rollout.clone());
            }
        }
        let clusters: BTreeSet<&SmolStr> =
            collections.iter().chain(&stopped).map(|collection| &collection.cluster).collect();
        for cluster in clusters {
            self.start_pending(cluster);
        }
        if !needs.is_empty() {
            self.needs.insert(rollout.clone(), Needed { needs, collections });
        }
        stopped
    }

    /// The collections that needs are about.
    fn claims(&self, dialect: usize, needs: &[Need]) -> BTreeMap<CollectionKey, Claim> {
        let with = self.dialects[dialect];
        let mut claims: BTreeMap<CollectionKey, Claim> = BTreeMap::new();
        for need in needs {
            let cluster = need.cluster();
            let table = if cluster.is_empty() { &[] } else { with.member_watches() };
            for watch in table {
                claims.entry(watch.kind.in_cluster(cluster)).or_default();
            }
            match need {
                Need::Member { .. } => {}
                Need::Kind { collection, version } => {
                    let claim = claims.entry(collection.clone()).or_default();
                    claim.is_whole = true;
                    if claim.version.is_empty() {
                        claim.version = version.clone();
                    }
                }
                Need::NamespacedKinds { .. } => {
                    let served = self.served.get(cluster).and_then(|served| served.kinds.as_ref());
                    let kinds = served.into_iter().flatten().filter(|kind| with.takes_along(kind));
                    for kind in kinds {
                        claims.entry(kind.in_cluster(cluster)).or_default().is_whole = true;
                    }
                }
            }
        }
        claims
    }

    /// Makes sure that a collection is known here, and that enough of its objects is kept.
    fn watch(&mut self, collection: CollectionKey, claim: Claim, is_table: bool) {
        let Claim { version, is_whole } = claim;
        if let Some(watched) = self.collections.get_mut(&collection) {
            if !is_whole || watched.extent != Extent::Fields {
                return;
            }
            // Its table keeps some fields only: it is listed again, and kept whole.
            watched.extent = Extent::Rereading;
            watched.state = State::Unlisted(String::new());
            self.projections.set(collection.clone(), Projection::Whole);
            if watched.is_table {
                self.unlisted.insert(collection.clone());
            }
            if std::mem::take(&mut watched.is_started) {
                self.changes.push(WatchChange::Stop { collection });
            }
            return;
        }
        let tables = if collection.cluster.is_empty() { &self.home } else { &self.members };
        let table = tables.get(&collection.kind).filter(|_| !is_whole);
        let projection = table.cloned().unwrap_or(Projection::Whole);
        let is_all = projection == Projection::Whole;
        let watched = Watched {
            version,
            is_table,
            is_started: false,
            extent: if is_all { Extent::Whole } else { Extent::Fields },
            state: State::Unlisted(String::new()),
            by: BTreeSet::new(),
        };
        self.projections.set(collection.clone(), projection);
        self.collections.insert(collection, watched);
    }

    /// A rollout no longer needs a collection. True if nobody does.
    fn release(&mut self, collection: &CollectionKey, rollout: &Rollout) -> bool {
        let Some(watched) = self.collections.get_mut(collection) else { return false };
        watched.by.remove(rollout);
        if watched.is_table || !watched.by.is_empty() {
            return false;
        }
        if watched.is_started {
            self.changes.push(WatchChange::Stop { collection: collection.clone() });
        }
        self.collections.remove(collection);
        self.projections.remove(collection);
        true
    }

    /// Starts the watches of a cluster that have not begun, as many as may run at once.
    fn start_pending(&mut self, cluster: &str) {
        if !self.joined.contains(cluster) {
            return;
        }
        let keys: Vec<CollectionKey> = self.of_cluster(cluster).cloned().collect();
        let is_needed = |watched: &&Watched| watched.is_started && !watched.is_table;
        let mut running =
            keys.iter().filter_map(|key| self.collections.get(key)).filter(is_needed).count();
        for collection in keys {
            let Some(watched) = self.collections.get_mut(&collection) else { continue };
            if watched.is_started {
                continue;
            }
            if !watched.is_table {
                if running >= NEEDED_MAX {
                    let why = format!("{NEEDED_MAX} kinds of this cluster are watched already");
                    watched.state = State::Unlisted(why);
                    continue;
                }
                running += 1;
            }
            watched.is_started = true;
            let version = watched.version.clone();
            self.changes.push(WatchChange::Start { collection, version });
        }
    }

    /// Notes which clusters' namespaced kinds a rollout needs.
    fn set_served_by(&mut self, rollout: &Rollout, needs: &[Need]) {
        let wanted: BTreeSet<&SmolStr> = needs
            .iter()
            .filter(|need| matches!(need, Need::NamespacedKinds { .. }))
            .map(Need::cluster)
            .collect();
        self.served.retain(|cluster, served| {
            if !wanted.contains(cluster) {
                served.by.remove(rollout);
            }
            let is_needed = !served.by.is_empty();
            if !is_needed {
                self.changes.push(WatchChange::StopDiscovery { cluster: cluster.clone() });
            }
            is_needed
        });
        for cluster in wanted {
            if !self.served.contains_key(cluster) && self.joined.contains(cluster) {
                self.changes.push(WatchChange::StartDiscovery { cluster: cluster.clone() });
            }
            self.served.entry(cluster.clone()).or_default().by.insert(rollout.clone());
        }
    }

    fn of_cluster<'s>(&'s self, cluster: &'s str) -> impl Iterator<Item = &'s CollectionKey> {
        let first = GroupKind::new("", "").in_cluster(cluster);
        let from = self.collections.range(first..).map(|(key, _)| key);
        from.take_while(move |key| key.cluster == cluster)
    }

    /// The rollouts that need a cluster.
    fn concerned(&self, cluster: &SmolStr) -> BTreeSet<Rollout> {
        let needs = |needed: &Needed| needed.needs.iter().any(|need| need.cluster() == cluster);
        let all = self.needs.iter().filter(|(_, needed)| needs(needed));
        all.map(|(rollout, _)| rollout.clone()).collect()
    }
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches")
            .field("joined", &self.joined)
            .field("collections", &self.collections)
            .field("unlisted", &self.unlisted)
            .finish_non_exhaustive()
    }
}

fn unobserved(cluster: &str, kind: &str, detail: &str) -> HoldReason {
    let [cluster, kind, detail] = [cluster, kind, detail].map(str::to_owned);
    HoldReason::NotObserved { cluster, kind, detail }
}

#[cfg(test)]
mod tests;
