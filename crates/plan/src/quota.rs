//! Resource quotas: what an object uses of its namespace's quotas, whether they have room for it,
//! and what all objects of a namespace use together. Whoever calls reads and writes the quotas.

mod amount;
mod names;
mod pods;
mod scope;
mod usage;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use self::amount::Amount;

pub use self::names::resource_of;
pub use self::usage::releases;

/// Amounts by the names that quotas have for them: `pods`, `requests.cpu`, `count/jobs.batch`.
type Usage = BTreeMap<SmolStr, Amount>;

/// A write that quotas have a say in.
#[derive(Clone, Copy, Debug)]
pub struct QuotaRequest<'v> {
    /// `pods`, `jobs.batch`.
    pub resource: &'v str,
    pub subresource: &'v str,
    pub object: &'v Value,
    /// The object that an update changes; none for a create.
    pub old: Option<&'v Value>,
}

/// The new `status.used` of each quota that a write is charged to, with the quota's index. The
/// error says why the write is refused.
pub fn charge(
    quotas: &[Value],
    request: &QuotaRequest<'_>,
    now: Timestamp,
) -> Result<Vec<(usize, Value)>, String> {
    if !usage::is_charged(request) {
        return Ok(Vec::new());
    }
    let mut charged = Vec::new();
    for (index, quota) in quotas.iter().enumerate() {
        charged.extend(charge_one(quota, request, now)?.map(|used| (index, used)));
    }
    Ok(charged)
}

fn charge_one(
    quota: &Value,
    request: &QuotaRequest<'_>,
    now: Timestamp,
) -> Result<Option<Value>, String> {
    let hard = read(&quota["status"]["hard"]);
    let restricted: Vec<&SmolStr> =
        hard.keys().filter(|name| resource_of(name) == Some(request.resource)).collect();
    if restricted.is_empty() || !scope::selects(quota, request.resource, request.object) {
        return Ok(None);
    }
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    if request.resource == "pods"
        && let Some(missing) = pods::missing(request.object, &restricted)
    {
        return Err(format!("failed quota: {name}: must specify {missing}"));
    }
    let mut used = read(&quota["status"]["used"]);
    if restricted.iter().any(|resource| !used.contains_key(*resource)) {
        let unknown: Vec<&str> = restricted.iter().map(|resource| resource.as_str()).collect();
        return Err(format!("status unknown for quota: {name}, resources: {}", unknown.join(",")));
    }
    let mut requested = usage::of(request.resource, request.object, now);
    if let Some(old) = request.old.filter(|old| scope::selects(quota, request.resource, old)) {
        let before = usage::of(request.resource, old, now);
        for (resource, amount) in &mut requested {
            *amount = amount.minus(before.get(resource).copied().unwrap_or_default());
        }
    }
    requested.retain(|resource, amount| *amount > Amount::default() && hard.contains_key(resource));
    if requested.is_empty() {
        return Ok(None);
    }
    if let Some(why) =
        exceeded(&hard, &used, &requested).filter(|_| request.subresource != "status")
    {
        return Err(format!("exceeded quota: {name}, {why}"));
    }
    add(&mut used, &requested);
    Ok(Some(written(&used)))
}

/// What does not fit, if anything: what is requested of it, what is used and what the limit is.
fn exceeded(hard: &Usage, used: &Usage, requested: &Usage) -> Option<String> {
    let over: Vec<&SmolStr> = requested
        .iter()
        .filter(|(name, amount)| {
            let sum = used.get(*name).copied().unwrap_or_default().plus(**amount);
            hard.get(*name).is_some_and(|most| sum > *most)
        })
        .map(|(name, _)| name)
        .collect();
    if over.is_empty() {
        return None;
    }
    let shown = |amounts: &Usage| {
        let pairs = over.iter().filter_map(|name| {
            amounts.get(*name).map(|amount| format!("{name}={}", amount.text()))
        });
        pairs.collect::<Vec<_>>().join(",")
    };
    let (requested, used, hard) = (shown(requested), shown(used), shown(hard));
    Some(format!("requested: {requested}, used: {used}, limited: {hard}"))
}

/// The status of a quota, from all objects of its namespace: `content` gives those of a resource.
/// Names that nothing is counted under have a limit and no usage.
pub fn status(quota: &Value, content: impl Fn(&str) -> Vec<Value>, now: Timestamp) -> Value {
    let hard = read(&quota["spec"]["hard"]);
    let mut by_resource: BTreeMap<&str, Vec<&SmolStr>> = BTreeMap::new();
    for name in hard.keys() {
        if let Some(resource) = resource_of(name) {
            by_resource.entry(resource).or_default().push(name);
        }
    }
    let mut used = Usage::new();
    for (resource, names) in by_resource {
        used.extend(names.iter().map(|name| ((*name).clone(), Amount::default())));
        let counted = content(resource);
        for object in counted.iter().filter(|object| scope::selects(quota, resource, object)) {
            let mut amounts = usage::of(resource, object, now);
            amounts.retain(|name, _| names.contains(&name));
            add(&mut used, &amounts);
        }
    }
    let hard = quota["spec"].get("hard").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let status = [("hard".to_owned(), hard), ("used".to_owned(), written(&used))];
    Value::Object(status.into_iter().collect())
}

/// Whether the status of a quota says what its spec asks for; its usage may still change.
pub fn is_settled(quota: &Value) -> bool {
    let limits = |part: &str| read(&quota[part]["hard"]);
    let used = read(&quota["status"]["used"]);
    let hard = limits("spec");
    hard == limits("status")
        && hard.keys().all(|name| resource_of(name).is_none() || used.contains_key(name))
        && quota["status"]["used"].is_object()
}

fn add(sum: &mut Usage, more: &Usage) {
    for (name, amount) in more {
        let total = sum.entry(name.clone()).or_default();
        *total = total.plus(*amount);
    }
}

fn read(amounts: &Value) -> Usage {
    let fields = amounts.as_object().into_iter().flat_map(Map::iter);
    fields.filter_map(|(name, amount)| Some((SmolStr::new(name), Amount::read(amount)?))).collect()
}

fn written(amounts: &Usage) -> Value {
    let fields = amounts.iter().map(|(name, amount)| (name.to_string(), amount.text().into()));
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests;
