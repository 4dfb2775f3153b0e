//! Requirements on labels: a key, and what its value has to be like. Label selectors are made of
//! them, and so is what pools and pods ask of nodes.

use convoy_api::Object;
use smol_str::SmolStr;

/// Demands that all have to be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) key: SmolStr,
    pub(crate) test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    In(Vec<SmolStr>),
    NotIn(Vec<SmolStr>),
    Exists,
    DoesNotExist,
    /// At least, and at most.
    Between(i64, i64),
}

impl Requirements {
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels meet them.
    pub(crate) fn are_met_by(&self, object: &Object) -> bool {
        self.first_unmet(|key| object.label(key)).is_none()
    }

    /// The first key whose demand is not met, given how to look labels up.
    pub(crate) fn first_unmet<'v>(
        &self,
        look_up: impl Fn(&str) -> Option<&'v str>,
    ) -> Option<&SmolStr> {
        let unmet =
            |requirement: &&Requirement| !requirement.test.allows(look_up(&requirement.key));
        self.0.iter().find(unmet).map(|requirement| &requirement.key)
    }

    /// Whether some value of `key` is possible under these demands.
    pub(crate) fn allow(&self, key: &str, value: Option<&str>) -> bool {
        self.0
            .iter()
            .filter(|requirement| requirement.key == key)
            .all(|requirement| requirement.test.allows(value))
    }

    /// The values that they name for `key`.
    pub(crate) fn values_of(&self, key: &str) -> impl Iterator<Item = &SmolStr> {
        let of_key = self.0.iter().filter(move |requirement| requirement.key == key);
        of_key.flat_map(|requirement| match &requirement.test {
            Test::In(values) => values.as_slice(),
            _ => &[],
        })
    }

    /// A value of `key` that meets demands which name none; absent if there must be none.
    pub(crate) fn some_value(&self, key: &str) -> Option<SmolStr> {
        let of_key = self.0.iter().filter(|requirement| requirement.key == key);
        let least = of_key.filter_map(|requirement| match requirement.test {
            Test::Between(least, _) => Some(least),
            _ => None,
        });
        let least = least.max().unwrap_or(0).max(0);
        let most = least.saturating_add(100);
        let mut values = (least..=most).map(|number| SmolStr::new(number.to_string()));
        values.find(|value| self.allow(key, Some(value)))
    }

    /// The keys they speak of, in the order they were written.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SmolStr> {
        self.0.iter().map(|requirement| &requirement.key)
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}

impl Test {
    /// Reads an operator of a node selector, or of a pool; what is unsound asks for the impossible.
    pub(crate) fn new(operator: &str, values: Vec<SmolStr>) -> Self {
        let bound = values.first().and_then(|bound| bound.parse::<i64>().ok());
        match (operator, bound) {
            ("In", _) => Self::In(values),
            ("NotIn", _) => Self::NotIn(values),
            ("Exists", _) => Self::Exists,
            ("DoesNotExist", _) => Self::DoesNotExist,
            ("Gt", Some(bound)) => Self::above(bound),
            ("Gte", Some(bound)) => Self::Between(bound, i64::MAX),
            ("Lt", Some(bound)) => Self::below(bound),
            ("Lte", Some(bound)) => Self::Between(i64::MIN, bound),
            _ => Self::In(Vec::new()),
        }
    }

    /// Numbers above `bound`.
    pub(crate) fn above(bound: i64) -> Self {
        let least = bound.checked_add(1);
        least.map_or(Self::In(Vec::new()), |least| Self::Between(least, i64::MAX))
    }

    /// Numbers below `bound`.
    pub(crate) fn below(bound: i64) -> Self {
        let most = bound.checked_sub(1);
        most.map_or(Self::In(Vec::new()), |most| Self::Between(i64::MIN, most))
    }

    fn allows(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Between(least, most) => value
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|number| (*least..=*most).contains(&number)),
        }
    }
}
