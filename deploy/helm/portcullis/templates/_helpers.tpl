{{- define "portcullis.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "portcullis.fullname" -}}
{{- $name := include "portcullis.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "portcullis.selectorLabels" -}}
app.kubernetes.io/name: {{ include "portcullis.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portcullis.labels" -}}
{{ include "portcullis.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Name, namespace and labels of an object; the argument: dict "root" $ "suffix" "-internal". */}}
{{- define "portcullis.metadata" -}}
name: {{ include "portcullis.fullname" .root }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "portcullis.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "portcullis.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "portcullis.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "portcullis.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "portcullis.replicas" -}}
{{- if eq .Values.shape "embedded" -}}1{{- else -}}{{ .Values.replicas | default 2 }}{{- end -}}
{{- end }}

{{/* The Secret of the gateway's own certificate; empty: it makes one. */}}
{{- define "portcullis.tlsSecret" -}}
{{- if .Values.certManager.enabled -}}
{{ include "portcullis.fullname" . }}-tls
{{- else -}}
{{ .Values.tls.secretName }}
{{- end -}}
{{- end }}

{{- define "portcullis.graceSeconds" -}}
{{- with .Values.shutdown -}}
{{ add (int .delaySeconds) (int .drainSeconds) (int .marginSeconds) }}
{{- end -}}
{{- end }}

{{- define "portcullis.healthScheme" -}}
{{ .Values.health.tlsSecretName | empty | ternary "http" "https" }}
{{- end }}

{{/* Of an endpoint of Prometheus: how it verifies the health port. */}}
{{- define "portcullis.scrapeTls" -}}
scheme: {{ include "portcullis.healthScheme" . }}
{{- with .Values.health.tlsSecretName }}
tlsConfig:
  serverName: {{ include "portcullis.fullname" $ }}-internal.{{ $.Release.Namespace }}.svc
  ca:
    secret:
      name: {{ . }}
      key: ca.crt
{{- end }}
{{- end }}

{{/* What a schema cannot say, each in one line. */}}
{{- define "portcullis.checks" -}}
{{- if and (eq .Values.shape "kubernetes") (ne .Release.Namespace "portcullis-system") -}}
{{- fail "the gateway keeps its Leases and the CA of its replicas in the namespace portcullis-system: install with --namespace portcullis-system, or with shape=embedded" -}}
{{- end -}}
{{- if and .Values.proxyProtocol.enabled (not .Values.proxyProtocol.from) -}}
{{- fail "proxyProtocol.enabled needs proxyProtocol.from: whose headers are believed" -}}
{{- end -}}
{{- $ports := dict -}}
{{- range $name, $port := .Values.ports -}}
{{- $port = toString (int $port) -}}
{{- if hasKey $ports $port -}}
{{- fail (printf "ports.%s and ports.%s are both %s: give each its own" $name (get $ports $port) $port) -}}
{{- end -}}
{{- $_ := set $ports $port $name -}}
{{- end -}}
{{- range $name := keys .Values.settings | sortAlpha -}}
{{- if and (hasPrefix "control" $name) (eq $.Values.shape "kubernetes") -}}
{{- fail (printf "settings.%s needs shape=embedded: with shape=kubernetes there is no API server of the gateway's own" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.certManager.enabled .Values.tls.secretName -}}
{{- fail "certManager.enabled and tls.secretName both say where the gateway's certificate is: set one of them" -}}
{{- end -}}
{{- if and .Values.certManager.enabled (not .Values.certManager.issuerRef.name) -}}
{{- fail "certManager.enabled needs certManager.issuerRef.name: who issues the certificate" -}}
{{- end -}}
{{- if and .Values.certManager.enabled (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- fail "certManager.enabled needs the CRDs of cert-manager (cert-manager.io/v1), which this cluster does not have; for helm template: --api-versions cert-manager.io/v1" -}}
{{- end -}}
{{- if and (or .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled .Values.metrics.rules.enabled) (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- fail "metrics.podMonitor, metrics.serviceMonitor and metrics.rules need the CRDs of the Prometheus operator (monitoring.coreos.com/v1), which this cluster does not have; for helm template: --api-versions monitoring.coreos.com/v1" -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor would scrape every pod twice: enable one of them" -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled (not .Values.metrics.tokenSecret.name) -}}
{{- fail "metrics.podMonitor.enabled needs metrics.tokenSecret.name: /metrics asks for a token" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (eq .Values.shape "embedded") (not .Values.metrics.tokenSecret.name) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.tokenSecret.name with shape=embedded: no cluster reviews tokens" -}}
{{- end -}}
{{- if and .Values.redis.passwordSecret.name (not .Values.redis.url) -}}
{{- fail "redis.passwordSecret.name has no meaning without redis.url: set both, or neither" -}}
{{- end -}}
{{- if lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas) -}}
{{- fail (printf "autoscaling.maxReplicas (%d) is less than autoscaling.minReplicas (%d)" (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas)) -}}
{{- end -}}
{{- if and .Values.webhooks.protection.enabled (not .Values.protection.listen) -}}
{{- fail "webhooks.protection.enabled needs protection.listen=true: no gateway would answer" -}}
{{- end -}}
{{- if and .Values.webhooks.protection.enabled (not .Values.webhooks.protection.cell) -}}
{{- fail "webhooks.protection.enabled needs webhooks.protection.cell: the name of this cluster as PodProtectors know it" -}}
{{- end -}}
{{- if and .Values.webhooks.certManager (eq .Values.shape "embedded") -}}
{{- fail "webhooks.certManager needs shape=kubernetes, where the gateway's CA is in a Secret: set caBundle" -}}
{{- end -}}
{{- range $name := list "validating" "protection" -}}
{{- with index $.Values.webhooks $name -}}
{{- if and .enabled (not .caBundle) (not $.Values.webhooks.certManager) -}}
{{- fail (printf "webhooks.%s.enabled needs webhooks.%s.caBundle or webhooks.certManager: kube-apiserver calls no webhook that it cannot verify" $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.webhooks.validating.enabled (not .Values.webhooks.validating.token) -}}
{{- fail "webhooks.validating.enabled needs webhooks.validating.token: it is in the path that `portcullis control webhook` prints" -}}
{{- end -}}
{{- end }}
