//! Cron: what is accepted, and which instants hit.

use super::*;

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn next(schedule: &str, after: &str) -> Option<String> {
    let cron = Cron::parse(schedule).unwrap();
    cron.next_after(instant(after)).map(|hit| hit.to_string())
}

#[test]
fn the_next_hit_is_strictly_later() {
    let cases = [
        ("* * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"),
        ("* * * * *", "2024-01-01T00:00:59.5Z", "2024-01-01T00:01:00Z"),
        ("0 9 * * mon-fri", "2024-01-05T09:00:00Z", "2024-01-08T09:00:00Z"),
        ("5/10 * * * *", "2024-01-01T00:06:00Z", "2024-01-01T00:15:00Z"),
        ("15-45/15 8,20 * JAN,feb ?", "2024-01-01T08:45:00Z", "2024-01-01T20:15:00Z"),
        ("0 0 31 * *", "2024-01-31T00:00:00Z", "2024-03-31T00:00:00Z"),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        // Both day fields are restricted: either will do. A step above 1 restricts too.
        ("0 0 1 * MON", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"),
        ("0 0 */2 * MON", "2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z"),
        ("0 0 */1 * MON", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"),
        ("0 0 13 * fri", "2024-01-13T00:00:00Z", "2024-01-19T00:00:00Z"),
        (",5, 3 * * *", "2024-01-01T00:00:00Z", "2024-01-01T03:05:00Z"),
        ("@weekly", "2024-01-01T00:00:00Z", "2024-01-07T00:00:00Z"),
        (" @yearly ", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("@every 1h30m", "2024-01-01T00:00:00.9Z", "2024-01-01T01:30:00Z"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"),
        ("* * * * *", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z"),
    ];
    for (schedule, after, hit) in cases {
        assert_eq!(next(schedule, after).as_deref(), Some(hit), "{schedule} after {after}");
    }
}

#[test]
fn a_date_that_does_not_come_within_five_years_has_no_hit() {
    assert_eq!(next("0 0 30 2 *", "2024-05-15T12:00:00Z"), None);
    assert_eq!(next("0 0 29 2 *", "2097-01-01T00:00:00Z"), None);
    assert_eq!(next(", * * * *", "2024-05-15T12:00:00Z"), None);
    assert_eq!(next("TZ=Europe/Berlin 0 0 31 4 *", "2024-05-15T12:00:00Z"), None);
}

#[test]
fn a_skipped_hour_has_no_hit_and_a_repeated_one_hits_twice() {
    let berlin = |fields: &str| format!("TZ=Europe/Berlin {fields}");
    let cases = [
        // 31 March 2024: 02:00 becomes 03:00 at 01:00Z.
        ("30 2 * * *", "2024-03-30T12:00:00Z", "2024-04-01T00:30:00Z"),
        ("30 3 * * *", "2024-03-30T12:00:00Z", "2024-03-31T01:30:00Z"),
        ("0 * * * *", "2024-03-31T00:00:00Z", "2024-03-31T01:00:00Z"),
        // 27 October 2024: 03:00 becomes 02:00 at 01:00Z.
        ("30 2 * * *", "2024-10-26T12:00:00Z", "2024-10-27T00:30:00Z"),
        ("30 2 * * *", "2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z"),
        ("30 2 * * *", "2024-10-27T01:30:00Z", "2024-10-28T01:30:00Z"),
    ];
    for (fields, after, hit) in cases {
        let hits = next(&berlin(fields), after);
        assert_eq!(hits.as_deref(), Some(hit), "{fields} after {after}");
    }
    // Midnight itself is skipped in Cairo on 26 April 2024, half an hour on Lord Howe Island.
    let cairo = next("TZ=Africa/Cairo 0 0 * * *", "2024-04-25T12:00:00Z");
    assert_eq!(cairo.as_deref(), Some("2024-04-26T21:00:00Z"));
    let lord_howe = next("TZ=Australia/Lord_Howe 45 1 * * *", "2024-04-06T14:45:00Z");
    assert_eq!(lord_howe.as_deref(), Some("2024-04-06T15:15:00Z"));
}

#[test]
fn the_last_hit_within_a_span_is_the_last_that_walking_finds() {
    let schedules = ["*/7 1-3 * * *", "30 2 * * sun", "0 0 31 * *", "* * * * 1-5", "@hourly"];
    let from = instant("2024-10-26T20:00:00Z");
    for schedule in schedules {
        let cron = Cron::parse(&format!("TZ=Europe/Berlin {schedule}")).unwrap();
        for hours in [1, 5, 6, 7, 30, 24 * 40] {
            let until = from + SignedDuration::from_hours(hours);
            let mut walked = None;
            let mut at = from;
            while let Some(hit) = cron.next_after(at).filter(|hit| *hit <= until) {
                walked = Some(hit);
                at = hit;
            }
            assert_eq!(cron.last_within(from, until), walked, "{schedule} in {hours}h");
        }
    }
}

#[test]
fn what_is_not_a_schedule_is_refused_in_familiar_words() {
    let cases = [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("", "expected exactly 5 fields, found 0: []"),
        ("@wrongly", "unrecognized descriptor: @wrongly"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* * * * sat-sun", "beginning of range (6) beyond end of range (0): sat-sun"),
        ("* * * * monday", "failed to parse int from monday: strconv.Atoi"),
        ("* * L * *", "failed to parse int from L"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("-5 * * * *", "failed to parse int from : strconv.Atoi"),
        ("5/-5 * * * *", "negative number (-5) not allowed: -5"),
        ("TZ=Mars/Olympus * * * * *", "provided bad location Mars/Olympus"),
        ("@every soon", "failed to parse duration @every soon"),
    ];
    for (schedule, message) in cases {
        let error = Cron::parse(schedule).unwrap_err();
        assert!(error.message.contains(message), "{schedule}: {error}");
    }
    let prefixed = Cron::parse_in("TZ=Asia/Tokyo 0 9 * * *", TimeZone::UTC).unwrap_err();
    assert!(prefixed.message.contains("found 6: [TZ=Asia/Tokyo 0 9 * * *]"));
}

#[test]
fn people_are_told_what_would_be_right() {
    let cases = [
        ("* * * *", "found 4: [* * * *]; want minute, hour, day of month, month, day of week"),
        ("60 * * * *", "above maximum (59): 60; minute is a number from 0 to 59"),
        ("* * * * 7", "maximum (6): 7; day of week is a number from 0 to 6, or one of sun, mon"),
        ("* * * * fri-mon", "fri-mon; write day of week as two ranges: 5-6,0-1"),
        ("* * * * monday", "from monday; day of week is a number from 0 to 6, or one of sun"),
        ("*/x * * * *", "failed to parse int from x; a step is a number from 1 on"),
        ("@every soon", "@every soon; want a number and a unit, such as 90s or 1h30m"),
    ];
    for (schedule, advice) in cases {
        let error = Cron::parse(schedule).unwrap_err();
        assert!(error.advice.contains(advice), "{schedule}: {}", error.advice);
        assert!(!error.advice.contains("strconv"), "{schedule}: {}", error.advice);
    }
}
