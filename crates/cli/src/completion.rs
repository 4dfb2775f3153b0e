//! Completion of command lines while they are typed. Shells ask by the scripts of [`scripts`], and
//! kubectl by an executable of its own name for each plugin; both get a word per line, with its
//! meaning after a tab, and a last line that says whether files are to be offered. Commands, flags
//! and their values come from the descriptions that `--help` prints; each program says where the
//! names of objects stand.

pub(crate) mod scripts;

use std::process::ExitCode;

use clap::builder::ValueHint;
use clap::{Arg, Command};

use crate::output;

/// The word for which a program is called by the scripts, with the command line after it.
pub(crate) const COMPLETE: &str = "__complete";

/// Words that complete a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// One of these, each with what it means; empty where the word says it.
    Words(Vec<(String, String)>),
    /// A path.
    Files,
}

/// A command line that ends in the word to complete.
#[derive(Debug)]
pub(crate) struct CommandLine<'c> {
    root: &'c Command,
    /// The command that the words before it name, and how they name it.
    within: &'c Command,
    pub(crate) path: Vec<&'c str>,
    /// The words that are neither a command nor a flag.
    pub(crate) positions: Vec<String>,
    /// The flags by their long names, each with its value if it has one.
    pub(crate) flags: Vec<(String, String)>,
    /// What is completed.
    pub(crate) next: NextWord,
    /// What of it is there already.
    pub(crate) begins: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextWord {
    /// The value of a flag, by its long name.
    Value(String),
    Flag,
    Command,
    /// A word that is neither a command nor a flag.
    Position,
}

impl<'c> CommandLine<'c> {
    /// Reads the words after the name of the program. Flags are known to a built command only.
    pub(crate) fn read(root: &'c Command, words: &[String]) -> Self {
        let words = joined(words);
        let (last, before) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
        let (path, positions, flags) = (Vec::new(), Vec::new(), Vec::new());
        let (next, begins) = (NextWord::Position, last.to_owned());
        let mut line = Self { root, within: root, path, positions, flags, next, begins };
        let mut expecting = None;
        for word in before {
            if let Some(flag) = Option::take(&mut expecting) {
                line.flags.push((flag, word.clone()));
            } else if word.starts_with('-') {
                expecting = line.flag(word);
            } else if let Some(inner) = line.within.find_subcommand(word) {
                line.within = inner;
                line.path.push(inner.get_name());
            } else {
                line.positions.push(word.clone());
            }
        }
        line.end(expecting);
        line
    }

    /// Notes a flag; its name if its value is the next word.
    fn flag(&mut self, word: &str) -> Option<String> {
        let (word, value) =
            word.split_once('=').map_or((word, None), |(flag, it)| (flag, Some(it)));
        let arg = self.arg_of(word)?;
        let (long, takes_next) = (arg.get_long()?.to_owned(), takes_next(arg));
        match value {
            None if takes_next => return Some(long),
            value => self.flags.push((long, value.unwrap_or_default().to_owned())),
        }
        None
    }

    fn end(&mut self, expecting: Option<String>) {
        if let Some(flag) = expecting {
            self.next = NextWord::Value(flag);
        } else if self.begins.starts_with('-') {
            let valued = self.begins.split_once('=').map(|(flag, value)| {
                let arg = self.arg_of(flag).and_then(Arg::get_long);
                (arg.unwrap_or_default().to_owned(), value.to_owned())
            });
            self.next = NextWord::Flag;
            if let Some((flag, value)) = valued {
                (self.next, self.begins) = (NextWord::Value(flag), value);
            }
        } else if self.within.has_subcommands() {
            self.next = NextWord::Command;
        }
    }

    /// The flag that a word means here.
    fn arg_of(&self, word: &str) -> Option<&'c Arg> {
        let mut all = self.within.get_arguments().chain(self.root.get_arguments());
        all.find(|arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
        })
    }

    /// The value of a flag, the last one if it is there more than once.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        let mut given = self.flags.iter().rev().filter(|(name, _)| name == flag);
        given.next().map(|(_, value)| value.as_str())
    }

    /// What the descriptions of the command know.
    pub(crate) fn described(&self) -> Completion {
        let arg = match &self.next {
            NextWord::Flag => return Completion::Words(self.flag_words()),
            NextWord::Command => return Completion::Words(self.commands()),
            NextWord::Value(flag) => self.arg_of(&format!("--{flag}")),
            NextWord::Position => {
                let all: Vec<&Arg> = self.within.get_positionals().collect();
                all.get(self.positions.len()).or(all.last()).copied()
            }
        };
        let Some(arg) = arg.filter(|_| self.takes_position()) else { return words(&[]) };
        if matches!(arg.get_value_hint(), ValueHint::AnyPath) {
            return Completion::Files;
        }
        let values = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
        let meaning = |it: &clap::builder::PossibleValue| it.get_help().map(ToString::to_string);
        Completion::Words(
            values.map(|it| (it.get_name().to_owned(), meaning(&it).unwrap_or_default())).collect(),
        )
    }

    /// Whether the command takes one more word, if it is one that is completed.
    fn takes_position(&self) -> bool {
        let most: usize = self
            .within
            .get_positionals()
            .map(|arg| arg.get_num_args().map_or(1, |range| range.max_values()))
            .fold(0, usize::saturating_add);
        self.next != NextWord::Position || self.positions.len() < most
    }

    fn flag_words(&self) -> Vec<(String, String)> {
        let own = self.within.get_arguments();
        let inherited = self.root.get_arguments().filter(|arg| arg.is_global_set());
        let shown = own.chain(inherited).filter(|arg| !arg.is_hide_set()).filter_map(|arg| {
            let meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
            Some((format!("--{}", arg.get_long()?), meaning))
        });
        let mut shown: Vec<(String, String)> = shown.collect();
        shown.sort();
        shown.dedup_by(|one, other| one.0 == other.0);
        shown
    }

    fn commands(&self) -> Vec<(String, String)> {
        let shown = self.within.get_subcommands().filter(|it| !it.is_hide_set());
        let meaning = |command: &Command| command.get_about().map(ToString::to_string);
        shown.map(|it| (it.get_name().to_owned(), meaning(it).unwrap_or_default())).collect()
    }

    /// Prints what fits.
    pub(crate) fn print(&self, completion: Completion) -> ExitCode {
        let (words, directive) = match completion {
            Completion::Words(words) => (words, ":4"),
            Completion::Files => (Vec::new(), ":0"),
        };
        let fitting = words.into_iter().filter(|(word, _)| word.starts_with(&self.begins));
        let mut lines: Vec<String> = fitting
            .map(|(word, meaning)| match meaning.lines().next() {
                Some(meaning) => format!("{word}\t{meaning}"),
                None => word,
            })
            .collect();
        lines.push(directive.to_owned());
        // Nobody reads what is said about it.
        _ = output::print(&output::lines(&lines));
        ExitCode::SUCCESS
    }
}

/// Whether the value of a flag may be the next word.
fn takes_next(arg: &Arg) -> bool {
    let takes_one = arg.get_num_args().is_none_or(|range| range.min_values() > 0);
    arg.get_action().takes_values() && takes_one
}

/// The words of a shell that takes `--flag=value` apart, put together.
fn joined(words: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        match all.last_mut() {
            Some(flag) if word == "=" && flag.starts_with("--") => flag.push('='),
            Some(flag) if flag.starts_with("--") && flag.ends_with('=') => flag.push_str(word),
            _ => all.push(word.clone()),
        }
    }
    all
}

/// Words that need no explanation.
pub(crate) fn words(all: &[&str]) -> Completion {
    names(all.iter().map(|word| (*word).to_owned()))
}

/// Names of objects, in order and each once.
pub(crate) fn names(all: impl IntoIterator<Item = String>) -> Completion {
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort();
    all.dedup();
    Completion::Words(all.into_iter().map(|name| (name, String::new())).collect())
}
