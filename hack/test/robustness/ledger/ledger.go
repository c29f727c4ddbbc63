// Package ledger keeps the results of seeded fault runs in a file, so that a series of runs can be
// continued and counted. A result is valid only for the code that was tested: see Digest.
package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// The verdicts.
const (
	Passed = "passed"
	Failed = "failed"
)

// Row is the result of one run.
type Row struct {
	Engine string
	Seed   uint64
	// Commit is the commit that was checked out.
	Commit string
	// Code is the digest of the code under test.
	Code    string
	Faults  string
	Verdict string
	// Operations is the number of requests whose effects were checked.
	Operations int
}

// header names the columns.
const header = "engine\tseed\tcommit\tcode\tfaults\tverdict\toperations\n"

func (r Row) line() string {
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%d\n", r.Engine, r.Seed, r.Commit, r.Code, r.Faults, r.Verdict, r.Operations)
}

func parse(line string) (Row, error) {
	columns := strings.Split(line, "\t")
	if len(columns) != strings.Count(header, "\t")+1 {
		return Row{}, fmt.Errorf("got %d columns, want the %d of the first line", len(columns), strings.Count(header, "\t")+1)
	}
	seed, seedErr := strconv.ParseUint(columns[1], 10, 64)
	operations, operationsErr := strconv.Atoi(columns[6])
	if err := cmp.Or(seedErr, operationsErr); err != nil {
		return Row{}, err
	}
	if columns[5] != Passed && columns[5] != Failed {
		return Row{}, fmt.Errorf("column verdict is %q, want %s or %s", columns[5], Passed, Failed)
	}
	return Row{columns[0], seed, columns[2], columns[3], columns[4], columns[5], operations}, nil
}

// Ledger is the file with the results. It is not safe for concurrent use.
type Ledger struct {
	path string
	code string
	rows []Row
}

// Open reads the ledger for runs of the code with the digest. It removes rows of other code from the
// file, except failed runs. The file need not exist.
func Open(path, code string) (*Ledger, error) {
	l := &Ledger{path: path, code: code}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the ledger %s: %w", path, err)
	}
	kept := []byte(header)
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		if number == 1 {
			if line != header {
				return nil, fmt.Errorf("read the ledger %s: the first line is %q, want %q", path, line, header)
			}
			continue
		}
		row, err := parse(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("read the ledger %s: line %d: %w", path, number, err)
		}
		if row.Code == code || row.Verdict == Failed {
			l.rows = append(l.rows, row)
			kept = append(kept, line...)
		}
	}
	if !bytes.Equal(kept, content) {
		if err := os.WriteFile(path, kept, 0o644); err != nil {
			return nil, fmt.Errorf("write the ledger %s: %w", path, err)
		}
	}
	return l, nil
}

// Append adds the result of a run. The digest of the code is that of the ledger.
func (l *Ledger) Append(row Row) error {
	row.Code = l.code
	l.rows = append(l.rows, row)
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write the ledger %s: %w", l.path, err)
	}
	_, err = file.WriteString(row.line())
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the ledger %s: %w", l.path, err)
	}
	return nil
}

// Verdict returns the verdict of a seed for the code of the ledger. It is Failed if any run of the
// seed failed, and empty if there was no run.
func (l *Ledger) Verdict(engine string, seed uint64) string {
	verdict := ""
	for _, row := range l.rows {
		if row.Code != l.code || row.Engine != engine || row.Seed != seed {
			continue
		}
		if row.Verdict == Failed {
			return Failed
		}
		verdict = row.Verdict
	}
	return verdict
}

// Count returns the number of seeds of an engine that passed and of those that failed, for the code of
// the ledger.
func (l *Ledger) Count(engine string) (passed, failed int) {
	counted := map[uint64]bool{}
	for _, row := range l.rows {
		if row.Engine != engine || counted[row.Seed] {
			continue
		}
		switch l.Verdict(engine, row.Seed) {
		case Passed:
			passed++
		case Failed:
			failed++
		default:
			continue // a failed run of other code
		}
		counted[row.Seed] = true
	}
	return passed, failed
}
