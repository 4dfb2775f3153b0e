//! Names of objects. Identity is group, kind, namespace and name, whatever version an
//! object was written in, plus the cluster it lives in.

use std::fmt;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A kind without its version: two versions of one kind are the same objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: SmolStr,
    pub kind: SmolStr,
}

/// Which object, in which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Empty for the home cluster.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub cluster: SmolStr,
    #[serde(flatten)]
    pub kind: GroupKind,
    /// Empty for objects of cluster scope.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub namespace: SmolStr,
    pub name: SmolStr,
}

/// The objects of one kind in one cluster: what a list returns and a watch follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionKey {
    /// Empty for the home cluster.
    pub cluster: SmolStr,
    pub kind: GroupKind,
}

impl GroupKind {
    /// `const`, so that the kinds a dialect knows are constants.
    pub const fn new(group: &'static str, kind: &'static str) -> Self {
        Self { group: SmolStr::new_static(group), kind: SmolStr::new_static(kind) }
    }

    /// The object of this kind that goes by `namespace` (empty for cluster scope) and `name`,
    /// in the home cluster.
    pub fn key(&self, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            cluster: SmolStr::default(),
            kind: self.clone(),
            namespace: SmolStr::new(namespace),
            name: SmolStr::new(name),
        }
    }

    /// The objects of this kind in `cluster`, which is empty for the home cluster.
    pub fn in_cluster(&self, cluster: &str) -> CollectionKey {
        CollectionKey { cluster: SmolStr::new(cluster), kind: self.clone() }
    }
}

impl ObjectKey {
    /// The collection that the object is in.
    pub fn collection(&self) -> CollectionKey {
        CollectionKey { cluster: self.cluster.clone(), kind: self.kind.clone() }
    }

    /// The key of another object of the same cluster.
    #[must_use]
    pub fn sibling(&self, kind: &GroupKind, namespace: &str, name: &str) -> Self {
        Self { cluster: self.cluster.clone(), ..kind.key(namespace, name) }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}", self.kind)
        } else {
            write!(f, "{}/{}", self.group, self.kind)
        }
    }
}

/// The kind, after the name of a cluster other than the home one.
impl fmt::Display for CollectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_empty() {
            write!(f, "{}: ", self.cluster)?;
        }
        write!(f, "{}", self.kind)
    }
}

/// `group/Kind/namespace/name`, with the parts that are empty left out.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_empty() {
            write!(f, "{}: ", self.cluster)?;
        }
        write!(f, "{}/", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}", self.name)
    }
}
