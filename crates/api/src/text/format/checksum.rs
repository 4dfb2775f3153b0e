//! Formats with a check digit: credit cards and ISBNs.

use std::sync::LazyLock;

use regex::Regex;

/// The issuers' ranges, and Luhn's sum. Anything between the digits is ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    static ISSUERS: LazyLock<Regex> = LazyLock::new(|| {
        let visa_master = "4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}";
        let others = "6(011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11}";
        Regex::new(&format!("^({visa_master}|{others})$")).expect("issuers are constants")
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = (digits.bytes().rev().zip([1, 2].into_iter().cycle()))
        .map(|(digit, factor)| u32::from(digit - b'0') * factor)
        .map(|product| product / 10 + product % 10)
        .sum();
    ISSUERS.is_match(&digits) && sum.is_multiple_of(10)
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = bare(text);
    let value = |(index, digit): (usize, u8)| match digit {
        b'0'..=b'9' => Some(u32::from(digit - b'0')),
        b'X' if index == 9 => Some(10),
        _ => None,
    };
    let values: Option<Vec<u32>> = digits.bytes().enumerate().map(value).collect();
    values.is_some_and(|values| {
        let sum: u32 = values.iter().zip(1..).map(|(value, factor)| value * factor).sum();
        values.len() == 10 && sum.is_multiple_of(11)
    })
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = bare(text);
    let sum: u32 = (digits.bytes().zip([1, 3].into_iter().cycle()))
        .map(|(digit, factor)| u32::from(digit.wrapping_sub(b'0')) * factor)
        .sum();
    digits.len() == 13
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && sum.is_multiple_of(10)
}

fn bare(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect()
}
