package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	packageurl "github.com/package-url/packageurl-go"
)

const sbomSuffix = ".cdx.json"

// writeSBOM writes the bill of materials of a program: all modules that the linker put into it, as
// `go version -m` shows them, and Go's standard library.
func (a assembly) writeSBOM(program, file string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	bom := billOfMaterials(info, "v"+a.version)
	bom.Metadata.Timestamp = a.created.Format(time.RFC3339)
	bom.Metadata.Component.Name = filepath.Base(program)
	bom.Metadata.Component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	// The serial number identifies the contents, so that it is the same for the same program.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, append(sum[:], file...)).URN()
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.out, file), text.Bytes(), 0o644)
}

func billOfMaterials(info *debug.BuildInfo, version string) *cdx.BOM {
	bom := cdx.NewBOM()
	main := component(debug.Module{Path: info.Main.Path, Version: version})
	main.Type = cdx.ComponentTypeApplication
	properties := []cdx.Property{{Name: "golang:package", Value: info.Path}}
	for _, setting := range info.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" || setting.Key == "CGO_ENABLED" || setting.Key == "-tags" {
			properties = append(properties, cdx.Property{Name: "golang:" + setting.Key, Value: setting.Value})
		}
	}
	main.Properties = &properties
	bom.Metadata = &cdx.Metadata{Component: &main}
	components := []cdx.Component{component(debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(*module))
	}
	bom.Components = &components
	direct := make([]string, 0, len(components))
	for _, c := range components {
		direct = append(direct, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &direct}}
	return bom
}

func component(module debug.Module) cdx.Component {
	namespace, name := "", module.Path
	if slash := strings.LastIndexByte(module.Path, '/'); slash >= 0 {
		namespace, name = module.Path[:slash], module.Path[slash+1:]
	}
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, module.Version, nil, "").ToString()
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: module.Path, Version: module.Version, PackageURL: purl}
	if hash, found := strings.CutPrefix(module.Sum, "h1:"); found {
		if sum, err := base64.StdEncoding.DecodeString(hash); err == nil {
			// This is the hash in go.sum, which is a hash of the list of the module's files with their
			// hashes.
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
		}
	}
	return c
}
