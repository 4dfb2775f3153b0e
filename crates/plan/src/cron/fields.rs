//! The five fields as sets of numbers, and the calendar search for a moment in all of them.

use jiff::civil::{Date, DateTime, time};
use jiff::{SignedDuration, ToSpan};

/// One bit per number: minutes 0-59, hours 0-23, days 1-31, months 1-12, weekdays 0-6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    pub(super) weekdays: u64,
    /// A day field was `*`, `?` or `*/1`: then both day fields have to match, otherwise either.
    pub(super) any_day: bool,
}

const MINUTES_PER_DAY: u32 = 24 * 60;

impl Fields {
    /// The first matching minute that is not before `from`, before `bound` and not after
    /// `last_year`.
    pub(super) fn at_or_after(
        &self,
        from: DateTime,
        bound: Option<DateTime>,
        last_year: i16,
    ) -> Option<DateTime> {
        let mut date = from.date();
        let begun = from.second() > 0 || from.subsec_nanosecond() > 0;
        let mut minute = minute_of_day(from) + u32::from(begun);
        if self.minutes == 0 || self.hours == 0 || self.months == 0 {
            return None;
        }
        while date.year() <= last_year && bound.is_none_or(|bound| date <= bound.date()) {
            if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                minute = 0;
                continue;
            }
            if self.has_day(date)
                && let Some(hit) = self.minute_at_or_after(minute)
            {
                let hit = at(date, hit);
                return Some(hit).filter(|hit| bound.is_none_or(|bound| *hit < bound));
            }
            date = date.tomorrow().ok()?;
            minute = 0;
        }
        None
    }

    /// The last matching minute in `[floor, from]`.
    pub(super) fn at_or_before(&self, from: DateTime, floor: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut minute = minute_of_day(from);
        if self.minutes == 0 || self.hours == 0 || self.months == 0 {
            return None;
        }
        while date >= floor.date() {
            if !has(self.months, date.month()) {
                date = date.first_of_month().yesterday().ok()?;
                minute = MINUTES_PER_DAY - 1;
                continue;
            }
            if self.has_day(date)
                && let Some(hit) = self.minute_at_or_before(minute)
            {
                return Some(at(date, hit)).filter(|hit| *hit >= floor);
            }
            date = date.yesterday().ok()?;
            minute = MINUTES_PER_DAY - 1;
        }
        None
    }

    /// The longest time between two hits, if every day has hits.
    pub(super) fn widest_daily_gap(&self) -> Option<SignedDuration> {
        let every = |set: u64, first: u32, last: u32| (first..=last).all(|n| set & (1 << n) != 0);
        if !every(self.months, 1, 12) || !every(self.days, 1, 31) || !every(self.weekdays, 0, 6) {
            return None;
        }
        let first = self.minute_at_or_after(0)?;
        let (mut widest, mut last) = (0, first);
        while let Some(next) = self.minute_at_or_after(last + 1) {
            widest = widest.max(next - last);
            last = next;
        }
        let overnight = MINUTES_PER_DAY - last + first;
        Some(SignedDuration::from_mins(i64::from(widest.max(overnight))))
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if self.any_day { day && weekday } else { day || weekday }
    }

    fn minute_at_or_after(&self, from: u32) -> Option<u32> {
        (from / 60..24).find_map(|hour| {
            let floor = if hour == from / 60 { from % 60 } else { 0 };
            let later = self.minutes >> floor;
            let hit = self.hours & (1 << hour) != 0 && later != 0;
            hit.then(|| hour * 60 + floor + later.trailing_zeros())
        })
    }

    fn minute_at_or_before(&self, from: u32) -> Option<u32> {
        (0..=from / 60).rev().find_map(|hour| {
            let top = if hour == from / 60 { from % 60 } else { 59 };
            let earlier = self.minutes & (u64::MAX >> (63 - top));
            let hit = self.hours & (1 << hour) != 0 && earlier != 0;
            hit.then(|| hour * 60 + earlier.ilog2())
        })
    }
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
}

fn minute_of_day(at: DateTime) -> u32 {
    let minute = i32::from(at.hour()) * 60 + i32::from(at.minute());
    u32::try_from(minute).expect("hours and minutes of a clock are not negative")
}

fn at(date: Date, minute: u32) -> DateTime {
    date.to_datetime(time(0, 0, 0, 0)).saturating_add(i64::from(minute).minutes())
}
