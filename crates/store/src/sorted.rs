//! A sorted map whose clones share what they have in common: a reader keeps its snapshot while
//! the writer goes on. One write copies one leaf and the list of leaves, a few microseconds
//! with a hundred thousand entries.

use std::sync::Arc;

/// Leaves split beyond this; half of it is the usual size.
const LEAF_MOST: usize = 128;

type Leaf<K, V> = Arc<Vec<(K, V)>>;

#[derive(Debug)]
pub(crate) struct Sorted<K, V> {
    /// In order, none empty.
    leaves: Arc<Vec<Leaf<K, V>>>,
    len: usize,
}

impl<K, V> Clone for Sorted<K, V> {
    fn clone(&self) -> Self {
        Self { leaves: Arc::clone(&self.leaves), len: self.len }
    }
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self { leaves: Arc::default(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> Sorted<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let leaf = self.leaves.get(self.leaf_of(key)?)?;
        let at = leaf.binary_search_by(|(found, _)| found.cmp(key)).ok()?;
        Some(&leaf[at].1)
    }

    /// The value of a key, to be changed where it is: copied first if a clone shares it.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let index = self.leaf_of(key)?;
        let at = self.leaves[index].binary_search_by(|(found, _)| found.cmp(key)).ok()?;
        let leaves = Arc::make_mut(&mut self.leaves);
        let leaf = Arc::make_mut(&mut leaves[index]);
        Some(&mut leaf[at].1)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let index = self.leaf_of(&key);
        let leaves = Arc::make_mut(&mut self.leaves);
        let Some(index) = index.or_else(|| (!leaves.is_empty()).then_some(0)) else {
            leaves.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let leaf = Arc::make_mut(&mut leaves[index]);
        match leaf.binary_search_by(|(found, _)| found.cmp(&key)) {
            Ok(at) => Some(std::mem::replace(&mut leaf[at].1, value)),
            Err(at) => {
                leaf.insert(at, (key, value));
                if leaf.len() > LEAF_MOST {
                    // Appending in order is the common case: it leaves full leaves behind.
                    let cut = if at + 1 == leaf.len() { LEAF_MOST } else { leaf.len() / 2 };
                    let tail = leaf.split_off(cut);
                    leaves.insert(index + 1, Arc::new(tail));
                }
                self.len += 1;
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.leaf_of(key)?;
        let at = self.leaves[index].binary_search_by(|(found, _)| found.cmp(key)).ok()?;
        let leaves = Arc::make_mut(&mut self.leaves);
        let leaf = Arc::make_mut(&mut leaves[index]);
        let (_, value) = leaf.remove(at);
        if leaf.is_empty() {
            leaves.remove(index);
        }
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.leaves.iter().flat_map(|leaf| leaf.iter().map(|(key, value)| (key, value)))
    }

    /// The entries whose key is not below `from`, in order.
    pub(crate) fn range_from<'s>(
        &'s self,
        from: &K,
    ) -> impl Iterator<Item = (&'s K, &'s V)> + use<'s, K, V> {
        let index = self.leaf_of(from).unwrap_or(0);
        let within =
            self.leaves.get(index).map_or(0, |leaf| leaf.partition_point(|(key, _)| key < from));
        let leaves = self.leaves.iter().skip(index).enumerate();
        leaves.flat_map(move |(order, leaf)| {
            let skipped = if order == 0 { within } else { 0 };
            leaf[skipped..].iter().map(|(key, value)| (key, value))
        })
    }

    /// The leaf that holds `key` if any does: the last one that begins at or below it.
    fn leaf_of(&self, key: &K) -> Option<usize> {
        self.leaves
            .partition_point(|leaf| leaf.first().is_some_and(|(first, _)| first <= key))
            .checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use convoy_testkit::property;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(property::config(256))]

        #[test]
        fn it_behaves_as_a_btree_map(writes in prop::collection::vec((any::<bool>(), 0u16..600), 0..2_000)) {
            let mut model = BTreeMap::new();
            let mut sorted = Sorted::default();
            let mut kept = None;
            for (order, (insert, key)) in writes.iter().enumerate() {
                if order % 7 == 0 {
                    let changed = sorted.get_mut(key).map(|value| *value += 1);
                    prop_assert_eq!(changed, model.get_mut(key).map(|value| *value += 1));
                } else if *insert {
                    prop_assert_eq!(sorted.insert(*key, order), model.insert(*key, order));
                } else {
                    prop_assert_eq!(sorted.remove(key), model.remove(key));
                }
                if order == writes.len() / 2 {
                    kept = Some((sorted.clone(), model.clone()));
                }
            }
            let (old, old_model) = kept.unwrap_or_default();
            prop_assert!(old.iter().eq(old_model.iter()), "a snapshot does not change");
            prop_assert!(sorted.iter().eq(model.iter()));
            prop_assert_eq!(sorted.len(), model.len());
            for key in [0u16, 1, 255, 300, 599] {
                prop_assert_eq!(sorted.get(&key), model.get(&key));
                prop_assert!(sorted.range_from(&key).eq(model.range(key..)));
            }
        }
    }
}
