{{/* Labels of every object. */}}
{{- define "paddock.labels" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: paddock
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- range $name, $value := .Values.commonLabels }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Selector of a component's pods. It must never change. Takes the component's name. */}}
{{- define "paddock.selector" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Enabled components, as a YAML list. */}}
{{- define "paddock.components" -}}
- controller
- facade
{{- range list "aggregated" "delivery" }}
{{- if (index $.Values .).enabled }}
- {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels of a component's objects. Takes a dict of root and component. */}}
{{- define "paddock.componentLabels" -}}
{{ include "paddock.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Reference of an image. Takes a dict of root and image: apiserver or controller. */}}
{{- define "paddock.image" -}}
{{- $image := index .root.Values.image .image -}}
{{- $name := printf "%s/%s" .root.Values.image.registry $image.repository -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Address of the facade's Service inside the cluster. */}}
{{- define "paddock.facadeAddress" -}}
{{- $scheme := ternary "https" "http" .Values.facade.tls.enabled -}}
{{- $port := include "paddock.facadePort" . -}}
{{ $scheme }}://paddock-facade.{{ .Release.Namespace }}.svc
{{- if ne $port (ternary "443" "80" .Values.facade.tls.enabled) }}:{{ $port }}{{ end -}}
{{- end }}

{{- define "paddock.facadePort" -}}
{{ .Values.facade.service.port | default (ternary 443 80 .Values.facade.tls.enabled) }}
{{- end }}

{{/* Name of the objects that back up a Site, at most 52 characters, as CronJobs require. Takes the Site of backup.sites. */}}
{{- define "paddock.backupName" -}}
paddock-backup-{{ trunc 28 .name | trimSuffix "-" | trimSuffix "." }}-{{ printf "%s/%s" .namespace .name | sha256sum | trunc 8 }}
{{- end }}

{{/* First of a list of hosts that is no wildcard. */}}
{{- define "paddock.firstHost" -}}
{{- $named := list -}}
{{- range . }}{{ if not (hasPrefix "*" .) }}{{ $named = append $named . }}{{ end }}{{ end -}}
{{- if not $named }}{{ fail "set publicURL: all hosts are wildcards" }}{{ end -}}
{{ first $named }}
{{- end }}

{{- define "paddock.publicURL" -}}
{{- if .Values.publicURL -}}
{{ .Values.publicURL }}
{{- else if .Values.ingress.hosts -}}
{{ ternary "https" "http" (not (empty .Values.ingress.tls.secretName)) }}://{{ include "paddock.firstHost" .Values.ingress.hosts }}
{{- else if and .Values.httpRoute.parentRefs .Values.httpRoute.hostnames -}}
https://{{ include "paddock.firstHost" .Values.httpRoute.hostnames }}
{{- else -}}
{{ include "paddock.facadeAddress" . }}
{{- end -}}
{{- end }}

{{/* Name of the Secret with the keys of tokens. Charts up to 0.1.0 created another one, paddock-page-token. */}}
{{- define "paddock.pageTokenSecret" -}}
{{ .Values.pageToken.existingSecret | default "paddock-page-token-key" }}
{{- end }}

{{/* Flags with the files of keys. An existing Secret has a single key, from which the API servers derive the others. */}}
{{- define "paddock.keyArgs" -}}
{{- if .Values.pageToken.existingSecret -}}
- --page-token-key-file=/etc/paddock/page-token/key
{{- else -}}
- --page-token-key-file=/etc/paddock/page-token/page
- --hold-key-file=/etc/paddock/page-token/hold
- --feed-key-file=/etc/paddock/page-token/feed
{{- end -}}
{{- end }}

{{/* Items of that Secret to mount. */}}
{{- define "paddock.keyItems" -}}
{{- ternary "[{key: key, path: key}]" "[{key: page, path: page}, {key: hold, path: hold}, {key: feed, path: feed}]" (not (empty .Values.pageToken.existingSecret)) -}}
{{- end }}

{{- define "paddock.certificateSecret" -}}
{{- if eq .Values.certificates.mode "existingSecret" -}}
{{ required "certificates.mode existingSecret needs certificates.existingSecret" .Values.certificates.existingSecret }}
{{- else -}}
paddock-apiserver-tls
{{- end -}}
{{- end }}

{{/* Certificate authority of an existing certificate, in base64. */}}
{{- define "paddock.caBundle" -}}
{{- $name := include "paddock.certificateSecret" . -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $name | default dict -}}
{{- $authority := dig "data" "ca.crt" "" $found -}}
{{- if .Values.certificates.caBundle -}}
{{- $authority = b64enc .Values.certificates.caBundle -}}
{{- end -}}
{{ required (printf "certificates.mode existingSecret needs certificates.caBundle: Secret %s/%s does not exist or has no ca.crt" .Release.Namespace $name) $authority }}
{{- end }}

{{/* "true" if certificates.caBundle has the authority of an existing certificate, whose Secret may have none. Else empty. */}}
{{- define "paddock.givenAuthority" -}}
{{- if and (eq .Values.certificates.mode "existingSecret") .Values.certificates.caBundle }}true{{ end -}}
{{- end }}

{{/* Source of a volume with the authority of the facade's certificate, as ca.crt. */}}
{{- define "paddock.authoritySource" -}}
{{- if include "paddock.givenAuthority" . -}}
configMap: {name: paddock-given-authority, defaultMode: 0440}
{{- else -}}
secret: {secretName: {{ include "paddock.certificateSecret" . }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
{{- end -}}
{{- end }}

{{/* Name of the Secret with the certificate of the controller's webhook server. */}}
{{- define "paddock.webhookSecret" -}}
{{- if eq .Values.certificates.mode "existingSecret" -}}
{{ include "paddock.certificateSecret" . }}
{{- else -}}
paddock-controller-tls
{{- end -}}
{{- end }}

{{/* "true" if any API server has a certificate, else empty. */}}
{{- define "paddock.needsCertificate" -}}
{{- if or .Values.aggregated.enabled .Values.facade.tls.enabled }}true{{ end -}}
{{- end }}

{{/* DNS names of the API servers' certificate, as a YAML list. */}}
{{- define "paddock.certificateNames" -}}
{{- range $service := list "paddock-aggregated" "paddock-facade" }}
- {{ $service }}.{{ $.Release.Namespace }}.svc
- {{ $service }}.{{ $.Release.Namespace }}.svc.cluster.local
{{- end }}
{{- end }}

{{/* DNS name of the webhook server's certificate. kube-apiserver connects by this name only. */}}
{{- define "paddock.webhookName" -}}
paddock-controller.{{ .Release.Namespace }}.svc
{{- end }}

{{/*
Objects from files, with the release's namespace and labels added. The files are copies of config/, which
kustomize also installs. Takes a dict of root, glob, and annotations and labels (dicts) to add.
*/}}
{{- define "paddock.files" -}}
{{- $root := .root -}}
{{- $annotations := .annotations -}}
{{- range $path, $_ := $root.Files.Glob .glob }}
{{- $text := $root.Files.Get $path | replace "paddock-system" $root.Release.Namespace }}
{{- range $document := regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml $document }}
{{- if $object }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" $path $object.Error) }}{{ end }}
{{- $metadata := $object.metadata }}
{{- $_ := set $metadata "labels" (merge (dict) ($metadata.labels | default dict) ($.labels | default dict) (include "paddock.labels" $root | fromYaml)) }}
{{- if $annotations }}
{{- $_ := set $metadata "annotations" (merge (dict) ($metadata.annotations | default dict) $annotations) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Port of a URL. */}}
{{- define "paddock.portOf" -}}
{{ regexFind ":[0-9]+/?$" . | trimPrefix ":" | trimSuffix "/" | default (ternary "80" "443" (hasPrefix "http://" .)) }}
{{- end }}

{{/* Ports of the proxies, as a YAML list. */}}
{{- define "paddock.proxyPorts" -}}
{{- range list .Values.proxy.httpProxy .Values.proxy.httpsProxy }}
{{- if . }}
- {{ include "paddock.portOf" (contains "://" . | ternary . (printf "http://%s" .)) }}
{{- end }}
{{- end }}
{{- end }}
