{{- define "gvList" -}}
# Custom resources

`make generate` writes this page from the types in [api/v1alpha1](../../api/v1alpha1). `kubectl explain` shows the same descriptions. [Sites](../guides/sites.md) and [webhooks](../guides/webhooks.md) have guides.
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
