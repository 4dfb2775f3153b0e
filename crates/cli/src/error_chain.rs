//! Prints errors: the failure first, then each cause on its own line.

use std::fmt::Write;

/// The whole chain, without a newline at the end.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\n  caused by: {cause}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_on_lines_of_their_own() {
        let error = anyhow::anyhow!("disk full").context("could not write").context("no plan");
        assert_eq!(chain(&error), "no plan\n  caused by: could not write\n  caused by: disk full");
    }
}
