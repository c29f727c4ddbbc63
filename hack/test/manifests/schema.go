package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	openapi "github.com/google/gnostic-models/openapiv2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/util/proto/validation"

	"github.com/paddock-health/paddock/hack/dev/module"
)

// Schema has the types of one release of Kubernetes, from its OpenAPI document.
type Schema struct {
	kinds map[schema.GroupVersionKind]proto.Schema
}

// ReadSchema returns the schema in a file: api/openapi-spec/swagger.json of the module
// k8s.io/kubernetes.
func ReadSchema(file string) (*Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := openapi.ParseDocument(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	models, err := proto.NewOpenAPIData(parsed)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	s := &Schema{kinds: map[schema.GroupVersionKind]proto.Schema{}}
	for _, name := range models.ListModels() {
		model := models.LookupModel(name)
		for _, kind := range kindsOf(model) {
			s.kinds[kind] = model
		}
	}
	return s, nil
}

// kindsOf returns the kinds that a model describes. Models of parts of objects have none.
func kindsOf(model proto.Schema) []schema.GroupVersionKind {
	list, ok := model.GetExtensions()["x-kubernetes-group-version-kind"].([]any)
	if !ok {
		return nil
	}
	var kinds []schema.GroupVersionKind
	for _, element := range list {
		members, ok := element.(map[any]any)
		if !ok {
			continue
		}
		text := func(name string) string { return fmt.Sprint(members[name]) }
		kinds = append(kinds, schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")})
	}
	return kinds
}

// Check returns an error for each unknown kind and field, missing required field and value of another
// type in the documents of Kubernetes' own groups. kubectl validates in the same way if a server does
// not validate fields. checked is the number of documents of these groups.
func (s *Schema) Check(text string) (checked int, err error) {
	all, err := documents(text)
	errs := []error{err}
	for _, d := range all {
		model := s.kinds[d.object.GroupVersionKind()]
		if model == nil {
			errs = append(errs, fmt.Errorf("%s %s: the release has no such kind", d.object.GroupVersionKind(), d.object.GetName()))
			continue
		}
		for _, err := range validation.ValidateModel(d.object.Object, model, d.object.GetKind()) {
			errs = append(errs, fmt.Errorf("%s %s: %w", d.object.GetKind(), d.object.GetName(), err))
		}
	}
	return len(all), errors.Join(errs...)
}

// Oldest returns the schema of the oldest supported release of Kubernetes.
func Oldest(ctx context.Context) (*Schema, error) {
	return ofModule(ctx, filepath.Join("hack", "test", "manifests", "oldest"))
}

// Pinned returns the schema of the release that is pinned for tests.
func Pinned(ctx context.Context) (*Schema, error) {
	return ofModule(ctx, filepath.Join("hack", "tools", "kubernetes"))
}

// ofModule downloads k8s.io/kubernetes in the version that the go.mod of a folder requires, and
// reads its schema.
func ofModule(ctx context.Context, folder string) (*Schema, error) {
	bin, err := module.Bin()
	if err != nil {
		return nil, err
	}
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", "k8s.io/kubernetes")
	download.Dir = filepath.Join(filepath.Dir(bin), folder)
	download.Env = append(os.Environ(), "GOWORK=off")
	out, err := download.Output()
	if err != nil {
		return nil, fmt.Errorf("download the schema of Kubernetes: %w: %s", err, out)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return nil, err
	}
	return ReadSchema(filepath.Join(downloaded.Dir, "api", "openapi-spec", "swagger.json"))
}
