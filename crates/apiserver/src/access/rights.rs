//! The RBAC index of one logical cluster, kept up to date with the store.

use std::sync::atomic::{AtomicU64, Ordering};

use convoy_store::{Change, Revision, Shelf, Watch};
use parking_lot::{Mutex, RwLock};

use super::index::{GROUP, Index, Source};
use crate::object_meta::{ObjectMeta, Store, shelf_name};

/// Roles and bindings of one logical cluster. Every look sees all writes that were acknowledged
/// before it; a look at an unchanged store is one comparison.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    /// Up to where the store is known.
    seen: AtomicU64,
    feeds: Mutex<Vec<Feed>>,
    index: RwLock<Index>,
}

#[derive(Debug)]
struct Feed {
    source: Source,
    watch: Watch<ObjectMeta>,
}

const SOURCES: [(Source, &str); 4] = [
    (Source::ClusterRoles, "clusterroles"),
    (Source::Roles, "roles"),
    (Source::ClusterRoleBindings, "clusterrolebindings"),
    (Source::RoleBindings, "rolebindings"),
];

impl Rights {
    /// Looks at the index as of now.
    pub(crate) fn with<T>(
        &self,
        store: &Store,
        cluster: &str,
        look: impl FnOnce(&Index) -> T,
    ) -> T {
        let now = store.revision().0;
        if now == 0 || self.seen.load(Ordering::Acquire) < now {
            self.catch_up(store, cluster);
        }
        look(&self.index.read())
    }

    fn catch_up(&self, store: &Store, cluster: &str) {
        let mut feeds = self.feeds.lock();
        if feeds.is_empty() || self.advance(&mut feeds).is_none() {
            self.rebuild(&mut feeds, store, cluster);
        }
        let seen = feeds.iter().map(|feed| feed.watch.position().0).min().unwrap_or(0);
        self.seen.store(seen, Ordering::Release);
    }

    /// Takes in what changed; `None` if a feed lost its place.
    fn advance(&self, feeds: &mut [Feed]) -> Option<()> {
        let mut changes = Vec::new();
        for Feed { source, watch } in feeds {
            loop {
                // A store that is shut down changes no more.
                let events = watch.read().ok()?.unwrap_or_default();
                if events.is_empty() {
                    break;
                }
                changes.extend(events.into_iter().map(|event| (*source, event)));
            }
        }
        if changes.is_empty() {
            return Some(());
        }
        let mut index = self.index.write();
        for (source, event) in changes {
            if let Some(previous) = &event.previous {
                index.remove(source, previous);
            }
            if event.change != Change::Deleted {
                index.put(source, &event.entry);
            }
        }
        Some(())
    }

    fn rebuild(&self, feeds: &mut Vec<Feed>, store: &Store, cluster: &str) {
        let snapshot = store.snapshot();
        let revision: Revision = snapshot.revision();
        let mut index = Index::default();
        feeds.clear();
        for (source, plural) in SOURCES {
            let shelf = Shelf::new(cluster, &shelf_name(GROUP, plural));
            for entry in snapshot.list(&shelf) {
                index.put(source, entry);
            }
            feeds.push(Feed { source, watch: store.watch(&shelf, revision) });
        }
        *self.index.write() = index;
    }
}
