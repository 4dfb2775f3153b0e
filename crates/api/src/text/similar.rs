//! Which word somebody meant who wrote one that does not exist.

/// Longer words are no typos, and comparing takes time by the product of their lengths.
const LENGTH_MAX: usize = 64;

/// Shorter words begin too many others.
const BEGINNING_MIN: usize = 4;

/// The word of `known` that is nearest to `word`; none if none is near. Of equally near words the
/// first one wins.
///
/// | word                 | known                    | nearest         | because                     |
/// |----------------------|--------------------------|-----------------|-----------------------------|
/// | `replica`            | `replicas`, `paused`     | `replicas`      | one letter is missing       |
/// | `imge`               | `image`, `name`          | `image`         | one letter is missing       |
/// | `rollingupdate`      | `RollingUpdate`          | `RollingUpdate` | case does not count         |
/// | `fry`                | `fri`, `thu`             | `fri`           | one in three is another     |
/// | `Drift`              | `Empty`, `Drifted`       | `Drifted`       | it begins so                |
/// | `cpu`                | `env`, `tty`             |                 | two in three are other ones |
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let length = word.chars().count();
    if length == 0 || length > LENGTH_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let near = known.into_iter().filter(|known| known.chars().count() <= LENGTH_MAX);
    let near = near.filter_map(|known| {
        let known_lower = known.to_lowercase();
        let is_beginning = length >= BEGINNING_MIN && known_lower.starts_with(&lower);
        let distance = strsim::osa_distance(&lower, &known_lower);
        // The beginning of a word is as near as a word with one other letter.
        let distance = if is_beginning { distance.min(1) } else { distance };
        (distance <= tolerance(length)).then_some((distance, known))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// The question that follows a message about `word`; empty if no known word is near.
pub fn question<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!("; did you mean {known:?}?"))
}

/// One letter in three, and at most three: beyond that, chance finds a word as often as a typo does.
fn tolerance(length: usize) -> usize {
    (length / 3).clamp(1, 3)
}

/// A field that a type does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownField {
    /// Its path.
    pub field: String,
    /// The path of the field that was probably meant.
    pub meant: Option<String>,
}

impl UnknownField {
    /// A field at the path `field`, in the object at `base`; `meant` is the name of another one
    /// there.
    pub fn new(base: &str, field: String, meant: Option<&str>) -> Self {
        let path = |name: &str| match base {
            "" => name.to_owned(),
            base => format!("{base}.{name}"),
        };
        Self { field, meant: meant.map(path) }
    }

    /// What people are told.
    pub fn message(&self) -> String {
        let Self { field, meant } = self;
        match meant {
            Some(meant) => format!("unknown field {field:?}; did you mean {meant:?}?"),
            None => format!("unknown field {field:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_their_word_and_strangers_find_none() {
        let cases: [(&str, &[&str], Option<&str>); 9] = [
            ("replica", &["paused", "replicas"], Some("replicas")),
            ("imge", &["name", "image"], Some("image")),
            ("rollingupdate", &["Recreate", "RollingUpdate"], Some("RollingUpdate")),
            ("fry", &["thu", "fri"], Some("fri")),
            ("Drift", &["Empty", "Drifted"], Some("Drifted")),
            ("cpu", &["env", "tty"], None),
            ("nmae", &["name", "namespace"], Some("name")),
            ("futureField", &["replicas", "selector"], None),
            ("", &["a"], None),
        ];
        for (word, known, expected) in cases {
            assert_eq!(nearest(word, known.iter().copied()), expected, "{word}");
        }
        assert_eq!(nearest(&"a".repeat(100), ["a"]), None);
        assert_eq!(question("slwo", ["slow"]), "; did you mean \"slow\"?");
        assert_eq!(question("other", ["slow"]), "");
    }
}
