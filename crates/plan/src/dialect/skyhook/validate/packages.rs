//! The packages of a Skyhook: names, versions, config, resources, and a dependency graph that
//! can be walked to its end.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::skyhook::{Package, ResourceOverrides};
use convoy_api::text::duration::GoDuration;
use convoy_api::text::quantity::Quantity;
use convoy_api::text::similar;

use super::Moment;
use crate::diagnostic::Diagnostic;
use crate::dialect::skyhook::names::unique;
use crate::text::glob;
use crate::text::version::Version;

/// What a package name has to look like; in words, since it stands in messages.
const NAME_PATTERN: &str = "^[a-z][-a-z0-9]{0,41}[a-z]$";

/// A field below `spec.packages.<name>` and what is wrong with it.
type Finding = (&'static str, String);

/// Every rule that is broken, in the order of the API.
pub(super) fn errors(
    object: &Object,
    packages: &BTreeMap<String, Package>,
    moment: Moment,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (key, package) in packages {
        let rules = [
            name(key, package),
            config_interrupts(package),
            version(key, package),
            resources(key, package),
            grace(package),
            depends_on(package),
        ];
        for (field, message) in rules.into_iter().flatten() {
            let dot = if field.is_empty() { "" } else { "." };
            let field = format!("spec.packages.{key}{dot}{field}");
            found.push(Diagnostic::error(object, field, message));
        }
    }
    let missing = missing(packages);
    // Clients of upstream's webhook know its sentence about the graph; a person is told the field.
    if moment == Moment::Planning && !missing.is_empty() {
        found.extend(missing.iter().map(|it| it.diagnostic(object, packages)));
    } else if let Some(message) = missing_in_graph(&missing).or_else(|| cycle(packages)) {
        let message = format!("graph is invalid: {message}");
        found.push(Diagnostic::error(object, "spec.packages", message));
    }
    found
}

fn name(key: &str, package: &Package) -> Option<Finding> {
    if let Some(name) = package.name.as_deref().filter(|name| !name.is_empty() && *name != key) {
        return Some(("name", format!("error package {key}'s name was set to {name}")));
    }
    (!is_package_name(key)).then(|| {
        let message = format!("package name [{key}] is not valid. must match [{NAME_PATTERN}]");
        ("", message)
    })
}

fn is_package_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    (2..=43).contains(&bytes.len())
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

fn config_interrupts(package: &Package) -> Option<Finding> {
    let config = package.config_map.clone().unwrap_or_default();
    package.config_interrupts.iter().flatten().find_map(|(key, _)| {
        let message = if key.contains('*') {
            let found = config.keys().any(|name| glob::matches(key, name));
            (!found).then(|| {
                format!("error config interrupt glob {key:?} does not match any configMap keys")
            })
        } else {
            (!config.contains_key(key))
                .then(|| format!("error config interrupt for key that doesn't exist: {key}"))
        };
        message.map(|message| ("configInterrupts", message))
    })
}

fn version(key: &str, package: &Package) -> Option<Finding> {
    let version = &package.version;
    Version::parse(version)
        .is_none()
        .then(|| ("version", format!("error version string for {key} is invalid: {version}")))
}

fn resources(key: &str, package: &Package) -> Option<Finding> {
    let ResourceOverrides { cpu_request, cpu_limit, memory_request, memory_limit } =
        package.resources.as_ref()?;
    let given = [cpu_request, cpu_limit, memory_request, memory_limit];
    let fail = |message: &str| Some(("resources", format!("package {key:?}: {message}")));
    let texts: Vec<&str> = given.iter().filter_map(|one| Some(one.as_ref()?.0.as_str())).collect();
    let [cpu_request, cpu_limit, memory_request, memory_limit] = texts.as_slice() else {
        let none = texts.is_empty();
        let message = "if any resource override is set, all of cpuRequest, cpuLimit, \
                       memoryRequest, memoryLimit must be set";
        return if none { None } else { fail(message) };
    };
    let mut amounts = Vec::new();
    for text in &texts {
        match text.parse::<Quantity>() {
            Ok(amount) => amounts.push(amount),
            Err(error) => return fail(&error.to_string()),
        }
    }
    if amounts.iter().any(|amount| *amount <= Quantity::ZERO) {
        return fail("all resource values must be positive");
    }
    if amounts[1] < amounts[0] {
        return fail(&format!("cpuLimit ({cpu_limit}) must be >= cpuRequest ({cpu_request})"));
    }
    if amounts[3] < amounts[2] {
        let message =
            format!("memoryLimit ({memory_limit}) must be >= memoryRequest ({memory_request})");
        return fail(&message);
    }
    None
}

fn grace(package: &Package) -> Option<Finding> {
    let error = package.graceful_shutdown.as_deref()?.parse::<GoDuration>().err()?;
    Some(("gracefulShutdown", error.to_string()))
}

fn depends_on(package: &Package) -> Option<Finding> {
    let empty = package.depends_on.iter().flatten().find(|(_, version)| version.is_empty())?;
    Some(("dependsOn", format!("DependsOn version is empty for [{}]", empty.0)))
}

/// A dependency on a package, or a version of it, that is not there.
#[derive(Debug)]
struct Missing<'p> {
    package: &'p str,
    name: &'p str,
    version: &'p str,
}

impl Missing<'_> {
    fn diagnostic(&self, object: &Object, packages: &BTreeMap<String, Package>) -> Diagnostic {
        let Self { package, name, version } = self;
        let instead = packages.get(*name).map_or_else(
            || {
                let known = packages.keys().map(String::as_str).filter(|known| known != package);
                similar::question(name, known)
            },
            |known| format!(": {name:?} has version {}", known.version),
        );
        let message = format!("package \"{name}|{version}\" not found{instead}");
        Diagnostic::error(object, format!("spec.packages.{package}.dependsOn.{name}"), message)
    }
}

fn missing(packages: &BTreeMap<String, Package>) -> Vec<Missing<'_>> {
    let known = |name: &str, version: &str| {
        packages.get(name).is_some_and(|package| package.version == version)
    };
    let wanted = packages.iter().flat_map(|(package, it)| {
        let all = it.depends_on.iter().flatten();
        all.map(move |(name, version)| Missing { package, name, version })
    });
    wanted.filter(|it| !known(it.name, it.version)).collect()
}

fn missing_in_graph(missing: &[Missing<'_>]) -> Option<String> {
    let names: BTreeSet<String> = missing.iter().map(|it| unique(it.name, it.version)).collect();
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| format!("error graph is not valid, missing: [{}]", names.join(" ")))
}

/// A ring of packages that wait for each other, by name.
fn cycle(packages: &BTreeMap<String, Package>) -> Option<String> {
    let mut left: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    let waits_for = |name: &str, left: &BTreeSet<&str>| {
        let package = packages.get(name)?;
        let mut names = package.depends_on.iter().flatten().map(|(name, _)| name.as_str());
        names.find(|name| left.contains(name)).map(str::to_owned)
    };
    // Packages that wait for nobody are taken away until none is left, or only rings are.
    loop {
        let free: Vec<&str> =
            left.iter().copied().filter(|name| waits_for(name, &left).is_none()).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|name| !free.contains(name));
    }
    let mut path = vec![(*left.first()?).to_owned()];
    while let Some(next) = path.last().and_then(|name| waits_for(name, &left)) {
        if let Some(start) = path.iter().position(|name| *name == next) {
            path.push(next);
            let ring = path.split_off(start).join(" -> ");
            return Some(format!("packages depend on each other: {ring}; remove one dependency"));
        }
        path.push(next);
    }
    None
}
