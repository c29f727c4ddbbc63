{{/* Certificates of cert-manager. Without an issuerRef, the chart creates their authority. */}}
{{- define "paddock.certManager" -}}
{{- $issuer := .Values.certificates.certManager.issuerRef }}
{{- if not $issuer }}
{{- $issuer = dict "name" "paddock-authority" "kind" "Issuer" }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: paddock-self-signed
  namespace: {{ .Release.Namespace }}
  labels: {{ include "paddock.labels" . | nindent 4 }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: paddock-authority
  namespace: {{ .Release.Namespace }}
  labels: {{ include "paddock.labels" . | nindent 4 }}
spec:
  isCA: true
  commonName: paddock
  secretName: paddock-authority
  duration: 87600h
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Never}
  issuerRef: {name: paddock-self-signed, kind: Issuer}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: paddock-authority
  namespace: {{ .Release.Namespace }}
  labels: {{ include "paddock.labels" . | nindent 4 }}
spec:
  ca: {secretName: paddock-authority}
{{- end }}
{{- $certificates := dict }}
{{- if include "paddock.needsCertificate" . }}
{{- $_ := set $certificates "paddock-apiserver-tls" (include "paddock.certificateNames" . | fromYamlArray) }}
{{- end }}
{{- if .Values.admission.webhook }}
{{- $_ := set $certificates "paddock-controller-tls" (list (include "paddock.webhookName" .)) }}
{{- end }}
{{- range $name, $dnsNames := $certificates }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels: {{ include "paddock.labels" $ | nindent 4 }}
spec:
  secretName: {{ $name }}
  duration: {{ $.Values.certificates.certManager.duration }}
  dnsNames: {{ toYaml $dnsNames | nindent 2 }}
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  issuerRef: {{ toYaml $issuer | nindent 4 }}
{{- end }}
{{- end }}
