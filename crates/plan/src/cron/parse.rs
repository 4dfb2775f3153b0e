//! Reading schedules. Errors have the words of robfig/cron, which users know from cron jobs and
//! search for, and beside them advice on what would be right.

use convoy_api::text::{GoDuration, similar};
use jiff::SignedDuration;

use super::fields::Fields;
use super::{CronError, Rule};

/// What a field may hold.
struct Bounds {
    /// What the field is called.
    name: &'static str,
    least: u32,
    most: u32,
    /// Names for the numbers from `least` on.
    names: &'static [&'static str],
}

/// One field: its numbers, and whether it was written as a star.
struct Field {
    set: u64,
    star: bool,
}

const MINUTE: Bounds = Bounds { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Bounds = Bounds { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Bounds = Bounds { name: "day of month", least: 1, most: 31, names: &[] };
const MONTH: Bounds = Bounds {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Bounds = Bounds {
    name: "day of week",
    least: 0,
    most: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Bounds {
    /// What would be right.
    fn hint(&self) -> String {
        let Self { name, least, most, names } = self;
        if names.is_empty() {
            return format!("{name} is a number from {least} to {most}");
        }
        format!("{name} is a number from {least} to {most}, or one of {}", names.join(", "))
    }
}

const DESCRIPTORS: [&str; 8] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every"];

pub(super) fn rule(text: &str) -> Result<Rule, CronError> {
    if let Some(duration) = text.strip_prefix("@every ") {
        return every(duration);
    }
    let text = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        other if other.starts_with('@') => {
            let hint = format!(
                "want @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly, or five \
                 fields{}",
                similar::question(other, DESCRIPTORS)
            );
            return Err(error(format!("unrecognized descriptor: {other}"), &hint));
        }
        fields => fields,
    };
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = parts[..] else {
        let listed = parts.join(" ");
        let found = parts.len();
        return Err(error(
            format!("expected exactly 5 fields, found {found}: [{listed}]"),
            "want minute, hour, day of month, month, day of week",
        ));
    };
    let (minute, hour) = (field(minute, &MINUTE)?, field(hour, &HOUR)?);
    let (day, month) = (field(day, &DAY)?, field(month, &MONTH)?);
    let weekday = field(weekday, &WEEKDAY)?;
    Ok(Rule::Fields(Fields {
        minutes: minute.set,
        hours: hour.set,
        days: day.set,
        months: month.set,
        weekdays: weekday.set,
        any_day: day.star || weekday.star,
    }))
}

/// Whole seconds, and at least one.
fn every(text: &str) -> Result<Rule, CronError> {
    let duration: GoDuration = text.parse().map_err(|_| {
        let plain = format!("failed to parse duration @every {text}");
        CronError {
            message: format!("{plain}: time: invalid duration {text:?}"),
            advice: format!("{plain}; want a number and a unit, such as 90s or 1h30m"),
        }
    })?;
    Ok(Rule::Every(SignedDuration::from_secs(duration.as_secs().max(1))))
}

fn field(text: &str, bounds: &Bounds) -> Result<Field, CronError> {
    let mut field = Field { set: 0, star: false };
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let Field { set, star } = range(item, bounds)?;
        field.set |= set;
        field.star |= star;
    }
    Ok(field)
}

fn range(item: &str, bounds: &Bounds) -> Result<Field, CronError> {
    let mut parts = item.split('/');
    let span = parts.next().unwrap_or_default();
    let step = parts.next();
    let (mut start, mut end, mut star) = (bounds.least, bounds.most, true);
    let mut ends = span.split('-');
    let first = ends.next().unwrap_or_default();
    let second = ends.next();
    if first != "*" && first != "?" {
        star = false;
        start = number(first, bounds)?;
        end = match second {
            None => start,
            Some(last) => number(last, bounds)?,
        };
        if ends.next().is_some() {
            return Err(error(
                format!("too many hyphens: {item}"),
                "a range is two numbers, such as 1-5",
            ));
        }
    }
    let step = match step {
        None => 1,
        Some(step) => {
            let step = integer(step, "a step is a number from 1 on")?;
            if second.is_none() {
                end = bounds.most; // `n/step` runs to the end of the field
            }
            star &= step <= 1;
            step
        }
    };
    if parts.next().is_some() {
        return Err(error(
            format!("too many slashes: {item}"),
            "a step is one number, such as */5",
        ));
    }
    check(item, bounds, start, end, step)?;
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let set = (start..=end).step_by(step).fold(0, |set, number| set | 1 << number);
    Ok(Field { set, star })
}

fn check(item: &str, bounds: &Bounds, start: u32, end: u32, step: u32) -> Result<(), CronError> {
    let Bounds { name, least, most, .. } = bounds;
    let (message, hint) = if start < *least {
        (format!("beginning of range ({start}) below minimum ({least}): {item}"), bounds.hint())
    } else if end > *most {
        (format!("end of range ({end}) above maximum ({most}): {item}"), bounds.hint())
    } else if start > end {
        let hint = format!("write {name} as two ranges: {start}-{most},{least}-{end}");
        (format!("beginning of range ({start}) beyond end of range ({end}): {item}"), hint)
    } else if step == 0 {
        let message = format!("step of range should be a positive number: {item}");
        (message, "want 1 or more".to_owned())
    } else {
        return Ok(());
    };
    Err(error(message, &hint))
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, CronError> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    if let Some(at) = named.and_then(|at| u32::try_from(at).ok()) {
        return Ok(bounds.least + at);
    }
    // Names have three letters, so that `monday` means `mon`.
    let short = text.get(..3).filter(|_| text.len() > 3).unwrap_or(text);
    let meant = similar::question(short, bounds.names.iter().copied());
    integer(text, &format!("{}{meant}", bounds.hint()))
}

fn integer(text: &str, hint: &str) -> Result<u32, CronError> {
    let failed = |why| {
        let plain = format!("failed to parse int from {text}");
        CronError {
            message: format!("{plain}: strconv.Atoi: parsing {text:?}: {why}"),
            advice: format!("{plain}; {hint}"),
        }
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(failed("invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| failed("value out of range"))?;
    if number < 0 {
        return Err(error(format!("negative number ({number}) not allowed: {text}"), hint));
    }
    // Any number this large is beyond every field; as a step it is one hit.
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn error(message: String, hint: &str) -> CronError {
    let advice = format!("{message}; {hint}");
    CronError { message, advice }
}
