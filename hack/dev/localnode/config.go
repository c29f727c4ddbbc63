//go:build linux

package localnode

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"text/template"
)

// configuration has the templates of the configuration files of programs and of the objects of the
// cluster.
//
//go:embed config
var configuration embed.FS

// settings are the values for the templates.
type settings struct {
	Dir            string
	CAFile         string
	CertFile       string
	KeyFile        string
	Kubeconfig     string
	NodeName       string
	PauseImage     string
	CoreDNSImage   string
	PodRange       string
	ServiceRange   string
	DNSAddress     string
	ContainerdSock string
	Volumes        []volume
}

// volume is a folder of dirVolumes. Size is in bytes.
type volume struct {
	Name, Class string
	Size        int64
}

// render writes the template of a name to a file.
func (s settings) render(name, file string) error {
	text, err := configuration.ReadFile("config/" + name)
	if err != nil {
		return err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, s); err != nil {
		return fmt.Errorf("fill in %s: %w", name, err)
	}
	return os.WriteFile(file, content.Bytes(), 0o600)
}
