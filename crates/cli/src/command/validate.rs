//! `convoy validate`: checks objects offline.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use convoy_api::object::field_path::{self, is_within};
use convoy_api::{Object, ObjectKey};
use convoy_plan::validation::references::{self, Extent};
use convoy_plan::{DIALECTS, Diagnostic, Severity, World, admission};
use serde_json::json;

use super::InputArgs;
use crate::clock::this_second;
use crate::finding::{self, Finding};
use crate::input::{self, Limits};
use crate::output::{self, Format};
use crate::{exit, text};

/// Validate objects against their schemas and against each other
///
/// Finds what an API server and its admission webhooks would refuse, and mistakes that they would
/// accept: unknown fields, names that lead nowhere, selectors that match nothing. Every finding has
/// the file and the line of the field, the object, the value and what is valid instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 no errors (warnings are possible), 1 errors found, \
    2 input could not be read.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// Treat warnings as errors, and the input as complete: whatever is named or selected has to be
    /// there
    #[arg(long, env = "CONVOY_STRICT", hide_env_values = true)]
    strict: bool,
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "CONVOY_OUTPUT",
        hide_env_values = true
    )]
    output: Format,
}

#[derive(Debug)]
struct Settings {
    sources: Vec<PathBuf>,
    strict: bool,
    format: Format,
}

impl Args {
    fn resolve(self) -> Settings {
        let Self { input: InputArgs { filename }, strict, output } = self;
        Settings { sources: filename, strict, format: output }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let settings = args.resolve();
    let manifests = input::read(&settings.sources, Limits::default());
    let diagnostics = diagnostics(&manifests.world, settings.strict);
    let mut findings = finding::of_validation(&manifests, &diagnostics);
    finding::sort_by_place(&mut findings);
    if settings.strict {
        findings.iter_mut().for_each(Finding::harden);
    }
    match settings.format {
        Format::Text => output::print(&text::validation(manifests.world.len(), &findings))?,
        format => output::print_value(&to_json(manifests.world.len(), &findings), format)?,
    }
    Ok(if !manifests.is_sound() {
        ExitCode::from(exit::UNREADABLE)
    } else if finding::has_errors(&findings) {
        ExitCode::from(exit::FINDINGS)
    } else {
        ExitCode::SUCCESS
    })
}

/// Everything that is to say about objects, each thing once.
fn diagnostics(world: &World, strict: bool) -> Vec<Diagnostic> {
    let mut found = once(world, convoy_plan::validate(world));
    add(&mut found, finding::kinds::check(world));
    #[cfg(feature = "server")]
    add(&mut found, once(world, by_server(world)));
    add(&mut found, finding::metadata::check(world));
    let refused = refused(world, &found);
    add(&mut found, refused);
    let extent = if strict { Extent::Whole } else { Extent::Part };
    add(&mut found, references::check(world, extent));
    found
}

/// Of several errors about one plain value, the one that says most: its schema and the rules of its
/// API may both refuse it.
fn once(world: &World, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut best: BTreeMap<(ObjectKey, String), Diagnostic> = BTreeMap::new();
    let mut others = Vec::new();
    for one in found {
        let raw = world.get(&one.key).map(Object::raw);
        let value = raw.and_then(|raw| field_path::get(raw, &one.field));
        let is_plain = value.is_some_and(|value| !value.is_object() && !value.is_array());
        if one.severity != Severity::Error || !is_plain {
            others.push(one);
            continue;
        }
        match best.entry((one.key.clone(), one.field.clone())) {
            Entry::Occupied(mut known) if rank(&one) < rank(known.get()) => {
                known.insert(one);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(vacant) => {
                vacant.insert(one);
            }
        }
    }
    // A warning about a value that is refused says what follows from it.
    others.retain(|one| {
        one.severity != Severity::Warning
            || !best.contains_key(&(one.key.clone(), one.field.clone()))
    });
    best.into_values().chain(others).collect()
}

/// The less, the better a message tells what to do.
fn rank(Diagnostic { message, .. }: &Diagnostic) -> (bool, bool, usize) {
    (message.contains(" in body "), !message.contains("supported values"), message.len())
}

/// Adds findings about fields about which nothing is said yet.
fn add(found: &mut Vec<Diagnostic>, more: Vec<Diagnostic>) {
    let mut told: BTreeMap<(&ObjectKey, &str), Severity> = BTreeMap::new();
    for one in found.iter() {
        let worst = told.entry((&one.key, &one.field)).or_insert(one.severity);
        *worst = one.severity.min(*worst);
    }
    // What is said about a part says more than what is said about the whole.
    let has_part = |one: &Diagnostic| {
        let parts = told.range((&one.key, one.field.as_str())..);
        let mut parts = parts.take_while(|((key, field), _)| {
            **key == one.key && field.starts_with(one.field.as_str())
        });
        parts.any(|((_, field), worst)| {
            *worst <= one.severity && is_within(field, &one.field) && !one.field.is_empty()
        })
    };
    let is_new = |one: &Diagnostic| {
        let worst = told.get(&(&one.key, one.field.as_str()));
        worst.is_none_or(|worst| *worst > one.severity) && !has_part(one)
    };
    let more: Vec<Diagnostic> = more.into_iter().filter(is_new).collect();
    found.extend(more);
}

/// What admission webhooks refuse that nothing else was said about.
fn refused(world: &World, found: &[Diagnostic]) -> Vec<Diagnostic> {
    let now = this_second();
    let is_told = |object: &Object, message: &str| {
        found.iter().any(|told| {
            let is_error = told.severity == Severity::Error;
            told.key == *object.key() && (is_error || told.message.starts_with(message))
        })
    };
    let refused = world.iter().filter_map(|object| {
        let message = DIALECTS.iter().find_map(|dialect| {
            if object.is_deleting() {
                None
            } else {
                admission::refusal(*dialect, world, object, now)
            }
        })?;
        (!is_told(object, &message)).then(|| Diagnostic::error(object, "", message))
    });
    refused.collect()
}

/// What an API server says about objects of Kubernetes' own kinds.
#[cfg(feature = "server")]
fn by_server(world: &World) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for object in world.iter() {
        let Some(review) = convoy_apiserver::review::review(object.raw()) else { continue };
        for error in review.errors {
            found.push(Diagnostic::error(object, error.field, error.message));
        }
        for unknown in review.unknown_fields {
            let message = unknown.message();
            found.push(Diagnostic::warning(object, unknown.field, message));
        }
        for warning in review.warnings {
            let (field, message) = warning.split_once(": ").unwrap_or(("", &warning));
            found.push(Diagnostic::warning(object, field, message));
        }
    }
    found
}

fn to_json(objects: usize, findings: &[Finding]) -> serde_json::Value {
    json!({
        "objects": objects,
        "errors": finding::count(findings, Severity::Error),
        "warnings": finding::count(findings, Severity::Warning),
        "notes": finding::count(findings, Severity::Note),
        "findings": finding::to_json(findings),
    })
}
