{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}
{{ if $type.IsAlias }}
_{{ markdownRenderTypeLink $type.UnderlyingType }}_
{{ end }}
{{- with $type.Doc }}
{{ . }}
{{ end }}
{{- if $type.Validation }}
Validation:
{{ range $type.Validation }}
- `{{ . }}`
{{- end }}
{{ end }}
{{- if $type.References }}
Used by: {{ range $i, $reference := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $reference }}{{ end }}
{{ end }}
{{- if $type.Members }}
| field | description | default | validation |
|---|---|---|---|
{{ if $type.GVK -}}
| `apiVersion` _string_ | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | | |
| `kind` _string_ | `{{ $type.GVK.Kind }}` | | |
{{ end -}}
{{ range $type.Members -}}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ range $i, $rule := .Validation }}{{ if $i }} <br /> {{ end }}{{ markdownRenderFieldDoc $rule }}{{ end }} |
{{ end -}}
{{ end -}}
{{ if $type.EnumValues }}
| value | description |
|---|---|
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end -}}
{{ end -}}
{{- end -}}
{{- end -}}
