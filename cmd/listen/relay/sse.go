package relay

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// maxLine is the maximum number of bytes in a line of a stream, which has the body of an event. A
// longer line ends the connection with an error.
const maxLine = 64 << 20

// message is one block of a stream of Server-Sent Events.
type message struct {
	// id is the id of this block, or that of the last earlier block that has one.
	id string
	// event is the name of the event, or empty if the block has none.
	event string
	data  string
}

// reader reads Server-Sent Events (HTML Living Standard §9.2).
type reader struct {
	lines *bufio.Scanner
	id    string
}

func newReader(from io.Reader) *reader {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	lines.Split(splitLines)
	return &reader{lines: lines}
}

// next returns the next block that has data or an id. It calls alive for each line. It omits an
// incomplete block at the end of the stream. Errors: io.EOF, and those of the connection.
func (r *reader) next(alive func()) (message, error) {
	var m message
	var data []string
	has := false
	for r.lines.Scan() {
		alive()
		name, value, _ := strings.Cut(r.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			if !strings.Contains(value, "\x00") {
				r.id, has = value, true
			}
		case "event":
			m.event = value
		case "data":
			data, has = append(data, value), true
		case "":
			if r.lines.Text() == "" && has {
				m.id, m.data = r.id, strings.Join(data, "\n")
				return m, nil
			}
			if r.lines.Text() == "" {
				m = message{}
			}
		}
	}
	if err := r.lines.Err(); err != nil {
		return message{}, err
	}
	return message{}, io.EOF
}

// splitLines is a bufio.SplitFunc for lines that end with CR LF, LF or CR. It omits text after the
// last line end.
func splitLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF:
		return len(data), nil, nil
	case end < 0:
		return 0, nil, nil
	case data[end] == '\n':
		return end + 1, data[:end], nil
	case end+1 < len(data) && data[end+1] == '\n':
		return end + 2, data[:end], nil
	case end+1 == len(data) && !atEOF:
		return 0, nil, nil // LF may follow
	}
	return end + 1, data[:end], nil
}
