//! A small server that begins with objects of another one.

use convoy_api::Object;
use convoy_store::Change;
use jiff::Timestamp;

use super::Light;

impl Light {
    /// With these objects, whose kinds are all served. Only their versions are new.
    pub(in crate::simulation) fn holding(objects: Vec<Object>, now: Timestamp) -> Self {
        let mut server = Self::new();
        server.now = now;
        for owner in objects.iter().flat_map(Object::owners) {
            server.presume(owner.uid);
        }
        for object in objects {
            server.kinds.serve(&object);
            let object = server.next_version(&object, object.raw().clone());
            server.store(object, Change::Created);
        }
        server
    }
}
