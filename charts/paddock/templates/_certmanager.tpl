{{/* The certificate as cert-manager is asked for it, by default from an authority of the chart's own. */}}
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
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: paddock-apiserver-tls
  namespace: {{ .Release.Namespace }}
  labels: {{ include "paddock.labels" . | nindent 4 }}
spec:
  secretName: paddock-apiserver-tls
  duration: {{ .Values.certificates.certManager.duration }}
  dnsNames: {{ include "paddock.certificateNames" . | nindent 2 }}
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  issuerRef: {{ toYaml $issuer | nindent 4 }}
{{- end }}
