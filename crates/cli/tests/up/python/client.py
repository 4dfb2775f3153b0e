"""Uses the server as Python programs do. Prints "ok" at the end."""

import threading

from kubernetes import client, config, dynamic, utils, watch

config.load_kube_config()
core = client.CoreV1Api()
apps = client.AppsV1Api()

core.create_namespace({"metadata": {"name": "python"}})
core.create_namespaced_config_map("python", {"metadata": {"name": "a"}, "data": {"k": "1"}})
found = core.read_namespaced_config_map("a", "python")
assert found.data == {"k": "1"}, found
core.patch_namespaced_config_map("a", "python", {"data": {"k": "2"}})
assert [one.metadata.name for one in core.list_namespaced_config_map("python", field_selector="metadata.name=a").items] == ["a"]

try:
    core.read_namespaced_config_map("absent", "python")
    raise AssertionError("an absent object was found")
except client.ApiException as error:
    assert error.status == 404 and error.reason == "Not Found", error

# Every field that the models require must be there, or they raise.
utils.create_from_dict(client.ApiClient(), {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "python"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}}})
deployment = apps.read_namespaced_deployment("web", "python")
assert deployment.spec.replicas == 1 and deployment.spec.strategy.type == "RollingUpdate", deployment
apps.patch_namespaced_deployment_scale("web", "python", {"spec": {"replicas": 4}})
assert apps.read_namespaced_deployment_scale("web", "python").spec.replicas == 4
client.PolicyV1Api().create_namespaced_pod_disruption_budget("python", {
    "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}})
assert client.PolicyV1Api().read_namespaced_pod_disruption_budget("web", "python").status.disruptions_allowed == 0

for kind in (core.list_node, core.list_namespace, core.list_service_for_all_namespaces,
             client.RbacAuthorizationV1Api().list_cluster_role, client.VersionApi().get_code):
    kind()

seen = []
def follow():
    for event in watch.Watch().stream(core.list_namespaced_config_map, "python", timeout_seconds=3):
        seen.append((event["type"], event["object"].metadata.name))
follower = threading.Thread(target=follow)
follower.start()
core.create_namespaced_config_map("python", {"metadata": {"name": "b"}})
follower.join()
assert ("ADDED", "a") in seen and ("ADDED", "b") in seen, seen

maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
applied = maps.server_side_apply(namespace="python", name="c", field_manager="python",
                                 body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}})
assert applied.data.k == "v"
core.delete_namespaced_config_map("a", "python")
print("ok")
