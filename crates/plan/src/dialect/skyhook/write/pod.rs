//! The bodies of package pods: exactly what the agent and other tools expect to find.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use convoy_api::kinds::POD;
use convoy_api::skyhook::{Interrupt, Stage};
use convoy_api::{Object, ObjectKey};
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::decide::interrupt;
use crate::dialect::skyhook::names::{
    INTERRUPT, NAME, PACKAGE, UNSCHEDULABLE, metadata_config_map, package_config_map, safe_name,
};
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::PackageTag;
use crate::dialect::skyhook::read::state::stage_word;

const ROOT: &str = "/root";
const CONFIG_VOLUME_PATH: &str = "/skyhook-package/configmaps";
const METADATA_VOLUME_PATH: &str = "/skyhook-package/node-metadata";

/// How long a package's part of a container name may be.
const PACKAGE_NAME_MAX: usize = 43;

/// The environment that the agent gets from us; it changes with every generation.
pub(crate) const AGENT_ENVIRONMENT: [&str; 4] =
    ["SKYHOOK_LOG_DIR", "SKYHOOK_ROOT_DIR", "COPY_RESOLV", "SKYHOOK_RESOURCE_ID"];

/// Who a pod is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodBuilder<'p> {
    pub(crate) hook: &'p Hook<'p>,
    pub(crate) options: &'p Options,
    pub(crate) node: &'p Object,
}

impl PodBuilder<'_> {
    /// The pod of one stage of one package, and its key.
    pub(crate) fn stage_pod(&self, package: &Package<'_>, stage: Stage) -> (ObjectKey, Value) {
        let word = stage_word(stage);
        let parts = [self.hook.name(), package.name.as_str(), &package.version, word];
        let name = safe_name(63, &[parts[0], parts[1], parts[2], parts[3], self.node.name()]);
        let mut spec = self.frame(self.init_containers(package, stage), self.volumes(package));
        if let Some(secs) = package.grace_secs {
            spec.insert("terminationGracePeriodSeconds".to_owned(), json!(secs));
        }
        self.pod(&name, package, stage, spec)
    }

    /// The pod that disturbs a node on behalf of one or several packages.
    pub(crate) fn interrupt_pod(
        &self,
        package: &Package<'_>,
        interrupt: &Interrupt,
    ) -> (ObjectKey, Value) {
        let word = interrupt::word(interrupt.kind);
        let name = safe_name(63, &[self.hook.name(), "interrupt", word, self.node.name()]);
        let mut order = json!({"type": interrupt::agent_word(interrupt.kind)});
        if let Some(services) = interrupt.services.as_ref().filter(|list| !list.is_empty()) {
            order["services"] = json!(services);
        }
        let amount = json!({"cpu": "500m", "memory": "64Mi"});
        let container = json!({
            "name": "interrupt",
            "image": self.agent_image(package),
            "imagePullPolicy": "Always",
            "args": ["interrupt", ROOT, self.copy_dir(package),
                BASE64_STANDARD.encode(order.to_string())],
            "env": self.agent_environment(package),
            "securityContext": {"privileged": true},
            "volumeMounts": self.mounts(package, false),
            "resources": {"requests": amount, "limits": amount},
        });
        let spec = self.frame(vec![container], self.volumes(&without_config(package)));
        let (key, mut pod) = self.pod(&name, package, Stage::Interrupt, spec);
        pod["metadata"]["labels"][INTERRUPT] = json!("True");
        (key, pod)
    }

    fn pod(
        &self,
        name: &str,
        package: &Package<'_>,
        stage: Stage,
        spec: Map<String, Value>,
    ) -> (ObjectKey, Value) {
        let tag = PackageTag {
            name: package.name.clone(),
            version: package.version.clone(),
            skyhook: self.hook.name().to_string(),
            stage,
            image: package.image.clone(),
            container_sha: package.container_sha.clone(),
            invalid: false,
        };
        let tag = serde_json::to_string(&tag).expect("strings always serialise");
        let key = self.hook.object.key().sibling(&POD, &self.options.namespace, name);
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.options.namespace,
                "labels": {
                    NAME: self.hook.name(),
                    PACKAGE: format!("{}-{}", package.name, package.version),
                },
                "annotations": {PACKAGE: tag},
                "ownerReferences": [owner(self.hook.object)],
            },
        });
        pod["spec"] = Value::Object(spec); // put in, because the macro would copy it
        (key, pod)
    }

    /// What all package pods have in common.
    fn frame(&self, init_containers: Vec<Value>, volumes: Vec<Value>) -> Map<String, Value> {
        let amount = json!({"cpu": "100m", "memory": "20Mi"});
        let mut spec = Map::new();
        let mut put = |field: &str, value: Value| spec.insert(field.to_owned(), value);
        put("nodeName", json!(self.node.name()));
        put("restartPolicy", json!("OnFailure"));
        put("hostPID", json!(true));
        put("hostNetwork", json!(true));
        put("tolerations", self.tolerations());
        if let Some(secret) = &self.options.image_pull_secret {
            put("imagePullSecrets", json!([{"name": secret}]));
        }
        put("volumes", Value::Array(volumes));
        put("initContainers", Value::Array(init_containers));
        let pause = json!({
            "name": "pause",
            "image": self.options.pause_image,
            "resources": {"requests": amount, "limits": amount},
        });
        put("containers", json!([pause]));
        spec
    }

    fn tolerations(&self) -> Value {
        let taint = &self.options.runtime_taint;
        let mut list = vec![
            json!({"key": UNSCHEDULABLE, "operator": "Exists"}),
            json!({"key": taint.key, "operator": "Equal", "value": taint.value,
                "effect": taint.effect}),
        ];
        list.extend(self.hook.additional_tolerations().iter().cloned());
        Value::Array(list)
    }

    fn volumes(&self, package: &Package<'_>) -> Vec<Value> {
        let (skyhook, node) = (self.hook.name(), self.node.name());
        let mut volumes = vec![
            json!({"name": "root-mount", "hostPath": {"path": "/"}}),
            json!({"name": safe_name(63, &["metadata", node]),
                "configMap": {"name": metadata_config_map(skyhook, node)}}),
        ];
        if !package.config.is_empty() {
            let name = package_config_map(skyhook, &package.name, &package.version);
            volumes.push(json!({"name": package.name, "configMap": {"name": name}}));
        }
        volumes
    }

    fn mounts(&self, package: &Package<'_>, with_config: bool) -> Value {
        let mut mounts = vec![
            json!({"name": "root-mount", "mountPath": ROOT,
                "mountPropagation": "HostToContainer"}),
            json!({"name": safe_name(63, &["metadata", self.node.name()]),
                "mountPath": METADATA_VOLUME_PATH}),
        ];
        if with_config && !package.config.is_empty() {
            mounts.push(json!({"name": package.name, "mountPath": CONFIG_VOLUME_PATH}));
        }
        Value::Array(mounts)
    }

    /// Copy the package, run the stage, check the stage.
    fn init_containers(&self, package: &Package<'_>, stage: Stage) -> Vec<Value> {
        let word = stage_word(stage);
        let short: String = package.name.chars().take(PACKAGE_NAME_MAX).collect();
        let copy_dir = self.copy_dir(package);
        let copy = "mkdir -p /root/${SKYHOOK_DIR} && cp -r /skyhook-package/* /root/${SKYHOOK_DIR}";
        let container = |name: String, image: String| {
            let mut container = json!({
                "name": name,
                "image": image,
                "imagePullPolicy": "Always",
                "securityContext": {"privileged": true},
                "volumeMounts": self.mounts(package, true),
            });
            if let Some(resources) = resources(package) {
                container["resources"] = resources;
            }
            container
        };
        let mut init = container(format!("{short}-init"), package_image(package));
        init["command"] = json!(["/bin/sh"]);
        init["args"] = json!(["-c", copy]);
        init["env"] = json!([{"name": "SKYHOOK_DIR", "value": copy_dir}]);
        let agent = |name: String, argument: String| {
            let mut agent = container(name, self.agent_image(package));
            agent["args"] = json!([argument, ROOT, copy_dir]);
            let mut env: Vec<Value> = package.env.into_iter().flatten().cloned().collect();
            env.extend(self.agent_environment(package));
            agent["env"] = Value::Array(env);
            agent
        };
        let run = agent(format!("{short}-{word}"), word.to_owned());
        let check = agent(format!("{short}-{word}check"), format!("{word}-check"));
        vec![init, run, check]
    }

    fn agent_image(&self, package: &Package<'_>) -> String {
        package.agent_image.clone().unwrap_or_else(|| self.options.agent_image.to_string())
    }

    fn agent_environment(&self, package: &Package<'_>) -> Vec<Value> {
        let Options { log_root, copy_root, .. } = self.options;
        let skyhook = self.hook.name();
        let (uid, generation) = self.identity();
        let (name, version) = (&package.name, &package.version);
        let values = [
            format!("{log_root}/{skyhook}"),
            format!("{copy_root}/{skyhook}"),
            "false".to_owned(),
            format!("{skyhook}-{uid}-{generation}_{name}_{version}"),
        ];
        let pairs = AGENT_ENVIRONMENT.into_iter().zip(values);
        pairs.map(|(name, value)| json!({"name": name, "value": value})).collect()
    }

    fn copy_dir(&self, package: &Package<'_>) -> String {
        let (uid, generation) = self.identity();
        let (root, skyhook) = (&self.options.copy_root, self.hook.name());
        format!("{root}/{skyhook}/{}-{}-{uid}-{generation}", package.name, package.version)
    }

    fn identity(&self) -> (&str, i64) {
        (self.hook.object.uid().unwrap_or_default(), self.hook.object.generation())
    }
}

/// The owner reference that ties an object to its Skyhook.
pub(crate) fn owner(skyhook: &Object) -> Value {
    json!({
        "apiVersion": skyhook.api_version(),
        "kind": skyhook.kind().kind,
        "name": skyhook.name(),
        "uid": skyhook.uid().unwrap_or_default(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn package_image(package: &Package<'_>) -> String {
    if package.container_sha.is_empty() {
        format!("{}:{}", package.image, package.version)
    } else {
        format!("{}@{}", package.image, package.container_sha)
    }
}

/// Requests and limits as a container has them, where the package gives any.
pub(crate) fn resources(package: &Package<'_>) -> Option<Value> {
    let given = package.resources.as_ref()?;
    let mut resources = Map::new();
    let sides = [
        ("requests", &given.cpu_request, &given.memory_request),
        ("limits", &given.cpu_limit, &given.memory_limit),
    ];
    for (side, cpu, memory) in sides {
        let mut amounts = Map::new();
        for (resource, amount) in [("cpu", cpu), ("memory", memory)] {
            if let Some(amount) = amount {
                amounts.insert(resource.to_owned(), json!(amount));
            }
        }
        if !amounts.is_empty() {
            resources.insert(side.to_owned(), Value::Object(amounts));
        }
    }
    (!resources.is_empty()).then_some(Value::Object(resources))
}

fn without_config<'o>(package: &Package<'o>) -> Package<'o> {
    Package { config: std::collections::BTreeMap::new(), ..package.clone() }
}

#[cfg(test)]
mod tests;
