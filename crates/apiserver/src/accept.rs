//! Content negotiation: the form and encoding of a response, from the `Accept` header.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::query::Query;
use crate::status::{ApiResult, Status};

/// The form of objects in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Object,
    Table,
    /// `PartialObjectMetadata`, or its list.
    Metadata,
    /// The aggregated discovery document.
    GroupDiscovery,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Json,
    Yaml,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    pub form: Form,
    pub encoding: Encoding,
    pub pretty: bool,
}

struct Clause<'h> {
    media: &'h str,
    quality: f32,
    parameters: Vec<(&'h str, &'h str)>,
}

impl Accept {
    /// The best clause that can be served. `discovery`: whether the path is one of those that
    /// have an aggregated form, and no others.
    pub fn read(header: &str, discovery: bool) -> ApiResult<Self> {
        let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(read_clause).collect();
        if clauses.is_empty() {
            return Ok(Self::default());
        }
        // Stable: clauses of one quality stay in the client's order.
        clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
        let best = clauses.iter().find_map(|clause| serve(clause, discovery));
        best.ok_or_else(Status::not_acceptable)
    }
}

fn read_clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().filter(|media| !media.is_empty())?;
    let mut clause = Clause { media, quality: 1.0, parameters: Vec::new() };
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "q" => clause.quality = value.trim().parse().unwrap_or(1.0),
            key => clause.parameters.push((key, value.trim().trim_matches('"'))),
        }
    }
    Some(clause)
}

fn serve(clause: &Clause<'_>, discovery: bool) -> Option<Accept> {
    let encoding = match clause.media {
        "application/json" | "application/*" | "*/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let get = |key: &str| clause.parameters.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
    let form = match (get("as"), get("g"), get("v")) {
        (None, _, _) => Form::Object,
        (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) if discovery => {
            Form::GroupDiscovery
        }
        (Some(shown), Some("meta.k8s.io"), Some("v1" | "v1beta1")) if !discovery => match shown {
            "Table" => Form::Table,
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Form::Metadata,
            _ => return None,
        },
        _ => return None,
    };
    Some(Accept { form, encoding, pretty: get("pretty").is_some_and(|value| value != "0") })
}

/// People at a terminal or in a browser get lines they can read.
pub(crate) fn wants_pretty(query: &Query, headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let by_people = ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name));
    query.optional_flag("pretty").unwrap_or(by_people)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(header: &str) -> Option<Form> {
        Accept::read(header, false).ok().map(|accept| accept.form)
    }

    #[test]
    fn the_best_clause_is_served() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(kubectl), Some(Form::Table));
        assert_eq!(form(""), Some(Form::Object));
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*"), Some(Form::Object));
        assert_eq!(form("application/json;as=Nothing;g=meta.k8s.io;v=v1"), None);
        assert_eq!(form("text/html"), None);
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(form(metadata), Some(Form::Metadata));
        let yaml = Accept::read("application/json;q=0.5,application/yaml", false).unwrap();
        assert_eq!(yaml.encoding, Encoding::Yaml);
    }

    #[test]
    fn discovery_has_its_own_form() {
        let header =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(Accept::read(header, true).unwrap().form, Form::GroupDiscovery);
        assert_eq!(form(header), Some(Form::Object));
    }
}
