package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// describe returns the chart's schema with the comments of values.yaml as the descriptions of its
// values. Editors show them.
func describe(chart string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	// The schema is parsed as YAML, a superset of JSON, because a yaml.Node keeps the order of members.
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("read values.schema.json: %w", err)
	}
	for _, v := range values {
		node := document.Content[0]
		for name := range strings.SplitSeq(v.path, ".") {
			if node = member(member(node, "properties"), name); node == nil {
				return nil, fmt.Errorf("values.schema.json does not have the value %s", v.path)
			}
		}
		setDescription(node, v.text)
	}
	var out bytes.Buffer
	if err := writeNode(&out, document.Content[0], "\n"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// member returns the value of a name in a mapping, or nil.
func member(mapping *yaml.Node, name string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// setDescription replaces the description, or adds one as the first member.
func setDescription(schema *yaml.Node, text string) {
	if there := member(schema, "description"); there != nil {
		there.Value = text
		return
	}
	scalar := func(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value} }
	schema.Content = append([]*yaml.Node{scalar("description"), scalar(text)}, schema.Content...)
}

// writeNode writes a node as indented JSON. newline is a line break and the indentation of the node.
func writeNode(out *bytes.Buffer, node *yaml.Node, newline string) error {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str":
		return writeText(out, node.Value)
	case node.Kind == yaml.ScalarNode:
		out.WriteString(node.Value)
		return nil
	case len(node.Content) == 0:
		out.WriteString(map[yaml.Kind]string{yaml.MappingNode: "{}", yaml.SequenceNode: "[]"}[node.Kind])
		return nil
	}
	step, brackets := 1, "[]"
	if node.Kind == yaml.MappingNode {
		step, brackets = 2, "{}"
	}
	out.WriteByte(brackets[0])
	for i := 0; i < len(node.Content); i += step {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(newline + "  ")
		if step == 2 {
			if err := writeText(out, node.Content[i].Value); err != nil {
				return err
			}
			out.WriteString(": ")
		}
		if err := writeNode(out, node.Content[i+step-1], newline+"  "); err != nil {
			return err
		}
	}
	out.WriteString(newline)
	out.WriteByte(brackets[1])
	return nil
}

// writeText writes a JSON string without escapes for <, > and &.
func writeText(out *bytes.Buffer, text string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the line break
	return nil
}
