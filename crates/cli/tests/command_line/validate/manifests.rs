//! Manifests with mistakes, for the tests of `convoy validate`.

pub(super) const METADATA: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: shop
  name: 123
spec:
  replica: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: tuning
  labels: [a]
  annotations: {team: 5}
spec:
  nodeSelector: {matchLabels: {a: b}}
  additionalTolerations:
  - {key: a, operator: Exist, effect: NoSchedul}
  packages:
    tools: {version: 1.0.0, image: example.com/tools}
    tune:
      version: 1.0.0
      image: example.com/tune
      dependsOn: {tols: 1.0.0}
";

pub(super) const ONCE: &str = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: \"0 3 * * *\"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: never
          containers: [{name: c, image: nginx}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption:
    budgets:
    - nodes: \"10%\"
    - nodes: ten
      schedule: \"0 9 * * *\"
      duration: 1h
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
";

pub(super) const FIELDS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replica: 3
  strategy:
    type: RolingUpdate
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        imge: web:1
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: tune
spec:
  nodeSelector:
    matchLabels: {pool: gpu}
  packages:
    tuning:
      version: 1.2.3
      image: registry.example.com/tuning
      interrupt:
        type: rebot
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: in, values: [spot]}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilised
    consolidateAfter: 1m
    budgets:
    - nodes: 10%
      reasons: [Drift]
";

pub(super) const KINDS: &str = "\
apiVersion: apps/v1
kind: Deploymnt
metadata: {name: a}
---
apiVersion: app/v1
kind: Deployment
metadata: {name: b}
---
apiVersion: apps/v1beta2
kind: DaemonSet
metadata: {name: c}
---
apiVersion: karpenter.sh/v1
kind: NodePol
metadata: {name: d}
---
apiVersion: stable.example.com/v1
kind: Machine
metadata: {name: e}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
---
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: f}
spec:
  replica: 1
  replicas: two
";

pub(super) const SCHEDULES: &str = "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 1m
    budgets:
    - nodes: \"0\"
      schedule: 0 9 * * mon-fry
      duration: 8h
    - nodes: \"10%\"
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
  namespace: shop
spec:
  schedule: '@dayly'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: job, image: job:1}
";

pub(super) const VALUES: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels:
    enabled: on
spec:
  replicas: three
  minReadySeconds: yes
  progressDeadlineSeconds: -1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: web:1
        ports:
        - containerPort: 70000
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: tune
spec:
  serial: 'true'
  interruptionBudget: {percent: 10, count: 2}
  packages:
    tuning:
      version: 1.0
      image: registry.example.com/tuning
      dependsOn: {other: 1.2.3}
    Bad_Name:
      version: 1.2.3
      image: registry.example.com/bad
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
spec:
  type: ClusterIp
  selector: {app: web}
  ports:
  - {port: http}
  - {port: 0x1F90, name: Web}
";

pub(super) const REFERENCES: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      nodeSelector: {pool: gpus}
      containers:
      - name: web
        image: web:1
        envFrom:
        - configMapRef: {name: setings}
        - secretRef: {name: token}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: wob}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: gpu}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tune}
spec:
  deploymentPolicy: slwo
  nodeSelectors:
    matchLabels: {pol: gpu}
  packages:
    tuning: {version: 1.2.3, image: registry.example.com/tuning}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: slow}
spec:
  default:
    budget: {count: 1}
";

pub(super) const ADMISSION: &str = "\
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tune}
spec:
  packages:
    tuning:
      version: 1.2.3
      image: registry.example.com/tuning
      dependsOn: {other: 1.0.0}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: everything}
spec:
  resourceSelectors:
  - {group: '', version: v1, kind: Namespace, name: shop}
  policy:
    placementType: PickFixed
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: nothing, namespace: east}
spec:
  workload:
    manifests: []
---
apiVersion: v1
kind: Pod
metadata: {name: Web}
spec:
  restartPolicy: Sometimes
  containers:
  - name: web
    image: web:1
    volumeMounts:
    - {name: data, mountPath: /data}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  maxUnavailable: 1
  selector:
    matchExpressions:
    - {key: app, operator: Inn, values: [web]}
";

pub(super) const SOUND: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      nodeSelector: {pool: gpu}
      containers:
      - name: web
        image: web:1
        envFrom:
        - configMapRef: {name: settings}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: gpu}}
";
