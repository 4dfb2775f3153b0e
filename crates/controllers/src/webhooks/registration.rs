//! The webhook configurations that an API server should have, the conversions that definitions
//! should name, and their corrections.

use convoy_plan::Dialect;
use convoy_plan::admission::{Webhook, configurations};
use convoy_plan::conversion::Conversion;
use serde_json::{Value, json};

/// How an API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    /// Through a service of the cluster.
    Service { namespace: String, name: String },
    /// By a name or an address, from outside the cluster.
    Host { host: String, port: u16 },
}

impl WebhookAddress {
    /// The names that the certificate has to cover.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                ["", ".cluster.local"].map(|end| format!("{name}.{namespace}.svc{end}")).to_vec()
            }
            Self::Host { host, .. } => vec![host.clone()],
        }
    }

    fn client(&self, path: &str, bundle: &str) -> Value {
        match self {
            Self::Service { namespace, name } => json!({"caBundle": bundle,
                "service": {"namespace": namespace, "name": name, "path": path, "port": 443}}),
            Self::Host { host, port } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                json!({"caBundle": bundle, "url": format!("https://{host}:{port}{path}")})
            }
        }
    }
}

/// The configurations that register the webhooks of `dialects`.
pub(crate) fn wanted(
    dialects: &[&'static dyn Dialect],
    address: &WebhookAddress,
    bundle: &str,
) -> Vec<Value> {
    let webhooks: Vec<Webhook> =
        dialects.iter().flat_map(|dialect| dialect.webhooks()).cloned().collect();
    configurations(&webhooks, |webhook| address.client(webhook.path, bundle))
}

/// The path of the collection of a configuration.
pub(crate) fn collection(configuration: &Value) -> String {
    let kind = configuration["kind"].as_str().unwrap_or_default().to_lowercase();
    format!("/apis/admissionregistration.k8s.io/v1/{kind}s")
}

/// The stored configuration with the wanted fields; `None` if it has them already. Additions of
/// others, such as selectors or further webhooks, stay.
pub(crate) fn corrected(stored: &Value, wanted: &Value) -> Option<Value> {
    let list = |object: &Value| object["webhooks"].as_array().cloned().unwrap_or_default();
    let mut webhooks = list(stored);
    let mut changed = false;
    for webhook in list(wanted) {
        let known = webhooks.iter_mut().find(|known| known["name"] == webhook["name"]);
        match known {
            Some(known) if contains(known, &webhook) => {}
            Some(known) => {
                changed = true;
                for (field, value) in webhook.as_object().into_iter().flatten() {
                    known[field.as_str()] = value.clone();
                }
            }
            None => {
                changed = true;
                webhooks.push(webhook);
            }
        }
    }
    changed.then(|| {
        let mut corrected = stored.clone();
        corrected["webhooks"] = Value::Array(webhooks);
        corrected
    })
}

/// The collection of definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The conversions of `dialects`.
pub(crate) fn conversions(
    dialects: &[&'static dyn Dialect],
) -> impl Iterator<Item = &'static Conversion> {
    dialects.iter().flat_map(|dialect| dialect.conversions())
}

/// The stored definition with a conversion by webhook; `None` if it has that already, or has no
/// versions to convert.
pub(crate) fn converting(
    stored: &Value,
    conversion: &Conversion,
    address: &WebhookAddress,
    bundle: &str,
) -> Option<Value> {
    let wanted = conversion.strategy(&address.client(conversion.path, bundle));
    let has = stored.pointer("/spec/conversion").is_some_and(|known| contains(known, &wanted));
    (conversion.concerns(stored) && !has).then(|| {
        let mut corrected = stored.clone();
        corrected["spec"]["conversion"] = wanted;
        corrected
    })
}

/// Whether `stored` has all fields of `wanted`; servers add defaults.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(field, value)| stored.get(field).is_some_and(|stored| contains(stored, value))),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(stored, wanted)| contains(stored, wanted))
        }
        _ => stored == wanted,
    }
}

#[cfg(test)]
mod tests {
    use convoy_plan::dialect::karpenter::Karpenter;
    use convoy_plan::dialect::skyhook::Skyhook;

    use super::*;

    fn address() -> WebhookAddress {
        WebhookAddress::Service {
            namespace: "skyhook".to_owned(),
            name: "convoy-webhook".to_owned(),
        }
    }

    fn of_skyhook(bundle: &str) -> Vec<Value> {
        const SKYHOOK: &Skyhook = &Skyhook::new();
        wanted(&[SKYHOOK], &address(), bundle)
    }

    #[test]
    fn an_address_has_names_and_a_client_config() {
        assert_eq!(
            address().names(),
            ["convoy-webhook.skyhook.svc", "convoy-webhook.skyhook.svc.cluster.local"]
        );
        let mutating = &of_skyhook("Yg==")[0];
        assert_eq!(
            collection(mutating),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        );
        let client = &mutating["webhooks"][0]["clientConfig"];
        assert_eq!(client["service"]["port"], 443);
        let host = WebhookAddress::Host { host: "::1".to_owned(), port: 9443 };
        let webhook = &Skyhook::new().webhooks()[0];
        assert_eq!(
            host.client(webhook.path, "")["url"],
            "https://[::1]:9443/mutate-skyhook-nvidia-com-v1alpha1-skyhook"
        );
    }

    #[test]
    fn changed_fields_are_corrected_and_additions_stay() {
        let wanted = &of_skyhook("Yg==")[1];
        let mut stored = wanted.clone();
        stored["metadata"]["resourceVersion"] = json!("7");
        stored["webhooks"][0]["objectSelector"] = json!({"matchLabels": {"a": "b"}});
        stored["webhooks"].as_array_mut().unwrap().push(json!({"name": "other.example.com"}));
        assert_eq!(corrected(&stored, wanted), None);

        let mut changed = stored.clone();
        changed["webhooks"][0]["clientConfig"]["caBundle"] = json!("");
        changed["webhooks"][1]["failurePolicy"] = json!("Ignore");
        assert_eq!(corrected(&changed, wanted), Some(stored.clone()));

        let newer = &of_skyhook("Yw==")[1];
        let corrected = corrected(&stored, newer).unwrap();
        assert_eq!(corrected["metadata"]["resourceVersion"], "7");
        for webhook in 0..2 {
            assert_eq!(corrected["webhooks"][webhook]["clientConfig"]["caBundle"], "Yw==");
        }
        assert_eq!(corrected["webhooks"][2]["name"], "other.example.com");
    }

    #[test]
    fn a_definition_names_the_webhook_that_converts() {
        let conversion = conversions(&[&Karpenter]).next().unwrap();
        let mut stored = json!({"metadata": {"resourceVersion": "7"}, "spec": {
            "conversion": {"strategy": "None"},
            "versions": [{"name": "v1"}, {"name": "v1beta1"}]}});
        let corrected = converting(&stored, conversion, &address(), "Yg==").unwrap();
        assert_eq!(corrected["metadata"]["resourceVersion"], "7");
        let found = &corrected["spec"]["conversion"];
        assert_eq!(found["strategy"], "Webhook");
        let client = &found["webhook"]["clientConfig"];
        assert_eq!(client["service"]["path"], "/convert-karpenter-sh-nodepool");
        assert_eq!(converting(&corrected, conversion, &address(), "Yg=="), None);
        let newer = converting(&corrected, conversion, &address(), "Yw==").unwrap();
        assert_eq!(newer["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"], "Yw==");
        stored["spec"]["versions"] = json!([{"name": "v1"}]);
        assert_eq!(converting(&stored, conversion, &address(), "Yg=="), None);
    }
}
