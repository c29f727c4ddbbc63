package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chartRepository is the path of the chart below the registry.
const chartRepository = "charts/paddock"

// packageChart packages the chart with the digests of the release's images, so that a chart
// installs these images only.
func (a assembly) packageChart() error {
	c, err := readContents(a.out)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	staged := filepath.Join(dir, "paddock")
	if err := os.CopyFS(staged, os.DirFS(filepath.Join(a.source, "charts", "paddock"))); err != nil {
		return err
	}
	if err := a.setValues(filepath.Join(staged, "values.yaml"), c.Artifacts); err != nil {
		return err
	}
	if err := a.setMetadata(filepath.Join(staged, "Chart.yaml")); err != nil {
		return err
	}
	helm := exec.Command(a.helm, "package", staged, "--destination", dir, "--version", a.version, "--app-version", a.version)
	if out, err := helm.CombinedOutput(); err != nil {
		return fmt.Errorf("helm package: %w: %s", err, out)
	}
	file := "paddock-" + a.version + ".tgz"
	packaged, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	members, err := membersOf(packaged)
	if err != nil {
		return err
	}
	archive, err := pack(a.created, members...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.out, file), archive, 0o644); err != nil {
		return err
	}
	image, err := chartArtifact(archive, c.Revision)
	if err != nil {
		return err
	}
	digest, err := image.digest()
	if err != nil {
		return err
	}
	c.Artifacts = append(c.Artifacts, artifact{Repository: chartRepository, File: file, Digest: digest.String()})
	return writeJSON(filepath.Join(a.out, contentsFile), c)
}

func (a assembly) setValues(path string, images []artifact) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	registry, prefix, _ := strings.Cut(a.registry, "/")
	if prefix != "" {
		prefix += "/"
	}
	lines := strings.Split(string(text), "\n")
	set := map[string]string{"image.registry": registry}
	for _, image := range images {
		set["image."+image.Repository+".repository"] = prefix + image.Repository
		set["image."+image.Repository+".digest"] = image.Digest
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return err
	}
	for path, value := range set {
		node := find(root.Content[0], strings.Split(path, "."))
		if node == nil {
			return fmt.Errorf("values.yaml has no %s", path)
		}
		line := lines[node.Line-1]
		// The value is the rest of its line. Comments are on lines of their own.
		lines[node.Line-1] = line[:node.Column-1] + fmt.Sprintf("%q", value)
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

func find(node *yaml.Node, path []string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Kind == yaml.MappingNode && node.Content[i].Value == path[0] {
			if len(path) == 1 {
				return node.Content[i+1]
			}
			return find(node.Content[i+1], path[1:])
		}
	}
	return nil
}

// setMetadata sets the annotations of Chart.yaml for Artifact Hub: the images, the changes of the
// release, and whether it is a pre-release.
func (a assembly) setMetadata(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var chart map[string]any
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return err
	}
	annotations, found := chart["annotations"].(map[string]any)
	if !found {
		return errors.New("Chart.yaml has no annotations")
	}
	published := regexp.MustCompile(`image: \S+/(\w+):\S+`)
	annotations["artifacthub.io/images"] = published.ReplaceAllString(fmt.Sprint(annotations["artifacthub.io/images"]), "image: "+a.registry+"/$1:"+a.version)
	if annotations["artifacthub.io/changes"], err = a.changeList(); err != nil {
		return err
	}
	annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(a.version, "-"))
	out, err := yaml.Marshal(chart)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o644)
}

// changeList has the changes in the form of Artifact Hub: a list of kinds and descriptions.
func (a assembly) changeList() (string, error) {
	section, err := a.changes()
	if err != nil {
		return "", err
	}
	type change struct{ Kind, Description string }
	var list []change
	kind := "changed"
	for line := range strings.Lines(section) {
		if title, found := strings.CutPrefix(line, "### "); found {
			kind = strings.ToLower(strings.TrimSpace(title))
		} else if text, found := strings.CutPrefix(line, "- "); found {
			list = append(list, change{kind, strings.TrimSpace(text)})
		}
	}
	out, err := yaml.Marshal(list)
	return string(out), err
}

func membersOf(archive []byte) ([]member, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	var members []member
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		members = append(members, member{header.Name, 0o644, content})
	}
}
