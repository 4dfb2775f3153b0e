//! Things looked up by name, mostly in the order of their names: whoever goes through one sorted
//! list and asks for its counterparts in another finds most of them at the same place.

/// Things by name; of several with the same name the one that came last.
#[derive(Clone, Debug)]
pub(crate) struct ByName<'n, T> {
    entries: Vec<(&'n str, T)>,
}

impl<T> ByName<'_, T> {
    /// What has this name. It is looked for at place `near` first.
    pub(crate) fn find(&self, near: usize, name: &str) -> Option<&T> {
        let expected = self.entries.get(near).filter(|(found, _)| *found == name);
        let found = expected.or_else(|| {
            let at = self.entries.binary_search_by(|(found, _)| (*found).cmp(name)).ok()?;
            self.entries.get(at)
        });
        found.map(|(_, thing)| thing)
    }
}

impl<'n, T> FromIterator<(&'n str, T)> for ByName<'n, T> {
    fn from_iter<I: IntoIterator<Item = (&'n str, T)>>(things: I) -> Self {
        let mut entries: Vec<(&'n str, T)> = things.into_iter().collect();
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            entries.reverse(); // so that the last comes first and is the one that is kept
            entries.sort_by_key(|(name, _)| *name);
            entries.dedup_by_key(|(name, _)| *name);
        }
        Self { entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_found_wherever_they_are_looked_for() {
        for names in [["a", "b", "d"], ["d", "a", "b"]] {
            let things: ByName<'_, usize> =
                names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
            for near in 0..5 {
                for (at, name) in names.iter().enumerate() {
                    assert_eq!(things.find(near, name), Some(&at), "{name} near {near}");
                }
                assert_eq!(things.find(near, "c"), None, "near {near}");
            }
        }
    }

    #[test]
    fn the_last_of_one_name_counts() {
        let things: ByName<'_, u32> = [("b", 1), ("a", 2), ("b", 3)].into_iter().collect();
        assert_eq!((things.find(0, "b"), things.find(0, "a")), (Some(&3), Some(&2)));
    }
}
