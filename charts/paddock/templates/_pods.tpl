{{/* Fields of the pods of all programs. Takes a dict of root and component. */}}
{{- define "paddock.podSettings" -}}
{{- $values := index .root.Values .component -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.priorityClass.name }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- if $values.hostNetwork }}
hostNetwork: true
{{- end }}
{{- with $values.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" $values.hostNetwork) }}
dnsPolicy: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{ include "paddock.selector" $.component | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Strategy of a Deployment: new pods first, unless they need the ports of a node. Takes a dict of root and component. */}}
{{- define "paddock.strategy" -}}
{{- $values := index .root.Values .component -}}
rollingUpdate: {{ ternary "{maxUnavailable: 1, maxSurge: 0}" "{maxUnavailable: 0, maxSurge: 1}" $values.hostNetwork }}
{{- end }}

{{/* Metadata of the pods. Takes a dict of root and component. */}}
{{- define "paddock.podMetadata" -}}
{{- $values := index .root.Values .component -}}
labels: {{ merge (dict) (include "paddock.componentLabels" . | fromYaml) ($values.podLabels | default dict) | toYaml | nindent 2 }}
{{- with $values.podAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Fields of the containers of all programs. Takes a dict of root and component. */}}
{{- define "paddock.containerSettings" -}}
{{- $values := index .root.Values .component -}}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
# The Go runtime collects garbage more often as the heap approaches the memory limit.
{{- if dig "limits" "memory" "" ($values.resources | default dict) }}
- name: GOMEMLIMIT
  valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "1"}}
{{- end }}
{{- range $name, $value := dict "HTTP_PROXY" .root.Values.proxy.httpProxy "HTTPS_PROXY" .root.Values.proxy.httpsProxy "NO_PROXY" .root.Values.proxy.noProxy }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- with $values.resources }}
resources: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
livenessProbe:
  httpGet: {path: /livez, port: health}
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Flags of all programs. */}}
{{- define "paddock.commonArgs" -}}
- --log-level={{ .Values.logLevel }}
- --health-address=:8081
{{- with .Values.postgresNetworks }}
- --postgres-networks={{ join "," . }}
{{- end }}
{{- with .Values.issuerNetworks }}
- --issuer-networks={{ join "," . }}
{{- end }}
{{- end }}

{{/* Additional flags of the API servers. */}}
{{- define "paddock.storageArgs" -}}
- --cluster-max-records={{ .Values.clusterStorage.maxRecords | int64 }}
- --cluster-max-bytes={{ .Values.clusterStorage.maxBytes | int64 }}
{{- with .Values.auditLog.path }}
- --audit-log-path={{ . }}
{{- end }}
{{- end }}

{{/*
The API servers complete their requests within 20 s of SIGTERM. During the pause before it, nodes and
ingress controllers remove the pod from their endpoints.
*/}}
{{- define "paddock.drain" -}}
lifecycle:
  preStop:
    sleep: {seconds: 5}
{{- end }}
