package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// portion are lines that one request sends.
type portion struct {
	lines  []byte
	places []place
	// records has the record of each line, see recordsOf. It is nil in the native format.
	records []string
	// next and offset are importProgress.Next and Offset after the portion.
	next   place
	offset int64
	size   int64
	result siteapi.ImportResult
	err    error
	done   chan struct{}
}

// sendFiles sends the lines of all files from state.Next on. Portions are sent concurrently, and
// recorded in the order of the files.
func (i *importer) sendFiles(ctx context.Context, files []importedFile) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan *portion, workers) // in the order of the files
	slots := make(chan struct{}, workers)
	read := make(chan error, 1)
	go func() {
		defer close(sent)
		sentBefore := make(chan struct{}) // closed when the portion before has been sent
		close(sentBefore)
		var recent []*portion // all portions that have not been sent are among these
		read <- i.readFiles(files, func(p *portion) error {
			before, earlier := sentBefore, recent
			sentBefore = p.done
			if !i.native {
				p.records = recordsOf(p.lines)
			}
			recent = append(slices.Clone(recent[max(0, len(recent)-maxUnsent+1):]), p)
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			go func() {
				defer func() { <-slots }()
				defer close(p.done)
				if part, _ := partOf(p.lines); part > 1 {
					<-before // the portion before usually has the previous part
				}
				for _, q := range earlier {
					if q.sharesRecord(p) {
						<-q.done // the last line of a record must be written last
					}
				}
				p.result, p.err = i.sendPortion(ctx, p)
				p.lines = nil // later portions refer to p
			}()
			select {
			case sent <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	for p := range sent {
		<-p.done
		if p.err != nil {
			return p.err
		}
		if err := errors.Join(i.record(p, true), i.save()); err != nil {
			return err
		}
		i.progress.Add(p.size, int64(len(p.places)))
	}
	return <-read
}

// sharesRecord reports whether two portions have lines of the same record.
func (p *portion) sharesRecord(other *portion) bool {
	own := make(map[string]bool, len(p.records))
	for _, record := range p.records {
		own[record] = record != ""
	}
	return slices.ContainsFunc(other.records, func(record string) bool { return own[record] })
}

// recordsOf returns the record of each line as {type}/{id}, in lower case, because the case of an id does not
// distinguish records. It is empty for a line that is not a resource with an id, which a site refuses.
func recordsOf(lines []byte) (records []string) {
	for line := range bytes.Lines(lines) {
		var resource struct{ ResourceType, ID string }
		record := ""
		if json.Unmarshal(line, &resource) == nil && resource.ID != "" {
			record = strings.ToLower(resource.ResourceType + "/" + resource.ID)
		}
		records = append(records, record)
	}
	return records
}

// sendPortion sends a portion. A line that is too large is not sent, and fails.
func (i *importer) sendPortion(ctx context.Context, p *portion) (siteapi.ImportResult, error) {
	if len(p.lines) <= maxRequest {
		return i.send(ctx, p.lines, i.dryRun)
	}
	message := fmt.Sprintf("the line has %d bytes; a site accepts at most %d", len(p.lines), maxRequest)
	return siteapi.ImportResult{Counts: map[string]int{"failed": 1}, Errors: []siteapi.LineError{{Line: 1, Code: tooLarge, Message: message}}}, nil
}

// sendWaiting repeatedly sends the lines that could not be written because of other lines. When a
// repetition writes none of them, those that remain are recorded as failed.
func (i *importer) sendWaiting(ctx context.Context) error {
	for len(i.state.Waiting) > 0 {
		places := make([]place, len(i.state.Waiting))
		for n, line := range i.state.Waiting {
			places[n] = line.place
		}
		var sent []*portion
		missing := map[place]bool{}
		err := i.readPlaces(places, func(p *portion) error {
			if p.result, p.err = i.sendPortion(ctx, p); p.err != nil {
				return p.err
			}
			if !i.native {
				p.records = recordsOf(p.lines)
			}
			p.lines = nil // record does not need them, and together they can be as large as the files
			for _, e := range p.result.Errors {
				if slices.Contains(i.waitsFor, e.Code) && e.Line >= 1 && e.Line <= len(p.places) {
					missing[p.places[e.Line-1]] = true
				}
			}
			sent = append(sent, p)
			return nil
		})
		if err != nil {
			return err
		}
		i.state.Waiting, i.waits = nil, map[string]bool{}
		for _, p := range sent {
			if err := i.record(p, len(missing) < len(places)); err != nil {
				return err
			}
		}
		if err := i.save(); err != nil {
			return err
		}
	}
	return nil
}
