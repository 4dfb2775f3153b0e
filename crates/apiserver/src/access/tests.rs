//! Access as a whole: through requests, as clients meet it.

mod granting;
mod naive;
mod responses;
mod tokens;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Access, Authorization, Peer, Signer, TokenFile};
use crate::audit::Auditor;
use crate::clusters::bootstrap::bootstrap;
use crate::server::Cluster;
use crate::testing::{Answered, TestServer};

/// A furnished server, and people with tokens: `ada`, `bob` in the group `dev`, and `root`.
pub(crate) struct World {
    pub(crate) test: TestServer,
}

const TOKENS: &str = "ada-token,ada,1\nbob-token,bob,2,dev\nroot-token,root,3,system:masters\n";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

impl World {
    pub(crate) fn new() -> Self {
        Self::under(Authorization::Rbac, None)
    }

    pub(crate) fn under(authorization: Authorization, audit: Option<Arc<Auditor>>) -> Self {
        let tokens = TokenFile::parse(TOKENS).unwrap();
        let mut access = Access::new(authorization, tokens, Signer::generate().unwrap());
        access.audit = audit;
        access.authority = "-----BEGIN CERTIFICATE-----\n".to_owned();
        let world = Self { test: TestServer::new().with_access(access) };
        world.furnish("");
        world
    }

    /// Adds a logical cluster, if it is another than the first.
    pub(crate) fn furnish(&self, name: &str) -> Arc<Cluster> {
        let cluster = self.test.server.add_cluster(name);
        self.test.run(bootstrap(&self.test.server, &cluster)).unwrap();
        cluster
    }

    /// A request with a token (none if it is empty) from somewhere on the network.
    pub(crate) fn request(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let answered = self.send(token, method, path, &[], body);
        (answered.code, answered.json())
    }

    pub(crate) fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answered {
        let bearer = format!("Bearer {token}");
        let mut all = vec![("content-type", "application/json")];
        if !token.is_empty() {
            all.push(("authorization", &bearer));
        }
        all.extend(headers);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let peer = Peer { address: "192.0.2.7".to_owned(), ..Peer::default() };
        self.test.send_as(&peer, method, path, &all, body)
    }

    /// The code alone of a read.
    pub(crate) fn code(&self, token: &str, path: &str) -> u16 {
        self.request(token, "GET", path, &Value::Null).0
    }

    /// A cluster role with rules in the table's own form.
    fn cluster_role(&self, name: &str, rules: &[&str]) {
        self.test.create(&format!("{RBAC}/clusterroles"), &role("ClusterRole", name, rules));
    }

    /// Binds a cluster role to a user: everywhere, or in a namespace.
    fn bind(&self, role: &str, user: &str, namespace: &str) {
        let (kind, path) = match namespace {
            "" => ("ClusterRoleBinding", format!("{RBAC}/clusterrolebindings")),
            name => ("RoleBinding", format!("{RBAC}/namespaces/{name}/rolebindings")),
        };
        self.test.create(&path, &binding(kind, &format!("{role}-{user}"), role, user));
    }
}

fn role(kind: &str, name: &str, rules: &[&str]) -> Value {
    let rules: Vec<_> = rules.iter().map(|text| super::rule::tests::rule(text)).collect();
    json!({"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, name: &str, role: &str, user: &str) -> Value {
    json!({"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})
}
