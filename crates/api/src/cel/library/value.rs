//! CEL values made from JSON. They are shared, not copied: binding a list element to a loop
//! variable costs the same whatever it holds, and maps are walked in the order of their keys,
//! so that equal inputs give equal answers.

pub(in crate::cel) mod json;

use std::any::Any;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{self, Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelNull, CelString, Kind, LIST_TYPE, MAP_TYPE, Type,
};
use cel::common::value::{CowVal, StaticVal, Val};
use serde_json::Value;

/// Deeper JSON reads as null below this; nothing that a schema describes comes near it.
const DEPTH_MAX: usize = 200;

/// When two lists are the same list, and what `+` does to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Element by element.
    Ordered,
    /// `x-kubernetes-list-type: set`: the order is of no meaning, `+` is the union.
    Set,
    /// `x-kubernetes-list-type: map` with these key fields: `+` replaces entries of equal key.
    Map(Arc<[String]>),
}

/// A list that copies in constant time.
#[derive(Clone, Debug)]
pub struct SharedList {
    items: Arc<[Box<dyn Val>]>,
    identity: Identity,
}

/// A map with string keys that copies in constant time.
#[derive(Clone, Debug)]
pub struct SharedMap {
    /// Sorted by key.
    entries: Arc<[(CelString<'static>, Box<dyn Val>)]>,
}

/// Words that CEL keeps for itself; fields of these names are written `__namespace__`.
pub const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// JSON as CEL reads it where no schema says more: integers are `int`.
pub fn from_json(value: &Value) -> Box<dyn Val> {
    below(value, 0)
}

fn below(value: &Value, depth: usize) -> Box<dyn Val> {
    match value {
        _ if depth > DEPTH_MAX => Box::new(CelNull),
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Box::new(CelInt::from(integer)),
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::MAX))),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => {
            let items = items.iter().map(|item| below(item, depth + 1)).collect();
            Box::new(SharedList::new(items, Identity::Ordered))
        }
        Value::Object(fields) => {
            let entries = fields.iter().map(|(key, item)| (key.clone(), below(item, depth + 1)));
            Box::new(SharedMap::new(entries.collect()))
        }
    }
}

/// `==` as CEL means it, between lists and maps of whatever making.
pub(in crate::cel) fn equal(left: &dyn Val, right: &dyn Val) -> bool {
    match (left.get_type().kind(), right.get_type().kind()) {
        (Kind::List, Kind::List) => {
            let (ours, theirs) = (items(left), items(right));
            if ours.len() != theirs.len() {
                return false;
            }
            let holds = |list: &[&dyn Val], item| list.iter().any(|other| equal(item, *other));
            if is_unordered(left) {
                ours.iter().all(|item| holds(&theirs, *item))
            } else {
                ours.iter().zip(&theirs).all(|(ours, theirs)| equal(*ours, *theirs))
            }
        }
        (Kind::Map, Kind::Map) => {
            let keys = items(left);
            keys.len() == items(right).len()
                && keys.iter().all(|key| match (field(left, *key), field(right, *key)) {
                    (Some(ours), Some(theirs)) => equal(ours.as_ref(), theirs.as_ref()),
                    _ => false,
                })
        }
        _ => left.equals(right),
    }
}

/// The elements of a list, or the keys of a map; nothing for other values.
pub(in crate::cel) fn items<'b, 'v>(value: &'b (dyn Val + 'v)) -> Vec<&'b (dyn Val + 'v)> {
    let mut found = Vec::new();
    if let Some(iterable) = value.as_iterable() {
        let mut iterator = iterable.iter();
        while let Some(item) = iterator.next() {
            found.push(item);
        }
    }
    found
}

fn field<'b, 'v>(value: &'b (dyn Val + 'v), key: &dyn Val) -> Option<CowVal<'b, 'v>> {
    value.as_indexer()?.get(key).ok()
}

fn is_unordered(value: &dyn Val) -> bool {
    value.downcast_ref::<SharedList>().is_some_and(|list| list.identity != Identity::Ordered)
}

impl SharedList {
    pub fn new(items: Vec<Box<dyn Val>>, identity: Identity) -> Self {
        Self { items: items.into(), identity }
    }

    /// The list with the elements of `other`: those it has already take the new value's place.
    fn united(&self, other: &dyn Val) -> Self {
        let mut sum: Vec<Box<dyn Val>> = self.items.to_vec();
        let mut keys: Vec<_> = sum.iter().map(|item| self.key_of(item.as_ref())).collect();
        for item in items(other) {
            let key = self.key_of(item);
            let owned = from_json(&json::from_val(item)); // it may borrow what the sum outlives
            if let Some(index) = keys.iter().position(|known| *known == key) {
                sum[index] = owned;
            } else {
                keys.push(key);
                sum.push(owned);
            }
        }
        Self::new(sum, self.identity.clone())
    }

    /// The fields that tell elements apart, rendered; equal for equal elements of a set.
    fn key_of(&self, item: &dyn Val) -> String {
        let value = json::from_val(item);
        match &self.identity {
            Identity::Map(keys) => {
                keys.iter().map(|key| value[key.as_str()].clone()).collect::<Value>().to_string()
            }
            _ => value.to_string(),
        }
    }
}

impl SharedMap {
    pub fn new(mut entries: Vec<(String, Box<dyn Val>)>) -> Self {
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let entries = entries.into_iter().map(|(key, value)| (CelString::from(key), value));
        Self { entries: entries.collect() }
    }

    fn find(&self, key: &dyn Val) -> Option<&(dyn Val + 'static)> {
        let key = key.downcast_ref::<CelString>()?.inner();
        let at = |key: &str| {
            let index = self.entries.binary_search_by(|(entry, _)| entry.inner().cmp(key)).ok()?;
            Some(self.entries[index].1.as_ref())
        };
        // A field whose name is a word of CEL may be spelled either way.
        let escaped = || RESERVED.contains(&key).then(|| format!("__{key}__"));
        at(key).or_else(|| at(&escaped()?))
    }
}

impl Val for SharedList {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        equal(self, other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for SharedList {}

impl Adder for SharedList {
    fn add<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if rhs.get_type().kind() != Kind::List {
            let types = vec!["list".to_owned(), rhs.get_type().name().to_owned()];
            return Err(ExecutionError::no_such_overload("_+_", types));
        }
        if self.identity != Identity::Ordered {
            return Ok(CowVal::owned(self.united(rhs)));
        }
        let ours = self.items.iter().map(|item| item.clone_as_boxed());
        let sum: Vec<Box<dyn Val + 'v>> =
            ours.chain(items(rhs).into_iter().map(Val::clone_as_boxed)).collect();
        Ok(CowVal::owned(CelList::from(sum)))
    }
}

impl Container for SharedList {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.items.iter().any(|item| equal(item.as_ref(), value)))
    }
}

impl Indexer for SharedList {
    fn get<'b, 'v>(&'b self, idx: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(index) = json::from_val(idx).as_f64().filter(|index| index.fract() == 0.0) else {
            let types = vec!["list".to_owned(), idx.get_type().name().to_owned()];
            return Err(ExecutionError::no_such_overload("_[_]", types));
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let found = if index < 0.0 { None } else { self.items.get(index as usize) };
        let missing = || {
            ExecutionError::IndexOutOfBounds(cel::Value::try_from(idx).unwrap_or(cel::Value::Null))
        };
        found.map(|item| CowVal::Borrowed(item.as_ref() as &(dyn Val + 'v))).ok_or_else(missing)
    }

    fn steal<'v>(self: Box<Self>, idx: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(idx).map(CowVal::into_owned)
    }
}

impl Iterable for SharedList {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Walk(self.items.iter().map(|item| item.as_ref() as &dyn Val)))
    }
}

impl Sizer for SharedList {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.items.len()).unwrap_or(i64::MAX))
    }
}

impl Zeroer for SharedList {
    fn is_zero_value(&self) -> bool {
        self.items.is_empty()
    }
}

impl Val for SharedMap {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        equal(self, other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for SharedMap {}

impl Container for SharedMap {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(key).is_some())
    }
}

impl Indexer for SharedMap {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match self.find(key) {
            Some(found) => Ok(CowVal::Borrowed(found as &(dyn Val + 'v))),
            None => Err(ExecutionError::no_such_key(&json::text_of(key))),
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl Iterable for SharedMap {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Walk(self.entries.iter().map(|(key, _)| key as &dyn Val)))
    }
}

impl Sizer for SharedMap {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.entries.len()).unwrap_or(i64::MAX))
    }
}

impl Zeroer for SharedMap {
    fn is_zero_value(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A standard iterator as the interpreter walks it.
struct Walk<I>(I);

impl<'b, 'v, I: Iterator<Item = &'b (dyn Val + 'static)>> traits::Iterator<'b, 'v> for Walk<I> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|item| item as &(dyn Val + 'v))
    }
}
