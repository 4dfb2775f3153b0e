//! The rules in `deploy/chart/access`, generated from the tables of the dialects: what they watch,
//! what they write, and what a hub grants. `EXPECTORATE=overwrite` writes the files.

use std::fmt::Write as _;
use std::path::PathBuf;

use convoy_api::rbac::{Rule, missing};
use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::apps::Deployments;
use convoy_plan::dialect::fleet::Hub;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::dialect::karpenter::Operator;
use convoy_plan::dialect::ocm;
use convoy_plan::dialect::ocm_agent::{self, OcmAgent};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::{Dialect, Watch, fleet};
use convoy_plan::permission::{ApiVerb, Needed, Permission, Within, uncovered};
use convoy_plan::{Action, Step, Verb, Verdict, Why};
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};

/// A list and a watch need no more than this of a kind.
const WATCHED: [&str; 2] = ["list", "watch"];

/// One line of what an account may do, before lines with the same verbs become one rule.
struct Line {
    group: SmolStr,
    resource: SmolStr,
    verbs: Vec<&'static str>,
    why: &'static str,
}

/// The rules of an account that watches and writes these.
fn lines(watches: &[Watch], permissions: &[Permission], within: Within) -> Vec<Line> {
    let mut lines = Vec::new();
    let rows = || permissions.iter().filter(|row| row.within == within);
    if within == Within::Everywhere {
        let read = |kind: &GroupKind| {
            // An object whose write got no response is read before the next decision.
            let is_written = permissions.iter().any(|row| row.kind == *kind);
            let verbs = is_written.then_some("get").into_iter().chain(WATCHED).collect();
            Line { group: kind.group.clone(), resource: plural(kind), verbs, why: "" }
        };
        let watched = watches.iter().map(|watch| &watch.kind);
        let unlisted = |row: &&Permission| !watches.iter().any(|watch| watch.kind == row.kind);
        let needed = rows().filter(unlisted).map(|row| &row.kind);
        lines.extend(watched.chain(needed).map(read));
    }
    for row in rows() {
        let (group, resource) = (row.kind.group.clone(), plural(&row.kind));
        for verb in row.verbs {
            let (verb, below) = verb.rule();
            let resource = format_smolstr!("{resource}{below}");
            let same = |line: &&mut Line| line.resource == resource && line.group == group;
            if let Some(line) = lines.iter_mut().find(same) {
                line.verbs.push(verb);
                line.why = if below.is_empty() { row.why } else { line.why };
            } else {
                let why = if row.verbs[0].rule().1 == below { row.why } else { "" };
                lines.push(Line { group: group.clone(), resource, verbs: vec![verb], why });
            }
        }
    }
    lines
}

/// The name of a kind in paths and rules.
fn plural(kind: &GroupKind) -> SmolStr {
    let name = kind.kind.to_lowercase();
    match name.strip_suffix('y') {
        Some(stem) => format_smolstr!("{stem}ies"),
        None if name.ends_with('s') => format_smolstr!("{name}es"),
        None => format_smolstr!("{name}s"),
    }
}

fn events() -> Line {
    let (group, resource) = (SmolStr::default(), SmolStr::new_static("events"));
    Line { group, resource, verbs: vec!["create", "patch"], why: "" }
}

/// Lines as YAML: those of one group with the same verbs are one rule.
fn yaml(lines: &[Line]) -> String {
    let mut text =
        String::from("# Generated from the tables of the dialects by `cargo xtask deploy`.\n");
    let mut rules: Vec<(&SmolStr, &[&str], Vec<&Line>)> = Vec::new();
    for line in lines {
        let same = |rule: &&mut (&SmolStr, &[&str], Vec<&Line>)| {
            *rule.0 == line.group && rule.1 == line.verbs.as_slice()
        };
        match rules.iter_mut().find(same) {
            Some(rule) => rule.2.push(line),
            None => rules.push((&line.group, &line.verbs, vec![line])),
        }
    }
    for (group, verbs, lines) in rules {
        let group = if group.is_empty() { "\"\"" } else { group.as_str() };
        let explained = lines.iter().filter(|line| !line.why.is_empty());
        text.extend(explained.map(|line| format!("# {}: {}\n", line.resource, line.why)));
        let resources: Vec<&str> = lines.iter().map(|line| line.resource.as_str()).collect();
        writeln!(text, "- apiGroups: [{group}]").expect("a string takes it");
        if resources.len() == 1 {
            writeln!(text, "  resources: [{}]", resources[0]).expect("a string takes it");
        } else {
            writeln!(text, "  resources:\n  - {}", resources.join("\n  - "))
                .expect("a string takes it");
        }
        writeln!(text, "  verbs: [{}]", verbs.join(", ")).expect("a string takes it");
    }
    text
}

/// Rules of a role as YAML, without the names of objects: a grantor has them for every object.
fn granted(rules: &[Value]) -> String {
    let mut text =
        String::from("# Generated from the roles that the hub makes by `cargo xtask deploy`.\n");
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        let words = words.map(|word| if word.is_empty() { "\"\"" } else { word });
        words.collect::<Vec<&str>>().join(", ")
    };
    for rule in rules {
        writeln!(text, "- apiGroups: [{}]", words(&rule["apiGroups"])).expect("a string takes it");
        writeln!(text, "  resources: [{}]", words(&rule["resources"])).expect("a string takes it");
        writeln!(text, "  verbs: [{}]", words(&rule["verbs"])).expect("a string takes it");
    }
    text
}

fn of_home(dialect: &dyn Dialect, within: Within) -> Vec<Line> {
    let permissions = dialect.permissions().expect("it has a table");
    lines(dialect.watches(), permissions, within)
}

fn of_members(dialects: &[&dyn Dialect]) -> Vec<Line> {
    let watches: Vec<Watch> =
        dialects.iter().flat_map(|dialect| dialect.member_watches()).cloned().collect();
    let tables = dialects.iter().map(|dialect| dialect.member_permissions().expect("it has one"));
    lines(&watches, &tables.collect::<Vec<_>>().concat(), Within::Everywhere)
}

fn array(rules: Value) -> Vec<Value> {
    serde_json::from_value(rules).expect("a list of rules")
}

/// What the hub of managed clusters grants to their agents, of any cluster.
fn granted_by_ocm() -> Vec<Value> {
    let roles = ocm::agent_roles("any");
    roles.into_iter().flat_map(|role| array(role["rules"].clone())).collect()
}

fn files() -> Vec<(&'static str, String)> {
    let (skyhook, fleet) = (Skyhook::new(), Hub::default());
    let hub = ocm::Hub { parts: ocm::HubControllers::ALL };
    let work = OcmAgent::new(ocm_agent::Options::new("any", ""));
    let registration = OcmRegistration::new(ocm_registration::Options::new("any"));
    let whole = |mut lines: Vec<Line>| {
        lines.push(events());
        yaml(&lines)
    };
    vec![
        ("apps", whole(of_home(&Deployments, Within::Everywhere))),
        ("skyhook", whole(of_home(&skyhook, Within::Everywhere))),
        ("skyhook-packages", yaml(&of_home(&skyhook, Within::OwnNamespace))),
        ("fleet", whole(of_home(&fleet, Within::Everywhere))),
        ("fleet-members", granted(&array(fleet::agent_rules()))),
        ("karpenter", whole(of_home(&Operator::new(), Within::Everywhere))),
        ("ocm", whole(of_home(&hub, Within::Everywhere))),
        ("ocm-granted", granted(&granted_by_ocm())),
        ("agent-fleet", whole(of_members(&[&FleetAgent::new("any")]))),
        ("agent-ocm", whole(of_members(&[&work, &registration]))),
    ]
}

#[test]
fn the_roles_of_the_chart_follow_the_tables() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/access");
    let files = files();
    for (name, text) in &files {
        expectorate::assert_contents(folder.join(format!("{name}.yaml")), text);
    }
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut named: Vec<String> = files.iter().map(|(name, _)| format!("{name}.yaml")).collect();
    named.sort();
    assert_eq!(found, named, "every file follows from a table");
}

/// Rules as an API server reads them.
fn rules(lines: &[Line]) -> Vec<Rule> {
    let rule = |line: &Line| json!({"apiGroups": [line.group], "resources": [line.resource], "verbs": line.verbs});
    let rules = lines.iter().map(|line| serde_json::from_value(rule(line)).expect("a rule"));
    rules.collect()
}

/// An agent has on its hub what the hub gives it, in the namespace of its cluster.
#[test]
fn a_hub_grants_what_its_agents_do_there() {
    let work = OcmAgent::new(ocm_agent::Options::new("any", ""));
    let registration = OcmRegistration::new(ocm_registration::Options::new("any"));
    let of_fleet = array(fleet::agent_rules());
    for (dialect, given) in [
        (&FleetAgent::new("any") as &dyn Dialect, &of_fleet),
        (&work, &granted_by_ocm()),
        (&registration, &granted_by_ocm()),
    ] {
        let mut given = given.clone();
        // The agent names its own cluster and asks for nothing else.
        for rule in &mut given {
            rule["resourceNames"] = json!([]);
        }
        let given: Vec<Rule> = serde_json::from_value(json!(given)).expect("rules");
        let wanted = rules(&of_home(dialect, Within::Everywhere));
        assert_eq!(missing(&given, &wanted), [], "{}", dialect.name());
    }
}

/// What debug builds say about a step that does more than its table gives.
#[test]
fn a_write_that_a_table_lacks_is_found() {
    let web = Object::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"}}));
    let web = web.expect("an object");
    let (why, pod) = (Why::new("Test", "a test"), GroupKind::new("", "Pod"));
    let mut step = Step::new("apps", &web, Verdict::Moving);
    step.status = Some(json!({"replicas": 1}));
    step.actions.push(Action::patch(Verb::Record, &web, json!({}), why.clone()));
    assert_eq!(uncovered(Deployments.permissions(), None, &step), []);
    step.actions.push(Action::create(Verb::Create, pod.key("shop", "web-1"), json!({}), why));
    let found = [Needed { kind: pod, verb: ApiVerb::Create, is_member: false }];
    assert_eq!(uncovered(Deployments.permissions(), None, &step), found);
}
