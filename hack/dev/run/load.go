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

// loadExamples puts HL7's official examples into a site that holds no patients
// yet, through the API as any client would.
func loadExamples(ctx context.Context, base, token, bin string) error {
	var found struct {
		Total int `json:"total"`
	}
	answer, err := send(ctx, http.MethodGet, base+"/patient?_summary=count", token, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return fmt.Errorf("count the patients: %w", err)
	}
	if found.Total > 0 {
		return nil
	}
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
		if _, err := send(ctx, http.MethodPut, base+"/"+segment.Segment+"/"+example.ID, token, example.JSON); err != nil {
			return fmt.Errorf("load %s/%s: %w", example.Type, example.ID, err)
		}
		_ = bar.Add(1)
	}
	return nil
}

func send(ctx context.Context, method, url, token string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, url, response.Status, answer)
	}
	return answer, err
}
