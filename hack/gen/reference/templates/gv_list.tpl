{{- define "gvList" -}}
# Custom resources

`make generate` writes this page from the types in [api/v1alpha1](../../api/v1alpha1). `kubectl explain` shows the same descriptions. Site, SiteClass, Webhook and WebhookEvent have the same fields in `v1beta1`, the version to use in new manifests ([versions](../versions.md#apis)). [Sites](../guides/sites.md) and [webhooks](../guides/webhooks.md) have guides.
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
