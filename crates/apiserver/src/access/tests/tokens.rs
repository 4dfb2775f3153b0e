//! Tokens of service accounts: issued, believed, and refused.

use jiff::Timestamp;

use super::super::account::{Claims, KubernetesClaims, Named};
use super::*;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

impl World {
    fn account(&self, name: &str) {
        let account =
            json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}});
        self.test.create(ACCOUNTS, &account);
    }

    fn token_for(&self, account: &str, spec: &Value) -> (u16, Value) {
        let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "spec": spec});
        self.request("root-token", "POST", &format!("{ACCOUNTS}/{account}/token"), &request)
    }

    fn token(&self, account: &str, spec: &Value) -> String {
        let (code, answer) = self.token_for(account, spec);
        assert_eq!(code, 201, "{answer}");
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    fn is_known(&self, token: &str) -> bool {
        match self.code(token, "/healthz") {
            200 => true,
            401 => false,
            other => panic!("unexpected code {other}"),
        }
    }
}

#[test]
fn a_token_acts_as_its_account() {
    let world = World::new();
    world.account("robot");
    let (code, answer) = world.token_for("robot", &json!({"expirationSeconds": 1200}));
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-01T00:20:00Z");
    assert_eq!(answer["spec"]["audiences"], json!([super::super::ISSUER]));
    let token = answer["status"]["token"].as_str().unwrap();
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, answer) = world.request(token, "POST", path, &review);
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(user["uid"], world.test.get(&format!("{ACCOUNTS}/robot"))["metadata"]["uid"]);
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert!(id.starts_with("JTI="), "{id}");
    let subject = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    assert_eq!(world.code(token, "/api/v1/namespaces/default/pods"), 403);
    world.test.create(&format!("{RBAC}/namespaces/default/rolebindings"), &subject);
    assert_eq!(world.code(token, "/api/v1/namespaces/default/pods"), 200);
}

#[test]
fn a_token_dies_with_its_account() {
    let world = World::new();
    world.account("robot");
    let token = world.token("robot", &json!({}));
    assert!(world.is_known(&token));
    world.test.call("DELETE", &format!("{ACCOUNTS}/robot"), &Value::Null);
    assert!(!world.is_known(&token));
    // Another account of the same name is another account.
    world.account("robot");
    assert!(!world.is_known(&token));
    assert!(world.is_known(&world.token("robot", &json!({}))));
}

#[test]
fn a_token_dies_with_what_it_is_bound_to() {
    let world = World::new();
    world.account("robot");
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}});
    world.test.create(secrets, &secret);
    let bound = json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}});
    let token = world.token("robot", &bound);
    assert!(world.is_known(&token));
    world.test.call("DELETE", &format!("{secrets}/s"), &Value::Null);
    assert!(!world.is_known(&token));
    assert_eq!(world.token_for("robot", &bound).0, 404);
    world.test.create(secrets, &secret);
    assert!(!world.is_known(&token));
    let other = json!({"boundObjectRef":
        {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "another"}});
    assert_eq!(world.token_for("robot", &other).0, 409);
    let odd = json!({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "s"}});
    assert_eq!(world.token_for("robot", &odd).0, 400);
}

#[test]
fn a_token_counts_in_its_own_cluster_alone() {
    let world = World::new();
    world.furnish("east");
    world.account("robot");
    let token = world.token("robot", &json!({}));
    assert!(world.is_known(&token));
    assert_eq!(world.code(&token, "/clusters/east/healthz"), 401);
    let (_, configuration) = world.request(
        "root-token",
        "GET",
        "/clusters/east/.well-known/openid-configuration",
        &Value::Null,
    );
    let issuer = format!("{}/clusters/east", super::super::ISSUER);
    assert_eq!(configuration["issuer"], issuer);
    assert_eq!(configuration["jwks_uri"], format!("{issuer}/openid/v1/jwks"));
    let (code, keys) = world.request("root-token", "GET", "/openid/v1/jwks", &Value::Null);
    assert_eq!((code, &keys["keys"][0]["crv"]), (200, &json!("P-256")));
}

#[test]
fn a_token_is_for_its_audience() {
    let world = World::new();
    world.account("robot");
    let token = world.token("robot", &json!({"audiences": ["vault", "other"]}));
    assert!(!world.is_known(&token), "this server is not among its audiences");
    let review = |token: &str, audiences: &[&str]| {
        let body = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
            "spec": {"token": token, "audiences": audiences}});
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let (code, answer) = world.request("root-token", "POST", path, &body);
        assert_eq!(code, 201, "{answer}");
        answer["status"].clone()
    };
    let status = review(&token, &["vault", "third"]);
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
    for audiences in [&["third"][..], &[]] {
        let status = review(&token, audiences);
        assert!(status["authenticated"] != json!(true) && status["error"].is_string(), "{status}");
    }
    assert_eq!(review("ada-token", &[])["user"]["username"], "ada");
    assert!(review("ada-token", &["vault"])["authenticated"] != json!(true));
    assert!(review("nonsense", &[])["authenticated"] != json!(true));
}

#[test]
fn odd_lifetimes_and_places_are_refused() {
    let world = World::new();
    world.account("robot");
    for (seconds, code) in [(599, 422), (600, 201), (1_i64 << 32, 201), ((1_i64 << 32) + 1, 422)] {
        assert_eq!(
            world.token_for("robot", &json!({"expirationSeconds": seconds})).0,
            code,
            "{seconds}"
        );
    }
    assert_eq!(world.token_for("nobody", &json!({})).0, 404);
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "other"}, "spec": {}});
    let path = format!("{ACCOUNTS}/robot/token");
    assert_eq!(world.request("root-token", "POST", &path, &request).0, 422);
    assert_eq!(world.request("ada-token", "POST", &path, &request).0, 403);
}

/// What is done to good claims, and how it is called.
type Change = (&'static str, fn(&mut Claims));

#[test]
fn every_claim_must_hold() {
    let world = World::new();
    world.account("robot");
    let account = world.test.get(&format!("{ACCOUNTS}/robot"));
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let seconds = now.as_second();
    let uid = account["metadata"]["uid"].as_str().unwrap();
    let good = Claims {
        aud: vec![super::super::ISSUER.to_owned()],
        exp: seconds + 1,
        iat: seconds,
        iss: super::super::ISSUER.to_owned(),
        jti: "j".to_owned(),
        kubernetes: KubernetesClaims {
            namespace: "default".into(),
            serviceaccount: Named { name: "robot".into(), uid: uid.into() },
            ..KubernetesClaims::default()
        },
        nbf: seconds,
        sub: "system:serviceaccount:default:robot".to_owned(),
    };
    let signer = &world.test.server.access.signer;
    let is_known = |claims: &Claims| world.is_known(&claims.token(signer).unwrap());
    assert!(is_known(&good));
    let changes: [Change; 11] = [
        ("expired", |claims| claims.exp -= 1),
        ("not yet", |claims| claims.nbf += 61),
        ("another issuer", |claims| claims.iss.push('x')),
        ("another audience", |claims| claims.aud = vec!["x".to_owned()]),
        ("no audience", |claims| claims.aud.clear()),
        ("another subject", |claims| claims.sub = "system:serviceaccount:default:admin".to_owned()),
        ("another name", |claims| claims.kubernetes.serviceaccount.name = "default".into()),
        ("another uid", |claims| claims.kubernetes.serviceaccount.uid = "x".into()),
        ("no uid", |claims| claims.kubernetes.serviceaccount.uid = "".into()),
        ("another namespace", |claims| claims.kubernetes.namespace = "kube-system".into()),
        ("a pod that is gone", |claims| {
            claims.kubernetes.pod = Some(Named { name: "p".into(), uid: "u".into() });
        }),
    ];
    for (what, change) in changes {
        let mut claims = good.clone();
        change(&mut claims);
        assert!(!is_known(&claims), "{what}");
    }
    let stranger = Signer::generate().unwrap();
    assert!(!world.is_known(&good.token(&stranger).unwrap()), "another key");
}
