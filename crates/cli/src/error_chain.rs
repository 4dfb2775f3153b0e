//! Errors as people read them: what failed, then each cause on a line of its own.

use std::fmt::Write;

/// The whole chain, without a newline at the end.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let _ = write!(text, "\n  because {cause}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_on_lines_of_their_own() {
        let error = anyhow::anyhow!("disk full").context("could not write").context("no plan");
        assert_eq!(chain(&error), "no plan\n  because could not write\n  because disk full");
    }
}
