package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a value of the chart that users can set.
type value struct {
	// path has the names from the root to the value, separated by dots.
	path string
	// fallback is the default, as JSON.
	fallback string
	text     string
}

// parse returns the values with a comment that contains "# -- ". A value without such a comment must
// be a mapping with further values; otherwise parse fails.
func parse(source []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the document must be one YAML mapping")
	}
	return collect("", document.Content[0])
}

func collect(prefix string, group *yaml.Node) ([]value, error) {
	var all []value
	for i := 0; i+1 < len(group.Content); i += 2 {
		key, node := group.Content[i], group.Content[i+1]
		path := prefix + key.Value
		if text, documented := comment(key.HeadComment); documented {
			fallback, err := compact(node)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, value{path: path, fallback: fallback, text: text})
			continue
		}
		if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
			return nil, fmt.Errorf(`%s has no comment that begins with "# -- "`, path)
		}
		below, err := collect(path+".", node)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// comment returns the text of a comment after "# -- " in one line, and whether there is any.
func comment(head string) (string, bool) {
	_, text, found := strings.Cut(head, "# -- ")
	text = strings.ReplaceAll(text, "\n# ", " ")
	return strings.TrimSpace(text), found
}

func compact(node *yaml.Node) (string, error) {
	var decoded any
	if err := node.Decode(&decoded); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
