//! `cargo xtask deploy`: writes the files in `deploy/` that follow from others: the definitions, the
//! rules of the roles and the version of the Helm chart, its dashboards and alerts, and the manifests
//! of the kustomizations, which are the chart rendered by the real Helm.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::kubernetes::root;
use crate::monitoring;

/// What to do with the files.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Write nothing, and fail if a file is not what it should be
    #[arg(long)]
    check: bool,
}

/// A folder of manifests that the chart is rendered into.
struct Kustomization {
    folder: &'static str,
    release: &'static str,
    namespace: &'static str,
}

const KUSTOMIZATIONS: [Kustomization; 7] = [
    Kustomization { folder: "deploy", release: "convoy", namespace: "convoy-system" },
    Kustomization { folder: "deploy/skyhook", release: "convoy", namespace: "skyhook" },
    Kustomization { folder: "deploy/fleet", release: "convoy", namespace: "fleet-system" },
    Kustomization { folder: "deploy/karpenter", release: "convoy", namespace: "karpenter" },
    Kustomization {
        folder: "deploy/ocm",
        release: "convoy",
        namespace: "open-cluster-management-hub",
    },
    Kustomization {
        folder: "deploy/fleet-agent",
        release: "convoy-agent",
        namespace: "fleet-system",
    },
    Kustomization {
        folder: "deploy/ocm-agent",
        release: "convoy-agent",
        namespace: "open-cluster-management-agent",
    },
];

/// Values of all kustomizations, which have to do without Helm: definitions are installed with
/// `convoy crds`, and Convoy creates its webhook configurations.
const WITHOUT_HELM: &str =
    "createNamespace=true,crds.install=false,webhooks.createConfigurations=false";

/// Labels that say something only about a release of Helm.
const OF_RELEASES: [&str; 2] = ["app.kubernetes.io/managed-by:", "helm.sh/chart:"];

/// What the manifests begin with.
const RENDERED: &str = "# Rendered from deploy/chart by `cargo xtask deploy`.\n";

/// Files by their path in the repository.
type Files = BTreeMap<PathBuf, String>;

/// The test that compares the rules of the roles with the tables of the dialects, and writes them.
const ROLES: [&str; 3] = ["test", "--package=convoy-plan", "--test=roles"];

pub(crate) fn run(settings: &Settings) -> Result<()> {
    roles(settings.check)?;
    // The chart is rendered as it is on disk, so that it comes first.
    for generate in [chart, manifests] {
        let files = generate()?;
        if settings.check {
            let stale = stale(&files);
            ensure!(stale.is_empty(), "run `cargo xtask deploy`: {} differ", stale.join(", "));
        } else {
            write(&files)?;
        }
    }
    Ok(())
}

fn roles(only_compare: bool) -> Result<()> {
    let mut cargo = crate::cargo_command();
    cargo.args(ROLES).current_dir(root());
    if !only_compare {
        cargo.env("EXPECTORATE", "overwrite");
    }
    let status = cargo.status().context("could not run cargo")?;
    ensure!(status.success(), "the rules of the roles differ from the tables of the dialects");
    Ok(())
}

fn write(files: &Files) -> Result<()> {
    for (path, text) in files {
        let path = root().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// The files that are not as they should be.
fn stale(files: &Files) -> Vec<String> {
    let differs = |(path, text): &(&PathBuf, &String)| {
        fs::read_to_string(root().join(path)).ok().as_ref() != Some(*text)
    };
    files.iter().filter(differs).map(|(path, _)| path.display().to_string()).collect()
}

/// Files of the chart that follow from the code.
fn chart() -> Result<Files> {
    let mut files = monitoring::files();
    for dialect in ["skyhook", "fleet", "karpenter", "ocm"] {
        let definitions = read(&format!("crates/api/crds/{dialect}.jsonl"))?;
        files.insert(format!("deploy/chart/definitions/{dialect}.jsonl").into(), definitions);
    }
    let path = "deploy/chart/Chart.yaml";
    let chart = read(path)?;
    let versioned = chart.lines().map(|line| match line.split_once(": ") {
        Some((field @ ("version" | "appVersion"), _)) => {
            format!("{field}: {}\n", env!("CARGO_PKG_VERSION"))
        }
        _ => format!("{line}\n"),
    });
    files.insert(path.into(), versioned.collect());
    Ok(files)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("could not read {path}"))
}

/// The manifests of all kustomizations, and the resources that each of them lists.
fn manifests() -> Result<Files> {
    let helm = helm()?;
    let mut files = Files::new();
    for kustomization in &KUSTOMIZATIONS {
        let folder = Path::new(kustomization.folder);
        let rendered = split(&render(&helm, kustomization)?)?;
        let path = folder.join("kustomization.yaml");
        let names: Vec<&str> = rendered.keys().map(String::as_str).collect();
        files.insert(path.clone(), listing(&read(&path.to_string_lossy())?, &names)?);
        for (name, text) in rendered {
            files.insert(folder.join(name), text);
        }
    }
    Ok(files)
}

/// Builds the Helm that the tests use.
fn helm() -> Result<PathBuf> {
    let program = root().join("target/tools/helm");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg("helm.sh/helm/v4/cmd/helm");
    build.current_dir(root().join("crates/cli/tests/up/helm"));
    let status = build.status().context("could not run go, which builds Helm")?;
    ensure!(status.success(), "could not build Helm");
    Ok(program)
}

fn render(helm: &Path, kustomization: &Kustomization) -> Result<String> {
    let Kustomization { folder, release, namespace } = kustomization;
    let mut command = Command::new(helm);
    command.args(["template", release, "deploy/chart", "--namespace", namespace]);
    command.args(["--values", &format!("{folder}/values.yaml"), "--set", WITHOUT_HELM]);
    let output = command.current_dir(root()).output().context("could not run Helm")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "could not render {folder}: {complaint}");
    String::from_utf8(output.stdout).context("Helm printed something else than text")
}

/// What Helm renders, by the name of the template, without what is of Helm.
fn split(rendered: &str) -> Result<BTreeMap<String, String>> {
    const SOURCE: &str = "# Source: convoy/templates/";
    let mut files = BTreeMap::<String, String>::new();
    for document in rendered.split("---\n").filter(|document| !document.trim().is_empty()) {
        let Some((source, body)) = document.split_once('\n') else { continue };
        let Some(name) = source.strip_prefix(SOURCE) else { bail!("unexpected source {source:?}") };
        let of_release = |line: &&str| OF_RELEASES.iter().any(|label| line.contains(label));
        let kept = body.trim().lines().filter(|line| !of_release(line)).map(str::trim_end);
        let file = files.entry(name.to_owned()).or_default();
        file.push_str(if file.is_empty() { RENDERED } else { "---\n" });
        file.extend(kept.flat_map(|line| [line, "\n"]));
    }
    Ok(files)
}

/// A kustomization that lists these files and the version of the workspace.
fn listing(kustomization: &str, names: &[&str]) -> Result<String> {
    let (head, rest) = kustomization.split_once("resources:\n").context("no resources")?;
    let rest = rest.trim_start_matches(|c: char| c != '#');
    let (rest, _) = rest.split_once("  newTag: ").context("no newTag")?;
    let resources: String = names.iter().flat_map(|name| ["- ", name, "\n"]).collect();
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{head}resources:\n{resources}{rest}  newTag: {version}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_follows_the_code() {
        let stale = stale(&chart().expect("readable"));
        assert!(stale.is_empty(), "run `cargo xtask deploy`: {stale:?} differ");
    }

    /// Every value that the schema allows, by its path.
    fn values(schema: &serde_json::Value, path: &str) -> Vec<String> {
        let Some(properties) = schema["properties"].as_object() else {
            return vec![path.to_owned()];
        };
        let below = |(name, schema): (&String, &serde_json::Value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            values(schema, &path)
        };
        properties.iter().flat_map(below).collect()
    }

    /// The paths of all values, by the schema.
    fn paths() -> Vec<String> {
        let schema = read("deploy/chart/values.schema.json").expect("readable");
        values(&serde_json::from_str(&schema).expect("JSON"), "")
    }

    fn yaml(path: &str) -> serde_json::Value {
        serde_saphyr::from_str(&read(path).expect("readable")).expect("YAML")
    }

    /// The value at a path.
    fn at<'v>(values: &'v serde_json::Value, path: &str) -> Option<&'v serde_json::Value> {
        path.split('.').try_fold(values, |found, name| found.get(name))
    }

    #[test]
    fn every_value_is_documented_and_has_a_default() {
        let page = read("docs/reference/chart.md").expect("readable");
        let defaults = yaml("deploy/chart/values.yaml");
        for path in paths() {
            assert!(page.contains(&format!("`{path}`")), "docs/reference/chart.md lacks {path}");
            let is_optional = ["global", "resources.claims"].contains(&path.as_str());
            assert!(at(&defaults, &path).is_some() || is_optional, "values.yaml lacks {path}");
        }
    }

    /// What comes of it is compared in `crates/cli/tests/up/chart/every_value.rs`.
    #[test]
    fn every_value_is_rendered_in_a_test_as_something_else_than_its_default() {
        let defaults = yaml("deploy/chart/values.yaml");
        let files = ["hub", "off", "agent"]
            .map(|name| yaml(&format!("crates/cli/tests/up/chart/values/{name}.yaml")));
        // Helm's, and the chart ignores it.
        for path in paths().iter().filter(|path| *path != "global") {
            let mut given = files.iter().filter_map(|file| at(file, path));
            let is_other = given.any(|value| Some(value) != at(&defaults, path));
            assert!(is_other, "no file of values in the tests of the chart sets {path}");
        }
    }

    /// Also shows that Helm's lint finds nothing, for every set of values that is committed.
    #[test]
    fn the_manifests_are_the_rendered_chart() {
        let helm = helm().expect("Go builds Helm");
        for Kustomization { folder, .. } in &KUSTOMIZATIONS {
            let mut lint = Command::new(&helm);
            lint.args(["lint", "--strict", "deploy/chart", "--values"]);
            lint.arg(format!("{folder}/values.yaml")).current_dir(root());
            let output = lint.output().expect("Helm runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        let stale = stale(&manifests().expect("the chart can be rendered"));
        assert!(stale.is_empty(), "run `cargo xtask deploy`: {stale:?} differ");
    }
}
