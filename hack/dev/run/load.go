package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/schollz/progressbar/v3"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/hack/dev/examples"
)

// client sends requests to a site over HTTP, with a token.
type client struct {
	base, token string
}

// countPatients returns how many patients the site has.
func (c client) countPatients(ctx context.Context) (int, error) {
	var found struct {
		Total int `json:"total"`
	}
	answer, err := c.send(ctx, http.MethodGet, "/fhir/patient?_summary=count", nil)
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return 0, fmt.Errorf("count the patients: %w", err)
	}
	return found.Total, nil
}

// loadExamples puts HL7's official examples into a site.
func loadExamples(ctx context.Context, site client, bin string) error {
	path, err := examples.Fetch(ctx, bin)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range r4.Types {
		names = append(names, t.Name)
	}
	all, err := examples.Load(path, names...)
	if err != nil {
		return err
	}
	bar := progressbar.NewOptions(len(all), progressbar.OptionSetDescription("loading HL7's examples"),
		progressbar.OptionSetWriter(os.Stdout), progressbar.OptionShowCount(), progressbar.OptionOnCompletion(func() { fmt.Println() }))
	for _, example := range all {
		segment, _ := r4.TypeOf(example.Type)
		if _, err := site.send(ctx, http.MethodPut, "/fhir/"+segment.Segment+"/"+example.ID, example.JSON); err != nil {
			return fmt.Errorf("load %s/%s: %w", example.Type, example.ID, err)
		}
		_ = bar.Add(1)
	}
	return nil
}

// send sends a request. It is a clinic.Send.
func (c client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, request.URL, response.Status, answer)
	}
	return answer, err
}
