//! The columns of kinds outside the core and the workloads: storage, networks, access, policy.

use super::super::column::Cell::{
    self, Count, Flag, Labels, Made, NumberOr, Selector, Text, Words,
};
use super::super::column::Column;
use super::super::{cells, network};
use super::{AGE, EVENT, Kind, NAME, NAME_AND_AGE, boolean, integer, number, string, wide};

pub(super) const STORAGE: &[Kind] = &[
    (
        "StorageClass",
        &[
            Column {
                name: "Name",
                of: "string",
                format: "name",
                is_wide: false,
                cell: Made(cells::storage_class_name),
            },
            string("Provisioner", Text("/provisioner", "")),
            string("ReclaimPolicy", Text("/reclaimPolicy", "Delete")),
            string("VolumeBindingMode", Text("/volumeBindingMode", "Immediate")),
            string("AllowVolumeExpansion", Flag("/allowVolumeExpansion", false)),
            AGE,
        ],
    ),
    ("VolumeAttributesClass", &[NAME, string("DriverName", Text("/driverName", "")), AGE]),
    (
        "VolumeAttachment",
        &[
            NAME,
            Column {
                name: "Attacher",
                of: "string",
                format: "name",
                is_wide: false,
                cell: Text("/spec/attacher", ""),
            },
            string("PV", Text("/spec/source/persistentVolumeName", "")),
            string("Node", Text("/spec/nodeName", "")),
            boolean("Attached", "/status/attached", false),
            AGE,
        ],
    ),
    (
        "CSIDriver",
        &[
            NAME,
            boolean("AttachRequired", "/spec/attachRequired", true),
            boolean("PodInfoOnMount", "/spec/podInfoOnMount", false),
            boolean("StorageCapacity", "/spec/storageCapacity", false),
            string("TokenRequests", Made(cells::token_audiences)),
            boolean("RequiresRepublish", "/spec/requiresRepublish", false),
            string("Modes", Words("/spec/volumeLifecycleModes", "<none>")),
            AGE,
        ],
    ),
    ("CSINode", &[NAME, integer("Drivers", Count(&["/spec/drivers"])), AGE]),
    ("DeviceClass", NAME_AND_AGE),
    (
        "DeviceTaintRule",
        &[
            NAME,
            string("Key", Text("/spec/taint/key", "")),
            string("Value", Text("/spec/taint/value", "")),
            string("Effect", Text("/spec/taint/effect", "")),
            string("TimeAdded", Made(cells::taint_age)),
            AGE,
        ],
    ),
    ("ResourceClaimTemplate", NAME_AND_AGE),
    ("ResourceClaim", &[NAME, string("State", Made(cells::claim_state)), AGE]),
    (
        "ResourceSlice",
        &[
            NAME,
            string("Node", Text("/spec/nodeName", "")),
            string("Driver", Text("/spec/driver", "")),
            string("Pool", Text("/spec/pool/name", "")),
            AGE,
        ],
    ),
];

pub(super) const NETWORKS: &[Kind] = &[
    (
        "Ingress",
        &[
            NAME,
            string("Class", Text("/spec/ingressClassName", "<none>")),
            string("Hosts", Made(network::ingress_hosts)),
            string("Address", Made(network::ingress_address)),
            string("Ports", Made(network::ingress_ports)),
            AGE,
        ],
    ),
    (
        "IngressClass",
        &[
            Column {
                name: "Name",
                of: "string",
                format: "name",
                is_wide: false,
                cell: Made(network::ingress_class_name),
            },
            string("Controller", Text("/spec/controller", "")),
            string("Parameters", Made(network::ingress_parameters)),
            AGE,
        ],
    ),
    (
        "NetworkPolicy",
        &[NAME, string("Pod-Selector", Selector("/spec/podSelector", "<none>")), AGE],
    ),
    ("ServiceCIDR", &[NAME, string("CIDRs", Words("/spec/cidrs", "")), AGE]),
    ("IPAddress", &[NAME, string("ParentRef", Made(network::address_parent))]),
    (
        "EndpointSlice",
        &[
            NAME,
            string("AddressType", Text("/addressType", "")),
            string("Ports", Made(network::slice_ports)),
            string("Endpoints", Made(network::slice_endpoints)),
            AGE,
        ],
    ),
];

pub(super) const OTHERS: &[Kind] = &[
    ("Event", EVENT),
    ("Lease", &[NAME, string("Holder", Text("/spec/holderIdentity", "")), AGE]),
    (
        "PriorityClass",
        &[
            NAME,
            number("Value", "/value"),
            boolean("Global-Default", "/globalDefault", false),
            AGE,
            string("PreemptionPolicy", Text("/preemptionPolicy", "")),
        ],
    ),
    ("RuntimeClass", &[NAME, string("Handler", Text("/handler", "")), AGE]),
    ("RoleBinding", ROLE_BINDING),
    ("ClusterRoleBinding", ROLE_BINDING),
    (
        "CertificateSigningRequest",
        &[
            NAME,
            AGE,
            string("SignerName", Text("/spec/signerName", "<none>")),
            string("Requestor", Text("/spec/username", "")),
            string("RequestedDuration", Made(cells::requested_duration)),
            string("Condition", Made(cells::certificate_state)),
        ],
    ),
    ("ClusterTrustBundle", &[NAME, string("SignerName", Text("/spec/signerName", "<none>"))]),
    (
        "PodCertificateRequest",
        &[
            NAME,
            string("PodName", Text("/spec/podName", "")),
            string("ServiceAccountName", Text("/spec/serviceAccountName", "")),
            string("NodeName", Text("/spec/nodeName", "")),
            string("SignerName", Text("/spec/signerName", "")),
            string("State", Made(cells::pod_certificate_state)),
            string("UnverifiedUserAnnotations", Labels("/spec/unverifiedUserAnnotations")),
        ],
    ),
    ("ValidatingWebhookConfiguration", &[NAME, integer("Webhooks", Count(&["/webhooks"])), AGE]),
    ("MutatingWebhookConfiguration", &[NAME, integer("Webhooks", Count(&["/webhooks"])), AGE]),
    (
        "ValidatingAdmissionPolicy",
        &[
            NAME,
            integer("Validations", Count(&["/spec/validations"])),
            string("ParamKind", Made(cells::policy_parameters)),
            AGE,
        ],
    ),
    (
        "MutatingAdmissionPolicy",
        &[
            NAME,
            integer("Mutations", Count(&["/spec/mutations"])),
            string("ParamKind", Made(cells::policy_parameters)),
            AGE,
        ],
    ),
    ("ValidatingAdmissionPolicyBinding", POLICY_BINDING),
    ("MutatingAdmissionPolicyBinding", POLICY_BINDING),
    (
        "APIService",
        &[
            NAME,
            string("Service", Made(cells::api_service)),
            string("Available", Made(cells::api_available)),
            AGE,
        ],
    ),
    (
        "FlowSchema",
        &[
            NAME,
            string("PriorityLevel", Text("/spec/priorityLevelConfiguration/name", "")),
            string("MatchingPrecedence", Cell::Number("/spec/matchingPrecedence")),
            string("DistinguisherMethod", Text("/spec/distinguisherMethod/type", "<none>")),
            AGE,
            string("MissingPL", Made(cells::missing_level)),
        ],
    ),
    ("PriorityLevelConfiguration", PRIORITY_LEVEL),
    (
        "StorageVersionMigration",
        &[
            string("Name", Cell::Name),
            string("Resource", Made(cells::migrated_resource)),
            string("Status", Made(cells::migration_state)),
        ],
    ),
];

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    string("Type", Text("/spec/type", "")),
    string(
        "NominalConcurrencyShares",
        NumberOr("/spec/limited/nominalConcurrencyShares", "<none>"),
    ),
    string("Queues", NumberOr("/spec/limited/limitResponse/queuing/queues", "<none>")),
    string("HandSize", NumberOr("/spec/limited/limitResponse/queuing/handSize", "<none>")),
    string(
        "QueueLengthLimit",
        NumberOr("/spec/limited/limitResponse/queuing/queueLengthLimit", "<none>"),
    ),
    AGE,
];

const ROLE_BINDING: &[Column] = &[
    NAME,
    string("Role", Made(cells::role)),
    AGE,
    wide("Users", Made(cells::bound_users)),
    wide("Groups", Made(cells::bound_groups)),
    wide("ServiceAccounts", Made(cells::bound_accounts)),
];

const POLICY_BINDING: &[Column] = &[
    NAME,
    string("PolicyName", Text("/spec/policyName", "")),
    string("ParamRef", Made(cells::policy_binding_parameter)),
    AGE,
];
