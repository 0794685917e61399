{{/* Arguments of the container. */}}
{{- define "portcullis.args" -}}
{{- $bind := .Values.bindAddress -}}
{{- $internal := printf "%s-internal.%s.svc" (include "portcullis.fullname" .) .Release.Namespace -}}
- serve
- --source={{ .Values.shape }}
- --listen={{ $bind }}:{{ .Values.ports.gateway }}{{ if .Values.proxyProtocol.enabled }}/proxy-protocol{{ end }}
{{- if .Values.proxyProtocol.enabled }}
{{- range .Values.proxyProtocol.from }}
- --proxy-protocol-from={{ . }}
{{- end }}
- --proxy-protocol-others={{ .Values.proxyProtocol.others }}
{{- end }}
- --control-listen={{ $bind }}:{{ .Values.ports.control }}
- --control-host={{ $internal }}
{{- range .Values.control.hosts }}
- {{ printf "--control-host=%s" . | quote }}
{{- end }}
- --health-listen={{ $bind }}:{{ .Values.ports.health }}
{{- if .Values.admin.enabled }}
- --admin-listen={{ $bind }}:{{ .Values.ports.admin }}
- --admin-tls-cert-file=/etc/portcullis/admin/tls.crt
- --admin-tls-private-key-file=/etc/portcullis/admin/tls.key
{{- if eq .Values.shape "kubernetes" }}
# Told by the replica's Lease. In brackets an address of either family is right.
- --admin-advertise=[$(POD_IP)]:{{ .Values.ports.admin }}
{{- end }}
{{- else }}
- --admin-listen=127.0.0.1:{{ .Values.ports.admin }}
{{- end }}
- --shutdown-delay={{ .Values.shutdown.delaySeconds }}s
- --drain-timeout={{ .Values.shutdown.drainSeconds }}s
{{- if eq .Values.shape "kubernetes" }}
- --install-crds=false
{{- if not (hasKey .Values.settings "maxConnectionAge") }}
# A pod that joins gets its part of the requests.
- --max-connection-age=4m
{{- end }}
- --expected-replicas={{ if .Values.autoscaling.enabled }}{{ .Values.autoscaling.minReplicas }}{{ else }}{{ include "portcullis.replicas" . }}{{ end }}
{{- end }}
{{- if include "portcullis.tlsSecret" . }}
- --tls-cert-file=/etc/portcullis/tls/tls.crt
- --tls-private-key-file=/etc/portcullis/tls/tls.key
{{- end }}
{{- if .Values.health.tlsSecretName }}
- --health-tls-cert-file=/etc/portcullis/health/tls.crt
- --health-tls-private-key-file=/etc/portcullis/health/tls.key
{{- end }}
{{- with .Values.redis.url }}
- {{ printf "--redis-url=%s" . | quote }}
{{- end }}
{{- if .Values.redis.passwordSecret.name }}
- --redis-password-file=/etc/portcullis/redis/{{ .Values.redis.passwordSecret.key }}
{{- end }}
{{- if .Values.store.keySecret.name }}
- --store-key-file=/etc/portcullis/store/{{ .Values.store.keySecret.key }}
{{- end }}
{{- if .Values.metrics.tokenSecret.name }}
- --metrics-token-file=/etc/portcullis/metrics/{{ .Values.metrics.tokenSecret.key }}
{{- end }}
{{- if .Values.protection.listen }}
- --protection-listen={{ $bind }}:{{ .Values.ports.protection }}
{{- end }}
{{- if .Values.protection.generatorConfig }}
- --protection-generator-config=/etc/portcullis/generator/config.yaml
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
{{- /* Numbers of values files are floats, which print as 1e+06. */}}
- {{ printf "--%s=%s" (kebabcase $name) (kindIs "float64" . | ternary (toJson .) (toString .)) | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A Secret as a volume, whole: a subPath would never be updated. dict "name" NAME "secret" SECRET */}}
{{- define "portcullis.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 288 # 0440, which YAML 1.2 would read as decimal
{{- end }}

{{- define "portcullis.volumes" -}}
{{- if eq .Values.shape "kubernetes" }}
- name: data
  emptyDir: {}
{{- else if .Values.persistence.existingClaim }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim }}
{{- end }}
{{- with include "portcullis.tlsSecret" . }}
{{ include "portcullis.secretVolume" (dict "name" "tls" "secret" .) }}
{{- end }}
{{- with .Values.health.tlsSecretName }}
{{ include "portcullis.secretVolume" (dict "name" "health" "secret" .) }}
{{- end }}
{{- if .Values.admin.enabled }}
{{ include "portcullis.secretVolume" (dict "name" "admin" "secret" .Values.admin.tls.secretName) }}
{{- end }}
{{- with .Values.redis.passwordSecret.name }}
{{ include "portcullis.secretVolume" (dict "name" "redis" "secret" .) }}
{{- end }}
{{- with .Values.store.keySecret.name }}
{{ include "portcullis.secretVolume" (dict "name" "store" "secret" .) }}
{{- end }}
{{- with .Values.metrics.tokenSecret.name }}
{{ include "portcullis.secretVolume" (dict "name" "metrics" "secret" .) }}
{{- end }}
{{- if .Values.protection.generatorConfig }}
- name: generator
  configMap:
    name: {{ include "portcullis.fullname" . }}-generator
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "portcullis.mounts" -}}
- name: data
  mountPath: /var/lib/portcullis
{{- if include "portcullis.tlsSecret" . }}
- name: tls
  mountPath: /etc/portcullis/tls
  readOnly: true
{{- end }}
{{- range $name, $on := dict "admin" .Values.admin.enabled "health" .Values.health.tlsSecretName "redis" .Values.redis.passwordSecret.name "store" .Values.store.keySecret.name "metrics" .Values.metrics.tokenSecret.name "generator" .Values.protection.generatorConfig }}
{{- if $on }}
- name: {{ $name }}
  mountPath: /etc/portcullis/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The template of the pods, of both shapes. */}}
{{- define "portcullis.podTemplate" -}}
metadata:
  labels:
    {{- include "portcullis.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: portcullis
    {{- with .Values.protection.generatorConfig }}
    # It is read at the start only.
    checksum/generator: {{ . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "portcullis.serviceAccountName" . }}
  automountServiceAccountToken: {{ eq .Values.shape "kubernetes" }}
  # Variables named after Services would look like settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "portcullis.graceSeconds" . }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and (eq .Values.shape "kubernetes") .Values.topologySpread }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "portcullis.selectorLabels" $ | nindent 10 }}
      # Of one revision: the pods of the one before are about to go.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # Always would make every key on the volume readable and writable for the group, at each mount.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: portcullis
      image: {{ include "portcullis.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- include "portcullis.args" . | nindent 8 }}
      env:
        # Not the root of the volume, whose mode the kubelet goes by (fsGroupChangePolicy).
        - name: PORTCULLIS_DATA_DIR
          value: /var/lib/portcullis/data
        # Unique among the replicas.
        - name: PORTCULLIS_REPLICA_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- if and .Values.admin.enabled (eq .Values.shape "kubernetes") }}
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        {{- end }}
        {{- $cpu := "" }}
        {{- if dig "limits" "cpu" "" .Values.resources }}
        {{- $cpu = "limits.cpu" }}
        {{- else if dig "requests" "cpu" "" .Values.resources }}
        {{- $cpu = "requests.cpu" }}
        {{- end }}
        {{- if and $cpu (not .Values.settings.threads) }}
        # Not one for each processor of the node.
        - name: PORTCULLIS_THREADS
          valueFrom:
            resourceFieldRef:
              containerName: portcullis
              resource: {{ $cpu }}
              divisor: "1"
        {{- end }}
      ports:
        - name: gateway
          containerPort: {{ .Values.ports.gateway }}
        - name: control
          containerPort: {{ .Values.ports.control }}
        - name: health
          containerPort: {{ .Values.ports.health }}
        {{- if .Values.admin.enabled }}
        - name: admin
          containerPort: {{ .Values.ports.admin }}
        {{- end }}
        {{- if .Values.protection.listen }}
        - name: protection
          containerPort: {{ .Values.ports.protection }}
        {{- end }}
      # Alive is enough: a start may have to wait for its API server.
      startupProbe:
        httpGet:
          path: /livez
          port: health
          scheme: {{ include "portcullis.healthScheme" . | upper }}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /livez
          port: health
          scheme: {{ include "portcullis.healthScheme" . | upper }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: health
          scheme: {{ include "portcullis.healthScheme" . | upper }}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        {{- include "portcullis.mounts" . | nindent 8 }}
  {{- with include "portcullis.volumes" . | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
{{- end }}
