package guides

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is a fenced code block of a guide.
type block struct {
	// line is the number of its first line in the guide.
	line     int
	language string
	text     string
	// excuse is the reason for which the block is not run. It is empty if there is none.
	excuse string
	// refusals are the HTTP statuses from 400 that the curl commands of the block are meant to get.
	refusals []string
}

var (
	// fence is the first or the last line of a block.
	fence = regexp.MustCompile("^( *)```+ *([A-Za-z0-9+-]*)")
	// notRun excuses the block after it, nothingRun all blocks of the guide.
	notRun     = regexp.MustCompile(`^ *<!-- not run: (.+) -->$`)
	nothingRun = regexp.MustCompile(`^<!-- no block is run: (.+) -->$`)
	// refused lists the statuses from 400 that the block after it is meant to get.
	refused = regexp.MustCompile(`^ *<!-- refused: ([0-9, ]+) -->$`)
)

// blocksOf returns the blocks of a guide. A comment applies to a block if only empty lines and
// other comments are between them.
func blocksOf(guide string) ([]block, error) {
	var all []block
	var open *block
	var next block // what comments say about the block after them
	indent, everywhere := "", ""
	for i, line := range strings.Split(guide, "\n") {
		at := fence.FindStringSubmatch(line)
		switch {
		case open != nil && at != nil:
			all = append(all, *open)
			open, next = nil, block{}
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case at != nil:
			next.line, next.language = i+2, at[2]
			if next.excuse == "" {
				next.excuse = everywhere
			}
			indent, open = at[1], &next
		case notRun.MatchString(line):
			next.excuse = notRun.FindStringSubmatch(line)[1]
		case nothingRun.MatchString(line):
			everywhere = nothingRun.FindStringSubmatch(line)[1]
		case refused.MatchString(line):
			next.refusals = strings.FieldsFunc(refused.FindStringSubmatch(line)[1], func(r rune) bool { return r == ',' || r == ' ' })
		case strings.TrimSpace(line) != "":
			if next.excuse != "" || next.refusals != nil {
				return nil, fmt.Errorf("line %d: the comment before it belongs to no block", i+1)
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.line)
	}
	return all, nil
}

func TestBlocksOf(t *testing.T) {
	tests := map[string]struct {
		guide string
		want  []block
		err   string
	}{
		"no block": {guide: "# Title\n\n`code`\n"},
		"a block": {
			guide: "a\n```sh\nls\n\npwd\n```\nb\n",
			want:  []block{{line: 3, language: "sh", text: "ls\n\npwd\n"}},
		},
		"a block in a list": {
			guide: "1. a\n\n   ```sh\n   ls\n     x\n   ```\n",
			want:  []block{{line: 4, language: "sh", text: "ls\n  x\n"}},
		},
		"an excuse, for one block only": {
			guide: "<!-- not run: it never ends -->\n```sh\nlisten\n```\n```\nout\n```\n",
			want:  []block{{line: 3, language: "sh", text: "listen\n", excuse: "it never ends"}, {line: 6, text: "out\n"}},
		},
		"an excuse of all blocks": {
			guide: "# A\n<!-- no block is run: no node -->\n\n```sh\na\n```\n<!-- not run: other -->\n```sh\nb\n```\n",
			want:  []block{{line: 5, language: "sh", text: "a\n", excuse: "no node"}, {line: 9, language: "sh", text: "b\n", excuse: "other"}},
		},
		"refusals": {
			guide: "<!-- refused: 409, 412 -->\n\n```sh\na\n```\n",
			want:  []block{{line: 4, language: "sh", text: "a\n", refusals: []string{"409", "412"}}},
		},
		"a comment far from a block": {guide: "<!-- not run: it never ends -->\ntext\n```sh\na\n```\n", err: "line 2: the comment before it belongs to no block"},
		"a comment without a reason": {
			guide: "<!-- not run: -->\n```sh\na\n```\n",
			want:  []block{{line: 3, language: "sh", text: "a\n"}},
		},
		"no end": {guide: "```sh\na\n", err: "line 2: the block has no end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := blocksOf(test.guide)
			if (err != nil || test.err != "") && fmt.Sprint(err) != test.err {
				t.Fatalf("error: got %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(block{})); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
		})
	}
}
