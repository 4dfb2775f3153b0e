//! Rollout strategies: how a template is handed through a placement's decision groups.

use convoy_api::object::member::{list, member};
use convoy_api::object::view::view_of;
use convoy_api::ocm::{IntOrText, MandatoryGroup, RolloutProgressive, RolloutStrategy};
use convoy_api::text::duration::GoDuration;
use jiff::SignedDuration;
use serde_json::Value;
use smol_str::SmolStr;

use super::placement::int_or_percent;
use crate::budget::IntOrPercent;

/// A strategy that is known to be sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) kind: StrategyType,
    /// How long a cluster may take; absent means as long as it likes.
    pub(crate) progress_deadline: Option<SignedDuration>,
    /// A timed-out cluster is done with instead of a failure: the seed's `timeout`.
    pub(crate) tolerates_timeouts: bool,
    /// How long a cluster must be successful before it counts.
    pub(crate) min_success_time: SignedDuration,
    pub(crate) max_failures: IntOrPercent,
    pub(crate) mandatory: Vec<GroupReference>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrategyType {
    /// Every cluster at once.
    All,
    /// So many clusters at a time; absent means as many as a decision group may hold.
    Progressive { max_concurrency: Option<IntOrPercent> },
    /// One decision group after the other.
    ProgressivePerGroup,
}

/// Which decision groups go first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupReference {
    Name(SmolStr),
    Index(i64),
    /// The seed's plain text: a name, or the digits of an index if no group has that name.
    Text(SmolStr),
}

/// What is wrong with a strategy, and where below it; the field is empty where a value has the
/// wrong type, which the schema reports too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrategyError {
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Strategy {
    /// Reads a `rolloutStrategy` in any spelling; absent means all at once.
    pub(crate) fn read(value: &Value) -> Result<Self, StrategyError> {
        let mistyped = |error: convoy_api::object::ViewError| StrategyError {
            field: String::new(),
            message: error.message,
        };
        let strategy: Option<RolloutStrategy> = view_of(value).map_err(mistyped)?;
        let strategy = strategy.unwrap_or_default();
        let flat = Value::Object(strategy.others.clone().into_iter().collect());
        let old_type = member(&flat, "rolloutType").and_then(Value::as_str);
        let mut fields = Fields { flat: view_of(&flat).map_err(mistyped)?, ..Fields::default() };
        let kind = strategy.kind.as_deref().or(old_type).unwrap_or("All");
        let kind = match kind {
            "All" => {
                fields.block = "all";
                fields.inside.limits = strategy.all.unwrap_or_default().limits;
                StrategyType::All
            }
            "Progressive" => {
                fields.block = "progressive";
                fields.inside = strategy.progressive.unwrap_or_default();
                StrategyType::Progressive { max_concurrency: fields.max_concurrency()? }
            }
            "ProgressivePerGroup" => {
                let block = strategy.progressive_per_group.unwrap_or_default();
                fields.block = "progressivePerGroup";
                fields.inside.limits = block.limits;
                fields.inside.mandatory_decision_groups = block.mandatory_decision_groups;
                StrategyType::ProgressivePerGroup
            }
            other => {
                let message = format!(
                    "incorrect rollout strategy type {other:?}: want All, Progressive or ProgressivePerGroup"
                );
                return Err(StrategyError { field: "type".to_owned(), message });
            }
        };
        fields.strategy(kind)
    }
}

/// The fields of a strategy: those in its block win over those beside `type`, where the seed
/// has them all.
#[derive(Default)]
struct Fields {
    block: &'static str,
    inside: RolloutProgressive,
    flat: RolloutProgressive,
}

impl Fields {
    fn strategy(&self, kind: StrategyType) -> Result<Strategy, StrategyError> {
        let (progress_deadline, by_timeout) = self.progress_deadline()?;
        let max_failures = self.size("maxFailures", |from| from.limits.max_failures.as_ref())?;
        let min_success_time = self.min_success_time()?;
        let all = kind == StrategyType::All;
        Ok(Strategy {
            kind,
            progress_deadline,
            tolerates_timeouts: by_timeout && progress_deadline.is_some() && max_failures.is_none(),
            min_success_time: if all { SignedDuration::ZERO } else { min_success_time },
            max_failures: max_failures.unwrap_or(IntOrPercent::Int(0)),
            mandatory: if all { Vec::new() } else { self.mandatory() },
        })
    }

    /// A field of the block, or else of those beside `type`, with its path.
    fn first<'f, T>(
        &'f self,
        key: &str,
        of: impl Fn(&'f RolloutProgressive) -> Option<T>,
    ) -> Option<(String, T)> {
        let inside = of(&self.inside).map(|found| (format!("{}.{key}", self.block), found));
        inside.or_else(|| Some((key.to_owned(), of(&self.flat)?)))
    }

    /// The deadline, and whether it was given as the seed's `timeout`.
    fn progress_deadline(&self) -> Result<(Option<SignedDuration>, bool), StrategyError> {
        let given = |from: &RolloutProgressive| {
            let limits = &from.limits;
            let today = limits.progress_deadline.clone().map(|text| (text, false));
            today.or_else(|| match limits.timeout.clone()? {
                IntOrText::Int(minutes) => Some((minutes.to_string(), true)),
                IntOrText::Text(text) => Some((text, true)),
            })
        };
        let Some((field, (text, by_timeout))) = self.first("", given) else {
            return Ok((None, false));
        };
        let Some(deadline) = deadline(&text, by_timeout) else {
            let key = if by_timeout { "timeout" } else { "progressDeadline" };
            let message = format!(
                "invalid timeout format {text:?}: want None, or whole numbers of hours, minutes \
                 and seconds such as 90s, 50min or 1h30m"
            );
            return Err(StrategyError { field: format!("{field}{key}"), message });
        };
        Ok((deadline, by_timeout))
    }

    fn max_concurrency(&self) -> Result<Option<IntOrPercent>, StrategyError> {
        self.size("maxConcurrency", |from| from.max_concurrency.as_ref())
    }

    fn size<'f>(
        &'f self,
        key: &str,
        of: impl Fn(&'f RolloutProgressive) -> Option<&'f IntOrText>,
    ) -> Result<Option<IntOrPercent>, StrategyError> {
        let Some((field, value)) = self.first(key, of) else { return Ok(None) };
        int_or_percent(value).map(Some).map_err(|error| {
            let got = serde_json::to_value(value).unwrap_or_default();
            let message = format!("failed to parse the provided {key}: {error}: got {got}");
            StrategyError { field, message }
        })
    }

    fn min_success_time(&self) -> Result<SignedDuration, StrategyError> {
        let given = self.first("minSuccessTime", |from| from.limits.min_success_time.as_deref());
        let Some((field, text)) = given else { return Ok(SignedDuration::ZERO) };
        let time = text.parse::<GoDuration>().map_err(|error| {
            let message = format!("{error}: got {text:?}");
            StrategyError { field, message }
        })?;
        Ok(time.signed())
    }

    fn mandatory(&self) -> Vec<GroupReference> {
        let listed = self.first("", |from| from.mandatory_decision_groups.as_deref());
        let listed = listed.map_or(&[][..], |(_, listed)| listed).iter();
        listed.map(GroupReference::of).collect()
    }
}

impl GroupReference {
    fn of(entry: &MandatoryGroup) -> Self {
        match entry {
            MandatoryGroup::Plain(IntOrText::Text(text)) => Self::Text(text.into()),
            MandatoryGroup::Plain(IntOrText::Int(index)) => Self::Index(*index),
            MandatoryGroup::Entry { group_name: Some(name), .. } if !name.is_empty() => {
                Self::Name(name.into())
            }
            MandatoryGroup::Entry { group_index, .. } => {
                Self::Index(group_index.unwrap_or(0).into())
            }
        }
    }
}

/// A field that is there and not null.
fn given<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    member(value, key).filter(|value| !value.is_null())
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
        let groups = below.map_or(&[][..], |below| list(below, "mandatoryDecisionGroups"));
        for (index, group) in groups.iter().enumerate() {
            let now = match group {
                Value::String(_) => "an object with groupName, or with groupIndex",
                Value::Number(_) => "an object with groupIndex",
                _ => continue,
            };
            let path = if block.is_empty() { String::new() } else { format!("{block}.") };
            found.push((format!("{path}mandatoryDecisionGroups[{index}]"), now));
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
        assert_eq!(
            read.kind,
            StrategyType::Progressive { max_concurrency: Some(IntOrPercent::Int(5)) }
        );
        assert!(read.tolerates_timeouts);
        let groups = [
            GroupReference::Text("west".into()),
            GroupReference::Index(1),
            GroupReference::Text("2".into()),
            GroupReference::Name("east".into()),
            GroupReference::Index(0),
        ];
        assert_eq!(read.mandatory, groups);
        let both = json!({"type": "Progressive", "maxConcurrency": 5,
            "progressive": {"maxConcurrency": "10%", "progressDeadline": "None"}, "timeout": "5m"});
        let read = Strategy::read(&both).unwrap();
        assert_eq!(
            read.kind,
            StrategyType::Progressive { max_concurrency: Some(IntOrPercent::Percent(10)) }
        );
        assert_eq!((read.progress_deadline, read.tolerates_timeouts), (None, false));
    }

    #[test]
    fn a_timeout_tolerates_unless_failures_are_counted() {
        let tolerant = |value| Strategy::read(&value).unwrap().tolerates_timeouts;
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
