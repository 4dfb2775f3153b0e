//! Keys: logical cluster, resource, namespace, name.

use std::fmt;

use smol_str::SmolStr;

/// One ordered map of objects: a resource of a logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shelf {
    /// The logical cluster; empty for the first one.
    pub cluster: SmolStr,
    /// `group/plural`, or the plural alone for the core group.
    pub resource: SmolStr,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub shelf: Shelf,
    /// Empty for objects of cluster scope.
    pub namespace: SmolStr,
    pub name: SmolStr,
}

/// A part of a key that the durable form cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key contains a NUL byte: {0:?}")]
pub struct KeyError(pub String);

impl Shelf {
    pub fn new(cluster: &str, resource: &str) -> Self {
        Self { cluster: SmolStr::new(cluster), resource: SmolStr::new(resource) }
    }

    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key { shelf: self.clone(), namespace: SmolStr::new(namespace), name: SmolStr::new(name) }
    }
}

impl Key {
    /// The durable form: the parts with a NUL between them, which keeps their order.
    pub fn encode(&self) -> Result<Vec<u8>, KeyError> {
        let parts = [&self.shelf.cluster, &self.shelf.resource, &self.namespace, &self.name];
        if let Some(part) = parts.iter().find(|part| part.as_bytes().contains(&0)) {
            return Err(KeyError(part.to_string()));
        }
        Ok(parts.map(|part| part.as_bytes()).join(&0))
    }

    /// Reads the durable form back; none where it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.split('\0').map(SmolStr::new);
        let shelf = Shelf { cluster: parts.next()?, resource: parts.next()? };
        let key = Self { shelf, namespace: parts.next()?, name: parts.next()? };
        parts.next().is_none().then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shelf: Shelf { cluster, resource }, namespace, name } = self;
        if !cluster.is_empty() {
            write!(f, "{cluster}: ")?;
        }
        if namespace.is_empty() {
            write!(f, "{resource} {name}")
        } else {
            write!(f, "{resource} {namespace}/{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_durable_form_reads_back_and_keeps_the_order() {
        let shelf = Shelf::new("", "apps/deployments");
        let keys =
            [shelf.key("", "a"), shelf.key("a", "b"), shelf.key("a-b", "a"), shelf.key("b", "")];
        let encoded: Vec<Vec<u8>> = keys.iter().map(|key| key.encode().unwrap()).collect();
        assert!(encoded.is_sorted());
        for (key, bytes) in keys.iter().zip(&encoded) {
            assert_eq!(Key::decode(bytes).as_ref(), Some(key));
        }
        assert_eq!(Key::decode(b"only\0three\0parts"), None);
        assert!(shelf.key("a\0b", "c").encode().is_err());
    }
}
