//! The columns of built-in kinds.

mod others;

use super::column::{Cell, Column};
use super::{cells, network, pod, scaling};
use Cell::{Age, Count, Created, Each, Flag, Labels, Made, Name, Selector, Text};
use others::{NETWORKS, OTHERS, STORAGE};

/// A kind and its columns.
type Kind = (&'static str, &'static [Column]);

/// The columns of a kind; its name and time of creation where nothing better is known.
pub(super) fn of(group: &str, kind: &str) -> &'static [Column] {
    let kinds = match group {
        "" => CORE,
        "apps" | "batch" | "autoscaling" | "policy" => WORKLOADS,
        "storage.k8s.io" | "resource.k8s.io" => STORAGE,
        "networking.k8s.io" | "discovery.k8s.io" => NETWORKS,
        _ => OTHERS,
    };
    kinds.iter().find(|(name, _)| *name == kind).map_or(PLAIN, |(_, columns)| columns)
}

/// The columns of what a sub-resource answers with; none for what is not printed.
pub(super) fn of_part(kind: &str) -> Option<&'static [Column]> {
    match kind {
        "Scale" => Some(SCALE),
        "Status" => Some(STATUS),
        _ => None,
    }
}

const NAME: Column =
    Column { name: "Name", of: "string", format: "name", is_wide: false, cell: Name };
const AGE: Column = string("Age", Age);

const fn string(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "string", format: "", is_wide: false, cell }
}

const fn wide(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "string", format: "", is_wide: true, cell }
}

const fn integer(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "integer", format: "", is_wide: false, cell }
}

const fn number(name: &'static str, pointer: &'static str) -> Column {
    integer(name, Cell::Number(pointer))
}

const fn boolean(name: &'static str, pointer: &'static str, absent: bool) -> Column {
    let cell = Flag(pointer, absent);
    Column { name, of: "boolean", format: "", is_wide: false, cell }
}

/// Names and images of the containers that a template describes.
const fn containers(list: &'static str) -> Column {
    wide("Containers", Each(list, "name"))
}

const fn images(list: &'static str) -> Column {
    wide("Images", Each(list, "image"))
}

const TEMPLATE: &str = "/spec/template/spec/containers";
const JOB_TEMPLATE: &str = "/spec/jobTemplate/spec/template/spec/containers";

const PLAIN: &[Column] =
    &[NAME, Column { name: "Created At", of: "date", format: "", is_wide: false, cell: Created }];
const NAME_AND_AGE: &[Column] = &[NAME, AGE];
const STATUS: &[Column] = &[
    string("Status", Text("/status", "")),
    string("Reason", Text("/reason", "")),
    string("Message", Text("/message", "")),
];
const SCALE: &[Column] = &[
    string("Name", Name),
    number("Desired", "/spec/replicas"),
    number("Available", "/status/replicas"),
    AGE,
];

const CORE: &[Kind] = &[
    (
        "Pod",
        &[
            NAME,
            string("Ready", Made(pod::ready)),
            string("Status", Made(pod::status)),
            string("Restarts", Made(pod::restarts)),
            AGE,
            wide("IP", Text("/status/podIPs/0/ip", "<none>")),
            wide("Node", Text("/spec/nodeName", "<none>")),
            wide("Nominated Node", Text("/status/nominatedNodeName", "<none>")),
            wide("Readiness Gates", Made(pod::gates)),
        ],
    ),
    (
        "Node",
        &[
            NAME,
            string("Status", Made(cells::node_status)),
            string("Roles", Made(cells::node_roles)),
            AGE,
            string("Version", Text("/status/nodeInfo/kubeletVersion", "")),
            wide("Internal-IP", Made(cells::internal_address)),
            wide("External-IP", Made(cells::external_address)),
            wide("OS-Image", Text("/status/nodeInfo/osImage", "<unknown>")),
            wide("Kernel-Version", Made(cells::kernel)),
            wide(
                "Container-Runtime",
                Text("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
            ),
        ],
    ),
    ("Namespace", &[NAME, string("Status", Text("/status/phase", "")), AGE]),
    (
        "ReplicationController",
        &[
            NAME,
            number("Desired", "/spec/replicas"),
            number("Current", "/status/replicas"),
            number("Ready", "/status/readyReplicas"),
            AGE,
            containers(TEMPLATE),
            images(TEMPLATE),
            wide("Selector", Labels("/spec/selector")),
        ],
    ),
    (
        "PodTemplate",
        &[
            NAME,
            string("Containers", Each("/template/spec/containers", "name")),
            string("Images", Each("/template/spec/containers", "image")),
            string("Pod Labels", Labels("/template/metadata/labels")),
        ],
    ),
    (
        "Service",
        &[
            NAME,
            string("Type", Text("/spec/type", "")),
            string("Cluster-IP", Text("/spec/clusterIPs/0", "<none>")),
            string("External-IP", Made(network::external_address)),
            string("Port(s)", Made(network::service_ports)),
            AGE,
            wide("Selector", Labels("/spec/selector")),
        ],
    ),
    ("Endpoints", &[NAME, string("Endpoints", Made(network::endpoints)), AGE]),
    ("ConfigMap", &[NAME, string("Data", Count(&["/data", "/binaryData"])), AGE]),
    ("Secret", &[NAME, string("Type", Text("/type", "")), string("Data", Count(&["/data"])), AGE]),
    ("ServiceAccount", NAME_AND_AGE),
    ("Event", EVENT),
    (
        "PersistentVolume",
        &[
            NAME,
            string("Capacity", Text("/spec/capacity/storage", "0")),
            string("Access Modes", Made(cells::volume_modes)),
            string("Reclaim Policy", Text("/spec/persistentVolumeReclaimPolicy", "")),
            string("Status", Made(cells::volume_phase)),
            string("Claim", Made(cells::volume_claim)),
            string("StorageClass", Made(cells::storage_class)),
            string("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
            string("Reason", Text("/status/reason", "")),
            AGE,
            wide("VolumeMode", Text("/spec/volumeMode", "<unset>")),
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            NAME,
            string("Status", Made(cells::volume_phase)),
            string("Volume", Text("/spec/volumeName", "")),
            string("Capacity", Made(cells::claim_capacity)),
            string("Access Modes", Made(cells::claim_modes)),
            string("StorageClass", Made(cells::storage_class)),
            string("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
            AGE,
            wide("VolumeMode", Text("/spec/volumeMode", "<unset>")),
        ],
    ),
    (
        "ResourceQuota",
        &[
            NAME,
            string("Request", Made(cells::quota_requests)),
            string("Limit", Made(cells::quota_limits)),
            AGE,
        ],
    ),
    (
        "ComponentStatus",
        &[
            NAME,
            string("Status", Made(cells::component_status)),
            string("Message", Made(cells::component_message)),
            string("Error", Made(cells::component_error)),
        ],
    ),
];

const EVENT: &[Column] = &[
    string("Last Seen", Made(cells::event_last_seen)),
    string("Type", Text("/type", "")),
    string("Reason", Text("/reason", "")),
    string("Object", Made(cells::event_object)),
    wide("Subobject", Text("/involvedObject/fieldPath", "")),
    wide("Source", Made(cells::event_source)),
    string("Message", Made(cells::event_message)),
    wide("First Seen", Made(cells::event_first_seen)),
    wide("Count", Made(cells::event_count)),
    Column { name: "Name", of: "string", format: "name", is_wide: true, cell: Name },
];

const WORKLOADS: &[Kind] = &[
    (
        "Deployment",
        &[
            NAME,
            string("Ready", Made(scaling::ready)),
            string("Up-to-date", Cell::Number("/status/updatedReplicas")),
            string("Available", Cell::Number("/status/availableReplicas")),
            AGE,
            containers(TEMPLATE),
            images(TEMPLATE),
            wide("Selector", Selector("/spec/selector", "")),
        ],
    ),
    (
        "ReplicaSet",
        &[
            NAME,
            number("Desired", "/spec/replicas"),
            number("Current", "/status/replicas"),
            number("Ready", "/status/readyReplicas"),
            AGE,
            containers(TEMPLATE),
            images(TEMPLATE),
            wide("Selector", Selector("/spec/selector", "<none>")),
        ],
    ),
    (
        "DaemonSet",
        &[
            NAME,
            number("Desired", "/status/desiredNumberScheduled"),
            number("Current", "/status/currentNumberScheduled"),
            number("Ready", "/status/numberReady"),
            number("Up-to-date", "/status/updatedNumberScheduled"),
            number("Available", "/status/numberAvailable"),
            string("Node Selector", Labels("/spec/template/spec/nodeSelector")),
            AGE,
            containers(TEMPLATE),
            images(TEMPLATE),
            wide("Selector", Selector("/spec/selector", "<none>")),
        ],
    ),
    (
        "StatefulSet",
        &[NAME, string("Ready", Made(scaling::ready)), AGE, containers(TEMPLATE), images(TEMPLATE)],
    ),
    (
        "ControllerRevision",
        &[
            NAME,
            string("Controller", Made(scaling::controller)),
            string("Revision", Cell::Number("/revision")),
            AGE,
        ],
    ),
    (
        "Job",
        &[
            NAME,
            string("Status", Made(scaling::job_status)),
            string("Completions", Made(scaling::job_completions)),
            string("Duration", Made(scaling::job_duration)),
            AGE,
            containers(TEMPLATE),
            images(TEMPLATE),
            wide("Selector", Selector("/spec/selector", "<none>")),
        ],
    ),
    (
        "CronJob",
        &[
            NAME,
            string("Schedule", Text("/spec/schedule", "")),
            string("Timezone", Text("/spec/timeZone", "<none>")),
            Column {
                name: "Suspend",
                of: "boolean",
                format: "",
                is_wide: false,
                cell: Made(scaling::suspended),
            },
            integer("Active", Count(&["/status/active"])),
            string("Last Schedule", Made(scaling::last_schedule)),
            AGE,
            containers(JOB_TEMPLATE),
            images(JOB_TEMPLATE),
            wide("Selector", Selector("/spec/jobTemplate/spec/selector", "<none>")),
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        &[
            NAME,
            string("Reference", Made(scaling::target)),
            string("Targets", Made(scaling::metrics)),
            string("MinPods", Text("/spec/minReplicas", "<unset>")),
            string("MaxPods", Cell::Number("/spec/maxReplicas")),
            string("Replicas", Cell::Number("/status/currentReplicas")),
            AGE,
        ],
    ),
    (
        "PodDisruptionBudget",
        &[
            NAME,
            string("Min Available", Text("/spec/minAvailable", "N/A")),
            string("Max Unavailable", Text("/spec/maxUnavailable", "N/A")),
            number("Allowed Disruptions", "/status/disruptionsAllowed"),
            AGE,
        ],
    ),
];
