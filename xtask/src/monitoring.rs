//! Grafana's dashboards and Prometheus' alerts of Convoy, as files of the Helm chart. Tests compare
//! every expression with the metrics that the code registers, and every alert with its section of
//! the guide. Tests of the command line ask a real Prometheus (`crates/cli/tests/up/monitoring.rs`).

mod alerts;
mod dashboards;
#[cfg(test)]
mod expression;
#[cfg(test)]
mod names;
mod panel;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The files of the chart that this module generates, by their path in the repository.
pub(crate) fn files() -> BTreeMap<PathBuf, String> {
    const FOLDER: &str = "deploy/chart/monitoring";
    let alerts = (PathBuf::from(format!("{FOLDER}/alerts.yaml")), alerts::rules());
    let dashboards = dashboards::all().into_iter().map(|dashboard| {
        (PathBuf::from(format!("{FOLDER}/dashboards/{}.json", dashboard.name)), dashboard.json())
    });
    dashboards.chain([alerts]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kubernetes::root;

    fn expressions() -> Vec<(String, String)> {
        let mut all = Vec::new();
        for dashboard in dashboards::all() {
            for panel in dashboard.panels() {
                let title = format!("{}: {}", dashboard.name, panel.title);
                all.extend(panel.queries.iter().map(|query| (title.clone(), query.expr.clone())));
            }
        }
        let alerts = alerts::ALL.iter().map(|alert| (alert.name.to_owned(), alert.expr.to_owned()));
        all.into_iter().chain(alerts).collect()
    }

    #[test]
    fn every_expression_names_metrics_that_the_code_registers() {
        let registered = names::registered();
        assert!(registered.len() > 30, "{registered:?}");
        for (place, expr) in expressions() {
            let named = expression::metrics(&expr);
            assert!(!named.is_empty(), "{place}: {expr} names no metric");
            for name in named {
                assert!(registered.contains(&name), "{place}: nothing registers {name}");
            }
        }
    }

    /// A metric that is new belongs on the page, and usually on a dashboard.
    #[test]
    fn the_page_of_metrics_lists_what_the_code_registers() {
        let page = fs::read_to_string(root().join("docs/reference/metrics.md")).expect("readable");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let documented: Vec<&str> = rows.collect();
        let series = names::registered();
        for name in &documented {
            let is_served = series.contains(*name) || series.contains(&format!("{name}_count"));
            assert!(is_served, "docs/reference/metrics.md: nothing registers {name}");
        }
        for name in &series {
            let parts = ["_bucket", "_sum", "_count"];
            let base = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            let is_there = documented.contains(&base) || documented.contains(&name.as_str());
            assert!(is_there, "docs/reference/metrics.md does not list {name}");
        }
    }

    #[test]
    fn every_alert_has_a_section_that_says_what_to_do() {
        let (page, _) = alerts::RUNBOOK.split_once('#').expect("a page and an anchor");
        let guide = fs::read_to_string(root().join(page)).expect("the guide is there");
        let sections: Vec<&str> =
            guide.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        let alerts: Vec<&str> = alerts::ALL.iter().map(|alert| alert.name).collect();
        assert_eq!(sections, alerts);
        let cases =
            fs::read_to_string(root().join("crates/cli/tests/up/monitoring/alerts.test.yaml"));
        let cases = cases.expect("the cases are there");
        for name in alerts {
            let fires = format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\",severity");
            assert!(cases.contains(&fires), "no case shows that {name} fires");
        }
    }

    #[test]
    fn dashboards_have_a_title_for_every_panel_and_identifiers_of_their_own() {
        let all = dashboards::all();
        for dashboard in &all {
            let mut titles: Vec<&str> = dashboard.panels().map(|panel| panel.title).collect();
            let count = titles.len();
            titles.sort_unstable();
            titles.dedup();
            assert_eq!(titles.len(), count, "{} has a title twice", dashboard.name);
        }
        let names: std::collections::BTreeSet<&str> = all.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), 6);
    }
}
