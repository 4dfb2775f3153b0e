//! What a kind may do differently from all others. Every method has the answer that most kinds
//! give, so a kind says only what is special about it.

use convoy_api::text::Name;
use convoy_store::Write;
use serde_json::Value;

use super::at::{At, Errors};
use crate::column::{self, Column};
use crate::object_meta::{Entry, ObjectMeta};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

/// A kind, as a row of the table in [`super`]. Everything else about it is its row in the registry
/// and its form.
pub(crate) trait Kind: Sync {
    /// Fills in what an object leaves open. Doing it twice does no more than doing it once.
    fn default(&self, _resource: &Resource, _object: &mut Value) {}

    /// What the server decides for a new object before users' webhooks see it.
    fn admit(&self, _request: &ResourceRequest, _object: &mut Value) -> ApiResult<()> {
        Ok(())
    }

    /// What the server refuses of an object after users' webhooks changed it; `old` is the object
    /// that an update changes.
    fn refuse(
        &self,
        _request: &ResourceRequest,
        _object: &Value,
        _old: Option<&Value>,
    ) -> ApiResult<()> {
        Ok(())
    }

    /// Gives a new object its initial state.
    fn prepare_create(&self, _request: &ResourceRequest, _object: &mut Value) -> ApiResult<()> {
        Ok(())
    }

    /// Gives a new object, which is never stored, what rules about it look for.
    fn complete_new(&self, _object: &mut Value) {}

    /// Keeps what an update may not change, and carries out what it implies.
    fn prepare_update(
        &self,
        _request: &ResourceRequest,
        _object: &mut Value,
        _current: &Value,
    ) -> ApiResult<()> {
        Ok(())
    }

    /// Everything about a change that breaks a rule, but for changes of the status alone.
    fn validate(&self, _change: &Change<'_>) -> Errors {
        Errors::new()
    }

    /// Everything about a change of the status that breaks a rule.
    fn validate_status(&self, _change: &Change<'_>) -> Errors {
        Errors::new()
    }

    /// What is wrong with the name of an object.
    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        Name::Dns1123Subdomain.errors(name)
    }

    /// The pod that an object is, or describes: what is odd about it is worth a warning.
    fn pod<'o>(&self, _object: &'o Value) -> Option<At<'o>> {
        None
    }

    /// Whether every update that changes what is wanted repeats the warnings.
    fn repeats_warnings(&self) -> bool {
        true
    }

    /// What a table shows of each object.
    fn columns(&self) -> &'static [Column] {
        column::PLAIN
    }

    /// What a row of a table tells about its object besides the cells.
    fn row_conditions(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// What clients are told who use the kind at all.
    fn deprecation(&self) -> Option<&'static str> {
        None
    }

    /// What of the metadata an update of the status may change besides.
    fn status_metadata(&self) -> &'static [&'static str] {
        &["labels", "annotations", "finalizers", "ownerReferences", "managedFields"]
    }

    /// Whether new objects bring their status.
    fn brings_status(&self) -> bool {
        false
    }

    /// Whether the generation counts changes of what is wanted.
    fn counts_changes(&self) -> bool {
        true
    }

    /// Whether something is written in one transaction with objects of the kind.
    fn has_companions(&self) -> bool {
        false
    }

    /// What is written in one transaction with an object: with `object` as it shall be, none when
    /// it goes, and `current` as it is, none when it comes.
    fn companions(
        &self,
        _request: &ResourceRequest,
        _object: Option<&Value>,
        _current: Option<&Entry>,
    ) -> Vec<Write<ObjectMeta>> {
        Vec::new()
    }

    /// Rejects deletions of protected objects.
    fn check_delete(&self, _request: &ResourceRequest, _object: &Value) -> ApiResult<()> {
        Ok(())
    }

    /// How long a deletion waits for the object's processes to end.
    fn grace_seconds(&self, _object: &Value, _asked: Option<i64>) -> i64 {
        0
    }

    /// Whether an object that is being deleted says how long that takes.
    fn tells_grace(&self) -> bool {
        true
    }

    /// What becomes of an object's dependents if nobody says.
    fn dependents(&self) -> Dependents {
        Dependents::Deleted
    }

    /// A finalizer that deletions begin with.
    fn deletion_finalizer(&self) -> Option<&'static str> {
        None
    }

    /// What a deletion changes besides the metadata.
    fn mark_deleting(&self, _object: &mut Value) {}

    /// Whether nothing else than finalizers keeps the object.
    fn may_vanish(&self, _object: &Value) -> bool {
        true
    }

    /// What follows at once from a change of an object.
    fn consequence(&self) -> Option<Consequence> {
        None
    }

    /// What may be selected by besides name and namespace.
    fn selectable_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The field that another name stands for in selectors.
    fn field_alias(&self, _field: &str) -> Option<&'static str> {
        None
    }

    /// Whether `metadata.namespace` may be selected by, even if there is none.
    fn has_namespace_field(&self) -> bool {
        true
    }

    /// The fields that a selectable one stands for, if not for itself: the first that is not empty
    /// is compared.
    fn field_sources(&self, _field: &str) -> &'static [&'static str] {
        &[]
    }

    /// The field whose value is kept beside each object, so that selecting by it reads none.
    fn indexed_field(&self) -> Option<&'static str> {
        None
    }

    /// Whether an object is a namespace, so that it is in the namespace of its own name.
    fn is_namespace(&self) -> bool {
        false
    }

    /// Whether objects go before all others of a namespace that is deleted, since these may need
    /// the others to end well.
    fn goes_first(&self) -> bool {
        false
    }

    /// Whether objects are made up when they are read, since nobody stores them.
    fn is_made_up(&self) -> bool {
        false
    }

    /// What becomes of an object that a client creates.
    fn use_of_new(&self) -> NewObject {
        NewObject::Stored
    }
}

/// A change of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'o> {
    pub resource: &'o Resource,
    pub subresource: &'o str,
    /// As it shall be.
    pub object: &'o Value,
    /// As it was; none if it is new.
    pub old: Option<&'o Value>,
}

/// What becomes of the dependents of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    Deleted,
    /// They stay, as what nobody owns.
    Orphaned,
    /// There are none, whatever a request says.
    None,
}

/// What follows at once from a change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Roles that are sums of others may have other rules.
    SumRoles,
    /// Other kinds are served.
    ServeKinds,
    /// A logical cluster is to be served.
    ServeCluster,
}

/// What becomes of an object that a client creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewObject {
    Stored,
    /// It is a question, which is answered.
    Question(Question),
    /// It binds a pod to a node.
    Binding,
}

/// What a review asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    OwnAccess,
    Access,
    LocalAccess,
    OwnRules,
    OwnName,
    Token,
}

impl Change<'_> {
    /// What is wrong with an object that was not wrong before: what is checked has grown, and what
    /// is stored stays as good as it was.
    pub(super) fn new_errors(&self, check: fn(&Value) -> Errors) -> Errors {
        let mut errors = check(self.object);
        if let Some(old) = self.old.filter(|_| !errors.is_empty()) {
            let before = check(old);
            errors.retain(|error| !before.contains(error));
        }
        errors
    }
}

/// What of the metadata an update of the status may change of kinds whose status stands alone.
pub(super) const OWNERSHIP_ALONE: &[&str] = &["managedFields"];
