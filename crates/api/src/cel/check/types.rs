//! Types that expressions can have, and which of them may stand for which.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Known when it is evaluated.
    Dyn,
    /// Of what is wrong already: it goes with everything, so that one mistake is told once.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Type>),
    Map(Box<(Type, Type)>),
    Optional(Box<Type>),
    /// What `type(x)` gives.
    Meta(Box<Type>),
    Object(Arc<Object>),
    /// One of the library's own.
    Native(&'static str),
    /// A round of a loop with two variables.
    Pair(Box<(Type, Type)>),
    /// To be found out.
    Variable(usize),
}

/// An object with declared fields. Its name tells it apart.
#[derive(Clone, Debug, Default)]
pub struct Object {
    pub name: String,
    pub fields: BTreeMap<String, Type>,
    /// Whether it may have others as well, of any type.
    pub is_open: bool,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new((key, value)))
    }

    pub fn optional(value: Self) -> Self {
        Self::Optional(Box::new(value))
    }

    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Self)>) -> Self {
        let fields = fields.into_iter().collect();
        Self::Object(Arc::new(Object { name: name.to_owned(), fields, is_open: false }))
    }

    /// An object whose fields nobody declared.
    pub fn open_object(name: &str) -> Self {
        let object = Object { name: name.to_owned(), is_open: true, ..Object::default() };
        Self::Object(Arc::new(object))
    }

    /// How it is called where an expression has to have another one.
    pub fn name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            other => other.to_string(),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether nothing may stand in its place.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Object(_)
                | Self::Native(_)
                | Self::Optional(_)
                | Self::Timestamp
                | Self::Duration
        )
    }

    /// The types that it is made of.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(part) | Self::Optional(part) | Self::Meta(part) => vec![part],
            Self::Map(parts) | Self::Pair(parts) => vec![&parts.0, &parts.1],
            _ => Vec::new(),
        }
    }

    /// The same with every part changed.
    pub(super) fn mapped(&self, change: &impl Fn(&Self) -> Self) -> Self {
        let both = |parts: &(Self, Self)| Box::new((change(&parts.0), change(&parts.1)));
        match self {
            Self::List(part) => Self::List(Box::new(change(part))),
            Self::Optional(part) => Self::Optional(Box::new(change(part))),
            Self::Meta(part) => Self::Meta(Box::new(change(part))),
            Self::Map(parts) => Self::Map(both(parts)),
            Self::Pair(parts) => Self::Pair(both(parts)),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(parts) => write!(f, "map({}, {})", parts.0, parts.1),
            Self::Pair(parts) => write!(f, "pair({}, {})", parts.0, parts.1),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::Object(object) => f.write_str(&object.name),
            Self::Native(name) => f.write_str(name),
            Self::Variable(number) => write!(f, "_var{number}"),
        }
    }
}

/// What is known of the types that are to be found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Found(Vec<Option<Type>>);

impl Found {
    pub(super) fn fresh(&mut self) -> Type {
        self.0.push(None);
        Type::Variable(self.0.len() - 1)
    }

    /// A type with what is known filled in.
    pub(super) fn settled(&self, of: &Type) -> Type {
        match of {
            Type::Variable(number) => match &self.0[*number] {
                Some(known) => self.settled(known),
                None => of.clone(),
            },
            other => other.mapped(&|part| self.settled(part)),
        }
    }

    /// The same; what is still unknown can be anything.
    pub(super) fn final_type(&self, of: &Type) -> Type {
        match self.settled(of) {
            Type::Variable(_) => Type::Dyn,
            other => other.mapped(&|part| self.final_type(part)),
        }
    }

    /// Whether every type of a list may stand for the one of the other at its place. What that
    /// tells of unknown ones is kept if so, and forgotten if not.
    pub(super) fn all_fit(&mut self, wanted: &[Type], given: &[Type]) -> bool {
        if wanted.len() != given.len() {
            return false;
        }
        let before = self.0.clone();
        let fits = wanted.iter().zip(given).all(|(wanted, given)| self.fits_in(wanted, given));
        if !fits {
            self.0 = before;
        }
        fits
    }

    pub(super) fn fits(&mut self, wanted: &Type, given: &Type) -> bool {
        self.all_fit(std::slice::from_ref(wanted), std::slice::from_ref(given))
    }

    fn fits_in(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Variable(number) = other {
            let is_known = self.0[*number].is_some();
            if self.takes(*number, one) {
                return true;
            }
            if is_known {
                return false;
            }
        }
        if let Type::Variable(number) = one {
            return self.takes(*number, other);
        }
        match (one, other) {
            (one, other) if one.is_dyn() || other.is_dyn() => true,
            (Type::Null, some) | (some, Type::Null) => some.takes_null(),
            (Type::Meta(_), Type::Meta(_)) => true,
            (
                Type::List(_) | Type::Map(_) | Type::Optional(_) | Type::Pair(_),
                Type::List(_) | Type::Map(_) | Type::Optional(_) | Type::Pair(_),
            ) => {
                let is_like = std::mem::discriminant(one) == std::mem::discriminant(other);
                let (ones, others) = (one.parts(), other.parts());
                is_like && ones.into_iter().zip(others).all(|(one, other)| self.fits_in(one, other))
            }
            (one, other) => one == other,
        }
    }

    /// Whether an unknown type can be this one, which is noted.
    fn takes(&mut self, number: usize, some: &Type) -> bool {
        if *some == Type::Variable(number) {
            return true;
        }
        if let Some(known) = self.0[number].clone() {
            if known == *some {
                return true;
            }
            if !self.fits_in(some, &known) {
                return false;
            }
            let general = if Self::is_as_general(some, &known) { some.clone() } else { known };
            if !self.is_in(number, &general) {
                self.0[number] = Some(general);
            }
            return true;
        }
        let is_free = !self.is_in(number, some);
        if is_free {
            self.0[number] = Some(some.clone());
        }
        is_free
    }

    /// The more general one of two types that fit.
    pub(super) fn more_general(one: &Type, other: &Type) -> Type {
        if Self::is_as_general(one, other) { one.clone() } else { other.clone() }
    }

    fn is_as_general(one: &Type, other: &Type) -> bool {
        match (one, other) {
            (Type::Dyn | Type::Error | Type::Variable(_), _) => true,
            (_, Type::Dyn | Type::Error | Type::Variable(_)) => false,
            (one, other) if one.parts().is_empty() => one == other,
            (one, other) => {
                std::mem::discriminant(one) == std::mem::discriminant(other)
                    && one
                        .parts()
                        .into_iter()
                        .zip(other.parts())
                        .all(|(one, other)| Self::is_as_general(one, other))
            }
        }
    }

    fn is_in(&self, number: usize, some: &Type) -> bool {
        match some {
            Type::Variable(other) if *other == number => true,
            Type::Variable(other) => {
                self.0[*other].as_ref().is_some_and(|known| self.is_in(number, known))
            }
            other => other.parts().into_iter().any(|part| self.is_in(number, part)),
        }
    }
}
