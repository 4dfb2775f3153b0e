{{/* The name of everything that the release makes. */}}
{{- define "convoy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "convoy.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "convoy.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "convoy.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "convoy.labels" -}}
{{ include "convoy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "convoy.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The dialects that run, or nothing for an agent. */}}
{{- define "convoy.dialects" -}}
{{- if eq .Values.mode "controller" -}}
{{- join "," .Values.dialects -}}
{{- end -}}
{{- end -}}

{{/* The dialects whose webhooks are served: all but apps have some. */}}
{{- define "convoy.webhooks" -}}
{{- if and (eq .Values.mode "controller") .Values.webhooks.enabled -}}
{{- join "," (without .Values.dialects "apps") -}}
{{- end -}}
{{- end -}}

{{- define "convoy.packages" -}}
{{- .Values.skyhook.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* A ClusterRole, and its binding to the account. */}}
{{- define "convoy.clusterRole" -}}
{{- $root := .root -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}
  labels:
    {{- include "convoy.labels" $root | nindent 4 }}
rules:
{{ .rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "convoy.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: {{ include "convoy.account" $root }}, namespace: {{ $root.Release.Namespace }}}
{{- end -}}

{{/* A Role in a namespace, and its binding to the account. */}}
{{- define "convoy.role" -}}
{{- $root := .root -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "convoy.labels" $root | nindent 4 }}
rules:
{{ .rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- include "convoy.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: {{ include "convoy.account" $root }}, namespace: {{ $root.Release.Namespace }}}
{{- end -}}
