//! Asks before something is changed. Commands differ in what they take for a yes, as upstream's do.

use std::io::{self, BufRead};

use anyhow::{Result, bail};

use crate::output;

/// Asks about a switch: only `y` is a yes, and the end of input is a no.
pub(super) fn switched(question: &str, skip: bool) -> Result<bool> {
    if skip {
        return Ok(true);
    }
    output::print(&format!("{question} Continue? [y/N]: "))?;
    if answer()?.is_some_and(|answer| matches!(answer.as_str(), "y" | "Y")) {
        return Ok(true);
    }
    output::print("Aborted.\n")?;
    Ok(false)
}

/// Asks about a change of recorded state, below a summary: `y` or `yes` is a yes, and the end of
/// input an error.
pub(super) fn forgotten(warning: &str, skip: bool) -> Result<bool> {
    if skip {
        return Ok(true);
    }
    output::print(&format!("\n{warning}Continue? [y/N]: "))?;
    let Some(answer) = answer()? else { bail!("reading confirmation: EOF") };
    if matches!(answer.to_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    output::print("Aborted\n")?;
    Ok(false)
}

/// A whole line of standard input; none if it ends before.
fn answer() -> Result<Option<String>> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.ends_with('\n').then(|| line.trim().to_owned()))
}
