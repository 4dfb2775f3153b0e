//! What a service account gives to the pods that run as it: a token to call this server with, and
//! secrets to pull images with.

use serde_json::{Value, json};

use super::fill;
use super::kind::Kind;
use crate::column::{Column, NAME_AND_AGE};
use crate::encoding::read_entry;
use crate::resource_request::ResourceRequest;

/// Where containers look for their token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";

/// How long a token is valid: an hour, since kubelets renew it. The seven seconds tell these tokens
/// from others in audit logs.
const TOKEN_SECS: i64 = 60 * 60 + 7;

/// Gives a new pod what its account has. An account that is not there has nothing.
pub(super) fn admit_pod(request: &ResourceRequest, pod: &mut Value) {
    let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let Some(account) = account(request, name) else { return };
    if mounts_token(&account, pod) {
        let about = format!("{}{}", account["metadata"]["uid"], pod["metadata"]);
        mount_token(pod, &about);
    }
    let Some(spec) = fill::spec(pod) else { return };
    let has_secrets =
        spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if let Some(secrets) = account.get("imagePullSecrets").filter(|_| !has_secrets) {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone());
    }
}

fn account(request: &ResourceRequest, name: &str) -> Option<Value> {
    let resource = request.registry.get("", "v1", "serviceaccounts")?;
    let key = request.cluster.shelf(resource).key(request.namespace(), name);
    request.server.store.snapshot().get(&key).map(|entry| read_entry(entry))
}

/// The pod decides, then its account; by default there is a token.
fn mounts_token(account: &Value, pod: &Value) -> bool {
    let wishes =
        [&pod["spec"]["automountServiceAccountToken"], &account["automountServiceAccountToken"]];
    wishes.into_iter().find_map(Value::as_bool).unwrap_or(true)
}

/// Mounts the token into every container that has nothing in its place.
fn mount_token(pod: &mut Value, about: &str) {
    let Some(spec) = fill::spec(pod) else { return };
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let mut names = volumes.filter_map(|volume| volume["name"].as_str());
    let existing = names.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let name = existing.clone().unwrap_or_else(|| format!("{VOLUME}{}", suffix(about)));
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            fill::absent(container, "volumeMounts", || json!([]));
            let Some(Value::Array(mounts)) = container.get_mut("volumeMounts") else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != MOUNT_PATH) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
                is_needed = true;
            }
        }
    }
    if is_needed && existing.is_none() {
        fill::absent(spec, "volumes", || json!([]));
        if let Some(Value::Array(volumes)) = spec.get_mut("volumes") {
            volumes.push(volume(&name));
        }
    }
}

fn volume(name: &str) -> Value {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]);
    json!({"name": name, "projected": {"sources": sources, "defaultMode": 420}})
}

/// Five letters that follow from the pod: no other volume of it begins like this one, so chance
/// has nothing to decide.
fn suffix(about: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = about.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let letters = std::iter::from_fn(|| {
        let letter = ALPHABET[usize::try_from(hash % 27).expect("less than 27")];
        hash /= 27;
        Some(char::from(letter))
    });
    letters.take(5).collect()
}

pub(super) struct ServiceAccount;

impl Kind for ServiceAccount {
    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    const PODS: &str = "/api/v1/namespaces/default/pods";
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

    fn server() -> TestServer {
        let server = TestServer::new();
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
        server.create(ACCOUNTS, &json!({"metadata": {"name": "default"}}));
        server.create(
            ACCOUNTS,
            &json!({"metadata": {"name": "shy"}, "automountServiceAccountToken": false,
                "imagePullSecrets": [{"name": "registry"}]}),
        );
        server
    }

    fn pod(name: &str, more: &Value) -> Value {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}],
            "initContainers": [{"name": "i", "image": "i",
                "volumeMounts": [{"name": "own", "mountPath": MOUNT_PATH}]}],
            "volumes": [{"name": "own", "emptyDir": {}}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn a_pod_gets_a_token_of_its_account() {
        let made = server().create(PODS, &pod("p", &json!({})));
        let spec = &made["spec"];
        let volume = &spec["volumes"][1];
        let name = volume["name"].as_str().unwrap();
        assert!(name.starts_with(VOLUME) && name.len() == VOLUME.len() + 5, "{name}");
        let sources = volume["projected"]["sources"].as_array().unwrap();
        assert_eq!(
            sources[0],
            json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}})
        );
        assert_eq!(
            spec["containers"][0]["volumeMounts"],
            json!([{"name": name, "readOnly": true, "mountPath": MOUNT_PATH}])
        );
        assert_eq!(spec["initContainers"][0]["volumeMounts"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn pods_and_accounts_can_opt_out() {
        let server = server();
        let cases = [
            ("a", json!({"serviceAccountName": "shy"}), false),
            ("b", json!({"serviceAccountName": "shy", "automountServiceAccountToken": true}), true),
            ("c", json!({"automountServiceAccountToken": false}), false),
            ("d", json!({"serviceAccountName": "absent"}), false),
        ];
        for (name, more, is_mounted) in cases {
            let made = server.create(PODS, &pod(name, &more));
            let mounts = &made["spec"]["containers"][0]["volumeMounts"];
            assert_eq!(mounts.is_array(), is_mounted, "{made}");
            let secrets = &made["spec"]["imagePullSecrets"];
            let has_secrets = more["serviceAccountName"] == "shy";
            assert_eq!(secrets == &json!([{"name": "registry"}]), has_secrets, "{made}");
        }
    }
}
