{{/* What the controller is told of the addresses that Sites may have. */}}
{{- define "paddock.exposureArgs" -}}
- --facade-port={{ include "paddock.facadePort" . }}
{{- with .Values.ingress }}
{{- with concat .hosts .siteHosts | uniq }}
- {{ printf "--ingress-hosts=%s" (join "," .) | quote }}
- --ingress-scheme={{ include "paddock.ingressScheme" $ }}
{{- with $.Values.ingress.className }}
- --ingress-class={{ . }}
{{- end }}
{{- range $name, $value := $.Values.ingress.annotations }}
{{/* The kubelet replaces $(NAME) in arguments. */ -}}
- {{ printf "--ingress-annotation=%s=%s" $name $value | replace "$(" "$$(" | quote }}
{{- end }}
{{- with $.Values.ingress.tls.secretName }}
- --ingress-tls-secret={{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.gateways }}
- --gateways={{ join "," . }}
{{- end }}
{{- end }}

{{/* TLS may also end before the ingress controller, where publicURL says so. */}}
{{- define "paddock.ingressScheme" -}}
{{ ternary "https" "http" (or (not (empty .Values.ingress.tls.secretName)) (hasPrefix "https://" .Values.publicURL)) }}
{{- end }}
