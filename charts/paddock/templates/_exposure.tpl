{{/* Flags of the controller for spec.exposure of Sites. */}}
{{- define "paddock.exposureArgs" -}}
- --facade-port={{ include "paddock.facadePort" . }}
{{- with .Values.ingress }}
{{- with concat .hosts .siteHosts | uniq }}
- {{ printf "--ingress-hosts=%s" (join "," .) | quote }}
- --ingress-scheme={{ include "paddock.ingressScheme" $ }}
{{- with $.Values.ingress.className }}
- --ingress-class={{ . }}
{{- end }}
{{- range $name, $value := include "paddock.ingressAnnotations" $ | fromYaml }}
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

{{/* Annotations of Ingresses. ingress-nginx uses TLS to a backend only with this annotation. */}}
{{- define "paddock.ingressAnnotations" -}}
{{- $own := dict -}}
{{- if .Values.facade.tls.enabled -}}
{{- $own = dict "nginx.ingress.kubernetes.io/backend-protocol" "HTTPS" -}}
{{- end -}}
{{ merge (dict) .Values.ingress.annotations $own | toYaml }}
{{- end }}

{{/* Scheme of the URLs of Ingresses. With an https publicURL, TLS may end in front of the ingress controller. */}}
{{- define "paddock.ingressScheme" -}}
{{ ternary "https" "http" (or (not (empty .Values.ingress.tls.secretName)) (hasPrefix "https://" .Values.publicURL)) }}
{{- end }}
