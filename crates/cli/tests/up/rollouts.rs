//! What people do to Deployments with stock kubectl: the same scenarios in both homes.

mod deletion;
mod failures;
mod history;
mod life;
mod min_ready;
mod scale;

use serde_json::Value;

use crate::access::Access;

/// Every scenario as two tests, in a namespace of its own.
macro_rules! in_both_homes {
    ($($scenario:ident),* $(,)?) => {
        mod embedded {
            $(#[test]
            fn $scenario() {
                super::$scenario(&crate::home::embedded().namespace(stringify!($scenario)));
            })*
        }

        mod real {
            $(#[test]
            fn $scenario() {
                super::$scenario(&crate::home::real().namespace(stringify!($scenario)));
            })*
        }
    };
}
use in_both_homes;

/// Creates the Deployment `web` and waits until all of it is there.
fn create(site: &Access, replicas: u32) {
    site.kubectl(&format!("create deployment web --image=example/web:1 --replicas={replicas}"));
    finish(site);
}

fn finish(site: &Access) {
    let said = site.kubectl("rollout status deployment web --timeout=120s");
    assert!(said.contains("successfully rolled out"), "{said}");
}

fn set_image(site: &Access, tag: &str) {
    site.kubectl(&format!("set image deployment web web=example/web:{tag}"));
}

/// The images of pods that are not on their way out.
fn images(site: &Access) -> Vec<String> {
    let pods = site.get("pods -l app=web");
    let alive = items(&pods).filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    alive.map(|pod| text(&pod["spec"]["containers"][0]["image"])).collect()
}

/// Waits until these many pods are left, all with this image.
fn only(site: &Access, replicas: usize, tag: &str) {
    let image = format!("example/web:{tag}");
    site.until("pods -l app=web", |pods| {
        let mut found = items(pods);
        items(pods).count() == replicas
            && found.all(|pod| pod["spec"]["containers"][0]["image"] == image.as_str())
    });
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().unwrap().iter()
}

fn uids(site: &Access, what: &str) -> Vec<String> {
    let list = site.get(what);
    let mut uids: Vec<String> = items(&list).map(|item| text(&item["metadata"]["uid"])).collect();
    uids.sort();
    uids
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What the sets ask for, smallest first.
fn sizes(sets: &Value) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        items(sets).map(|set| set["spec"]["replicas"].as_u64().unwrap()).collect();
    sizes.sort_unstable();
    sizes
}

/// A condition as `Status/Reason`; empty if there is none.
fn condition(object: &Value, kind: &str) -> String {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| {
        format!("{}/{}", text(&found["status"]), text(&found["reason"]))
    })
}

/// The revisions that kubectl lists.
fn revisions(site: &Access) -> Vec<u32> {
    let said = site.kubectl("rollout history deployment web");
    said.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}
