//! Command lines as upstream's flag library reads them: the values that a switch may have, the order
//! of checks, and the words for what is wrong.

use anyhow::{Result, anyhow, bail, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command};
use convoy_api::skyhook::Stage;
use convoy_api::text::GoDuration;

/// The stages that a package can be run again from.
pub(super) const STAGES: [(&str, Stage); 4] = [
    ("apply", Stage::Apply),
    ("config", Stage::Config),
    ("interrupt", Stage::Interrupt),
    ("post-interrupt", Stage::PostInterrupt),
];

/// A command that does something. Its words are counted before the output format is looked at, and
/// its flags after that.
pub(super) trait Leaf {
    fn arity(&self) -> Result<()> {
        Ok(())
    }

    fn required(&self) -> Result<()> {
        Ok(())
    }
}

/// Refuses a command whose first word is missing or followed by others.
pub(super) fn exactly_one(first: Option<&String>, more: &[String]) -> Result<()> {
    let count = usize::from(first.is_some()) + more.len();
    ensure!(count == 1, "accepts 1 arg(s), received {count}");
    Ok(())
}

pub(super) fn at_least_one(words: &[String]) -> Result<()> {
    ensure!(!words.is_empty(), "requires at least 1 arg(s), only received 0");
    Ok(())
}

/// Refuses a command without `--skyhook`.
pub(super) fn skyhook_required(skyhook: Option<&str>) -> Result<()> {
    match skyhook {
        None => bail!("required flag(s) \"skyhook\" not set"),
        Some("") => bail!("--skyhook flag is required"),
        Some(_) => Ok(()),
    }
}

/// The stage that was asked for; an empty word is none.
pub(super) fn parse_stage(word: Option<&str>) -> Result<Option<Stage>> {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return Ok(None) };
    match STAGES.iter().find(|(known, _)| *known == word) {
        Some((_, stage)) => Ok(Some(*stage)),
        None => {
            bail!("invalid stage {word:?}: must be one of apply, config, interrupt, post-interrupt")
        }
    }
}

pub(super) fn duration(text: &str) -> Result<GoDuration, String> {
    text.parse().map_err(|_| format!("time: invalid duration {text:?}"))
}

pub(super) fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
}

/// The command line without the values of switches: `--dry-run=true` is `--dry-run`, and
/// `--dry-run=false` is nothing.
pub(super) fn without_values_of_switches(
    command: &Command,
    words: &[String],
) -> Result<Vec<String>> {
    let known = switches(command);
    let mut plain = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        if word == "--" {
            plain.extend_from_slice(&words[at..]);
            break;
        }
        let valued = word.split_once('=').and_then(|(flag, value)| {
            let switch = known.iter().find(|switch| switch.is(flag))?;
            Some((switch, flag, value))
        });
        let Some((switch, flag, value)) = valued else {
            plain.push(word.clone());
            continue;
        };
        match value {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => plain.push(flag.to_owned()),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => {}
            _ => bail!(
                "invalid argument {value:?} for {:?} flag: strconv.ParseBool: parsing {value:?}: \
                 invalid syntax",
                switch.shown()
            ),
        }
    }
    Ok(plain)
}

/// A flag that is there or not.
struct Switch {
    long: String,
    short: Option<char>,
}

impl Switch {
    fn is(&self, flag: &str) -> bool {
        let short = self.short.map(|short| format!("-{short}"));
        flag.strip_prefix("--") == Some(self.long.as_str()) || short.as_deref() == Some(flag)
    }

    fn shown(&self) -> String {
        shown(&self.long, self.short)
    }
}

/// A flag as messages name it.
fn shown(long: &str, short: Option<char>) -> String {
    match short {
        Some(short) => format!("-{short}, --{long}"),
        None => format!("--{long}"),
    }
}

fn switches(command: &Command) -> Vec<Switch> {
    let own = command.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
    let own = own.filter_map(|arg| {
        Some(Switch { long: arg.get_long()?.to_owned(), short: arg.get_short() })
    });
    own.chain(command.get_subcommands().flat_map(switches)).collect()
}

/// What is wrong with a command line.
pub(super) fn in_words(command: &Command, words: &[String], error: &clap::Error) -> anyhow::Error {
    let told = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let flag = told(ContextKind::InvalidArg);
    let flag = flag.split([' ', '=']).next().unwrap_or_default();
    let value = told(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            unknown_command(command, words, told(ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument => match flag.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') => anyhow!("unknown flag: {flag}"),
            Some(rest) => unknown_letter(rest, words),
            None => unknown_command(command, words, flag),
        },
        ErrorKind::InvalidValue | ErrorKind::NoEquals if value.is_empty() => {
            needs_argument(flag, words)
        }
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            anyhow!("invalid argument {value:?} for {flag:?} flag: {}", cause.unwrap_or_default())
        }
        _ => anyhow!("{}", error.render().to_string().trim_start_matches("error: ").trim_end()),
    }
}

/// Names a letter that is no flag, with the letters that follow it.
fn unknown_letter(rest: &str, words: &[String]) -> anyhow::Error {
    let letter = rest.chars().next().unwrap_or(' ');
    let together = words.iter().filter(|word| word.starts_with('-') && !word.starts_with("--"));
    let mut following = together.filter_map(|word| word.find(letter).map(|at| &word[at..]));
    anyhow!("unknown shorthand flag: {letter:?} in -{}", following.next().unwrap_or(rest))
}

fn needs_argument(flag: &str, words: &[String]) -> anyhow::Error {
    // The word as it was typed, which may be the short form.
    match words.last().and_then(|word| word.strip_prefix('-')) {
        Some(short) if !short.starts_with('-') => {
            let letter = short.chars().last().unwrap_or(' ');
            anyhow!("flag needs an argument: {letter:?} in -{letter}")
        }
        _ => anyhow!("flag needs an argument: {flag}"),
    }
}

/// Names the command that does not exist, and those that look like it.
fn unknown_command(command: &Command, words: &[String], typed: &str) -> anyhow::Error {
    let (mut within, mut path) = (command, String::from("skyhook"));
    for word in words.iter().skip(1).take_while(|word| *word != typed) {
        if let Some(inner) = within.find_subcommand(word) {
            within = inner;
            path = format!("{path} {}", inner.get_name());
        }
    }
    let mut alike: Vec<&str> = within
        .get_subcommands()
        .filter(|other| !other.is_hide_set())
        .map(Command::get_name)
        .filter(|name| distance(typed, name) <= 2 || name.starts_with(&typed.to_lowercase()))
        .collect();
    alike.sort_unstable();
    let hint: String = alike.iter().flat_map(|name| ["\t", name, "\n"]).collect();
    let hint = if hint.is_empty() { hint } else { format!("\n\nDid you mean this?\n{hint}") };
    anyhow!("unknown command {typed:?} for {path:?}{hint}")
}

/// How many letters to add, remove or change to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::plugin::Plugin;

    /// What is said to a command line; nothing if it is fine.
    fn said(line: &str) -> String {
        let words: Vec<String> =
            ["skyhook"].into_iter().chain(line.split_whitespace()).map(str::to_owned).collect();
        let mut command = Plugin::command();
        let words = match without_values_of_switches(&command, &words) {
            Ok(words) => words,
            Err(error) => return error.to_string(),
        };
        let parsed = command.try_get_matches_from_mut(&words);
        let parsed = parsed.and_then(|matches| Plugin::from_arg_matches(&matches));
        let plugin = match parsed {
            Ok(plugin) => plugin,
            Err(error) => return in_words(&command, &words, &error).to_string(),
        };
        let leaf = plugin.action.as_ref().and_then(crate::plugin::Action::leaf).expect("a command");
        let checked = leaf.arity().and_then(|()| leaf.required());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn command_lines_are_refused_in_the_words_of_upstream() {
        let lines = [
            ("pause", "accepts 1 arg(s), received 0"),
            ("pause a b", "accepts 1 arg(s), received 2"),
            ("pause a --nosuch", "unknown flag: --nosuch"),
            ("pause a --nosuch=1", "unknown flag: --nosuch"),
            ("pause a -z", "unknown shorthand flag: 'z' in -z"),
            ("pause a -yzx", "unknown shorthand flag: 'z' in -zx"),
            ("pause a -o", "flag needs an argument: 'o' in -o"),
            ("node list", "required flag(s) \"skyhook\" not set"),
            ("node list --skyhook", "flag needs an argument: --skyhook"),
            ("node list --skyhook=", "--skyhook flag is required"),
            ("node reset --skyhook a", "requires at least 1 arg(s), only received 0"),
            ("package rerun a", "required flag(s) \"node\", \"skyhook\" not set"),
            (
                "pause a --dry-run=client",
                "invalid argument \"client\" for \"--dry-run\" flag: strconv.ParseBool: parsing \
                 \"client\": invalid syntax",
            ),
            (
                "version --timeout soon",
                "invalid argument \"soon\" for \"--timeout\" flag: time: invalid duration \"soon\"",
            ),
            ("frobnicate", "unknown command \"frobnicate\" for \"skyhook\""),
            ("paus", "unknown command \"paus\" for \"skyhook\"\n\nDid you mean this?\n\tpause\n"),
            (
                "node lst",
                "unknown command \"lst\" for \"skyhook node\"\n\nDid you mean this?\n\tlist\n",
            ),
            ("pause a -y=false --dry-run=true --skyhook", "unknown flag: --skyhook"),
            ("node list --skyhook a --skyhook b -o json -ojson -v extra", ""),
            ("-n elsewhere pause a --confirm", ""),
        ];
        for (line, words) in lines {
            assert_eq!(said(line), words, "{line}");
        }
    }

    #[test]
    fn words_differ_by_letters() {
        for (one, other, letters) in
            [("pause", "pause", 0), ("paus", "pause", 1), ("Node", "mode", 1), ("", "ab", 2)]
        {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
    }
}
