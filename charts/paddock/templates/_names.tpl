{{/* Labels of every object. */}}
{{- define "paddock.labels" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: paddock
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* What selects the pods of a component; it never changes. Takes the component's name. */}}
{{- define "paddock.selector" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/component: {{ . }}
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

{{- define "paddock.publicURL" -}}
{{- if .Values.publicURL -}}
{{ .Values.publicURL }}
{{- else if .Values.ingress.hosts -}}
{{ ternary "https" "http" (not (empty .Values.ingress.tls.secretName)) }}://{{ first .Values.ingress.hosts }}
{{- else -}}
{{ include "paddock.facadeAddress" . }}
{{- end -}}
{{- end }}

{{/* The Secret with the key of page tokens. Charts up to 0.1.0 made another, paddock-page-token. */}}
{{- define "paddock.pageTokenSecret" -}}
{{ .Values.pageToken.existingSecret | default "paddock-page-token-key" }}
{{- end }}

{{- define "paddock.certificateSecret" -}}
{{- if eq .Values.certificates.mode "existingSecret" -}}
{{ required "certificates.mode existingSecret needs certificates.existingSecret" .Values.certificates.existingSecret }}
{{- else -}}
paddock-apiserver-tls
{{- end -}}
{{- end }}

{{/* The authority of an existing certificate, in base64. */}}
{{- define "paddock.caBundle" -}}
{{- $name := include "paddock.certificateSecret" . -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $name | default dict -}}
{{- $authority := dig "data" "ca.crt" "" $found -}}
{{- if .Values.certificates.caBundle -}}
{{- $authority = b64enc .Values.certificates.caBundle -}}
{{- end -}}
{{ required (printf "certificates.mode existingSecret needs certificates.caBundle: Secret %s/%s is not there or has no ca.crt" .Release.Namespace $name) $authority }}
{{- end }}

{{/* The Secret with the certificate of the controller's webhook server. */}}
{{- define "paddock.webhookSecret" -}}
{{- if eq .Values.certificates.mode "existingSecret" -}}
{{ include "paddock.certificateSecret" . }}
{{- else -}}
paddock-controller-tls
{{- end -}}
{{- end }}

{{/* Whether any API server has a certificate: "true" or nothing. */}}
{{- define "paddock.needsCertificate" -}}
{{- if or .Values.aggregated.enabled .Values.facade.tls.enabled }}true{{ end -}}
{{- end }}

{{/* Names that the API servers' certificate is for, as a YAML list. */}}
{{- define "paddock.certificateNames" -}}
{{- range $service := list "paddock-aggregated" "paddock-facade" }}
- {{ $service }}.{{ $.Release.Namespace }}.svc
- {{ $service }}.{{ $.Release.Namespace }}.svc.cluster.local
{{- end }}
{{- end }}

{{/* The name that the certificate of the webhook server is for: kube-apiserver asks for no other. */}}
{{- define "paddock.webhookName" -}}
paddock-controller.{{ .Release.Namespace }}.svc
{{- end }}

{{/*
The objects of some files, in the release's namespace and with its labels: the files are those of config/,
which kustomize installs too. Takes a dict of root, glob, and annotations (a dict) to add.
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
{{- $_ := set $metadata "labels" (merge (dict) ($metadata.labels | default dict) (include "paddock.labels" $root | fromYaml)) }}
{{- if $annotations }}
{{- $_ := set $metadata "annotations" (merge (dict) ($metadata.annotations | default dict) $annotations) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
