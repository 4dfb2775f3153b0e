//! Rollout strategies: how a template is handed through a placement's decision groups.

use convoy_api::text::duration::GoDuration;
use jiff::SignedDuration;
use serde_json::Value;
use smol_str::SmolStr;

use crate::budget::IntOrPercent;
use crate::dialect::ocm::list;

/// A strategy that is known to be sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) pace: Pace,
    /// How long a cluster may take; absent means as long as it likes.
    pub(crate) deadline: Option<SignedDuration>,
    /// A timed-out cluster is done with instead of a failure: the seed's `timeout`.
    pub(crate) tolerant: bool,
    /// How long a cluster must be successful before it counts.
    pub(crate) soak: SignedDuration,
    pub(crate) failures_max: IntOrPercent,
    pub(crate) mandatory: Vec<GroupRef>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Every cluster at once.
    All,
    /// So many clusters at a time; absent means as many as a decision group may hold.
    Progressive { concurrency: Option<IntOrPercent> },
    /// One decision group after the other.
    ProgressivePerGroup,
}

/// Which decision groups go first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupRef {
    Name(SmolStr),
    Index(i64),
    /// The seed's plain text: a name, or the digits of an index if no group has that name.
    Text(SmolStr),
}

/// What is wrong with a strategy, and where below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrategyError {
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Strategy {
    /// Reads a `rolloutStrategy` in any spelling; absent means all at once.
    pub(crate) fn read(value: &Value) -> Result<Self, StrategyError> {
        let kind = ["type", "rolloutType"].into_iter().find_map(|key| given(value, key));
        let kind = kind.map_or(Some("All"), Value::as_str).unwrap_or_default();
        let (block, pace) = match kind {
            "All" => ("all", Pace::All),
            "Progressive" => ("progressive", Pace::Progressive { concurrency: None }),
            "ProgressivePerGroup" => ("progressivePerGroup", Pace::ProgressivePerGroup),
            other => {
                let message = format!(
                    "incorrect rollout strategy type {other:?}: want All, Progressive or ProgressivePerGroup"
                );
                return Err(StrategyError { field: "type".to_owned(), message });
            }
        };
        Fields { flat: value, block }.strategy(pace)
    }
}

/// The fields of a strategy: those in its block win over those beside `type`.
struct Fields<'v> {
    flat: &'v Value,
    block: &'static str,
}

impl<'v> Fields<'v> {
    fn strategy(&self, pace: Pace) -> Result<Strategy, StrategyError> {
        let (deadline, by_timeout) = self.deadline()?;
        let failures_max = self.size("maxFailures")?;
        let soak = self.soak()?;
        let concurrency = self.size("maxConcurrency");
        Ok(Strategy {
            pace: match pace {
                Pace::Progressive { .. } => Pace::Progressive { concurrency: concurrency? },
                other => other,
            },
            deadline,
            tolerant: by_timeout && deadline.is_some() && failures_max.is_none(),
            soak: if pace == Pace::All { SignedDuration::ZERO } else { soak },
            failures_max: failures_max.unwrap_or(IntOrPercent::Int(0)),
            mandatory: if pace == Pace::All { Vec::new() } else { self.mandatory() },
        })
    }

    /// The first of `keys` in the block, else the first beside `type`, with its path.
    fn first(&self, keys: &[&'static str]) -> Option<(&'static str, String, &'v Value)> {
        let inside = self.flat.get(self.block).unwrap_or(&Value::Null);
        let found = |below: &'v Value, path: &str| {
            keys.iter().find_map(|key| Some((*key, format!("{path}{key}"), given(below, key)?)))
        };
        found(inside, &format!("{}.", self.block)).or_else(|| found(self.flat, ""))
    }

    fn deadline(&self) -> Result<(Option<SignedDuration>, bool), StrategyError> {
        let Some((key, field, value)) = self.first(&["progressDeadline", "timeout"]) else {
            return Ok((None, false));
        };
        let by_timeout = key == "timeout";
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if by_timeout => number.to_string(),
            other => other.to_string(),
        };
        let Some(deadline) = deadline(&text, by_timeout) else {
            let message = format!(
                "invalid timeout format {text:?}: want None, or whole numbers of hours, minutes \
                 and seconds such as 90s, 50min or 1h30m"
            );
            return Err(StrategyError { field, message });
        };
        Ok((deadline, by_timeout))
    }

    fn size(&self, key: &'static str) -> Result<Option<IntOrPercent>, StrategyError> {
        let Some((_, field, value)) = self.first(&[key]) else { return Ok(None) };
        let read = IntOrPercent::from_value(value);
        read.map(Some).map_err(|error| {
            let message = format!("failed to parse the provided {key}: {error}: got {value}");
            StrategyError { field, message }
        })
    }

    fn soak(&self) -> Result<SignedDuration, StrategyError> {
        let Some((_, field, value)) = self.first(&["minSuccessTime"]) else {
            return Ok(SignedDuration::ZERO);
        };
        let text = value.as_str().unwrap_or_default();
        let soak = text.parse::<GoDuration>().map_err(|error| {
            let message = format!("{error}: got {value}");
            StrategyError { field, message }
        })?;
        Ok(soak.signed())
    }

    fn mandatory(&self) -> Vec<GroupRef> {
        let listed = self.first(&["mandatoryDecisionGroups"]);
        let listed = list(listed.map(|(_, _, value)| value)).iter();
        listed.map(GroupRef::read).collect()
    }
}

impl GroupRef {
    fn read(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.into()),
            Value::Number(number) => Self::Index(number.as_i64().unwrap_or(-1)),
            entry => {
                let name = entry.get("groupName").and_then(Value::as_str).unwrap_or_default();
                let index = entry.get("groupIndex").and_then(Value::as_i64);
                if name.is_empty() {
                    Self::Index(index.unwrap_or(0))
                } else {
                    Self::Name(name.into())
                }
            }
        }
    }
}

/// A field that is there and not null.
fn given<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|value| !value.is_null())
}

/// The old spellings in a `rolloutStrategy`: where, and what they are today.
pub(crate) fn old_spellings(value: &Value) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if given(value, "rolloutType").is_some() {
        found.push(("rolloutType".to_owned(), "type"));
    }
    for key in [
        "mandatoryDecisionGroups",
        "maxConcurrency",
        "maxFailures",
        "minSuccessTime",
        "progressDeadline",
    ] {
        if given(value, key).is_some() {
            found.push((key.to_owned(), "the same inside the block of the type"));
        }
    }
    for block in ["", "all", "progressive", "progressivePerGroup"] {
        let below = if block.is_empty() { Some(value) } else { value.get(block) };
        if below.is_some_and(|below| given(below, "timeout").is_some()) {
            let path = if block.is_empty() { String::new() } else { format!("{block}.") };
            found.push((format!("{path}timeout"), "progressDeadline"));
        }
    }
    found
}

/// A deadline in words; the outer none means that it cannot be read, the inner that there is
/// no deadline.
///
/// | text    | in `progressDeadline` | in `timeout` |
/// |---------|-----------------------|--------------|
/// | `None`  | no deadline           | no deadline  |
/// | `50min` | 50 minutes            | 50 minutes   |
/// | `1h30m` | 90 minutes            | 90 minutes   |
/// | `30`    | unreadable            | 30 minutes   |
/// | `2d`    | unreadable            | unreadable   |
#[expect(clippy::option_option, reason = "unreadable, absent and given are three answers")]
fn deadline(text: &str, bare_minutes: bool) -> Option<Option<SignedDuration>> {
    if text.is_empty() || text == "None" {
        return Some(None);
    }
    if bare_minutes && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Some(SignedDuration::from_secs(text.parse::<i64>().ok()?.checked_mul(60)?)));
    }
    let (mut secs, mut rest) = (0i64, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = match unit {
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            _ => return None,
        };
        secs = secs.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)?;
        rest = after;
    }
    Some(Some(SignedDuration::from_secs(secs)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deadlines_are_read_in_words() {
        let cases = [
            ("50min", false, Some(Some(3000))),
            ("1h30m", false, Some(Some(5400))),
            ("90s", false, Some(Some(90))),
            ("0s", false, Some(Some(0))),
            ("2 h", false, None),
            ("None", true, Some(None)),
            ("", false, Some(None)),
            ("30", true, Some(Some(1800))),
            ("30", false, None),
            ("0", false, None),
            ("2d", true, None),
            ("2d0s", false, None),
            ("10g", false, None),
            ("999999999999999999h", false, None),
        ];
        for (text, bare, expected) in cases {
            let read = deadline(text, bare).map(|read| read.map(|read| read.as_secs()));
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn the_block_wins_over_the_flat_spelling() {
        let flat = json!({"rolloutType": "Progressive", "maxConcurrency": 5, "timeout": "50min",
            "mandatoryDecisionGroups": ["west", 1, "2", {"groupName": "east"}, {}]});
        let read = Strategy::read(&flat).unwrap();
        assert_eq!(read.pace, Pace::Progressive { concurrency: Some(IntOrPercent::Int(5)) });
        assert!(read.tolerant);
        let groups = [
            GroupRef::Text("west".into()),
            GroupRef::Index(1),
            GroupRef::Text("2".into()),
            GroupRef::Name("east".into()),
            GroupRef::Index(0),
        ];
        assert_eq!(read.mandatory, groups);
        let both = json!({"type": "Progressive", "maxConcurrency": 5,
            "progressive": {"maxConcurrency": "10%", "progressDeadline": "None"}, "timeout": "5m"});
        let read = Strategy::read(&both).unwrap();
        assert_eq!(read.pace, Pace::Progressive { concurrency: Some(IntOrPercent::Percent(10)) });
        assert_eq!((read.deadline, read.tolerant), (None, false));
    }

    #[test]
    fn a_timeout_tolerates_unless_failures_are_counted() {
        let tolerant = |value| Strategy::read(&value).unwrap().tolerant;
        assert!(tolerant(json!({"type": "ProgressivePerGroup", "timeout": 30})));
        assert!(!tolerant(json!({"type": "ProgressivePerGroup", "timeout": "None"})));
        assert!(!tolerant(
            json!({"type": "ProgressivePerGroup", "timeout": "5m", "maxFailures": 0})
        ));
        assert!(!tolerant(
            json!({"type": "Progressive", "progressive": {"progressDeadline": "5m"}})
        ));
    }

    #[test]
    fn what_is_wrong_says_where() {
        let cases = [
            (json!({"type": "BigBang"}), "type", "incorrect rollout strategy type"),
            (
                json!({"type": "Progressive", "progressive": {"maxConcurrency": "2"}}),
                "progressive.maxConcurrency",
                "string is not a percentage",
            ),
            (
                json!({"type": "All", "all": {"progressDeadline": "2d"}}),
                "all.progressDeadline",
                "invalid timeout format",
            ),
            (
                json!({"type": "Progressive", "progressive": {"minSuccessTime": "soon"}}),
                "progressive.minSuccessTime",
                "invalid duration",
            ),
        ];
        for (value, field, message) in cases {
            let error = Strategy::read(&value).unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.message.contains(message), "{}", error.message);
        }
    }
}
