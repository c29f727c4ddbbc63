package bulk

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// lineInterval and barInterval are the intervals of messages to a file and to a terminal.
	lineInterval, barInterval = 5 * time.Second, 200 * time.Millisecond
	// barWidth is the width of the bar in characters.
	barWidth = 30
)

// Progress shows how much of a command is done: a bar on a terminal, lines elsewhere. It is safe for
// concurrent use.
type Progress struct {
	Out io.Writer
	// Terminal selects the bar. If it is false, Progress writes lines.
	Terminal bool
	// Now returns the current time.
	Now func() time.Time

	mu           sync.Mutex
	began, shown time.Time
	done, total  int64
	skipped      int64
	records      int64
	width        int
}

// Begin sets the total amount of work and the amount that an interrupted command has done, both in
// the same unit, such as bytes.
func (p *Progress) Begin(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.done, p.skipped, p.total = p.Now(), done, done, total
}

// Add adds to the amount of work that is done, in the unit of Begin, and to the number of records.
func (p *Progress) Add(done, records int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.records = p.done+done, p.records+records
	interval := lineInterval
	if p.Terminal {
		interval = barInterval
	}
	if now := p.Now(); now.Sub(p.shown) >= interval {
		p.shown = now
		p.show(p.text(now))
	}
}

// Say shows a message on a line of its own.
func (p *Progress) Say(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.Out, format+"\n", values...)
}

// End removes the bar.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.Terminal && p.width > 0 {
		fmt.Fprintf(p.Out, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

func (p *Progress) show(text string) {
	if !p.Terminal {
		fmt.Fprintln(p.Out, text)
		return
	}
	fmt.Fprintf(p.Out, "\r%-*s", p.width, text)
	p.width = max(p.width, len(text))
}

// text returns how much is done, the rate, and the time that the rest will take at this rate.
func (p *Progress) text(now time.Time) string {
	part := 1.0
	if p.total > 0 {
		part = min(1, float64(p.done)/float64(p.total))
	}
	elapsed := now.Sub(p.began)
	rate := 0.0
	if elapsed > 0 {
		rate = float64(p.records) / elapsed.Seconds()
	}
	text := fmt.Sprintf("%3.0f %%  %d records  %.0f/s", 100*part, p.records, rate)
	if own := p.done - p.skipped; own > 0 && p.total > p.done {
		rest := time.Duration(float64(elapsed) * float64(p.total-p.done) / float64(own))
		text += fmt.Sprintf("  %s left", rest.Round(time.Second))
	}
	if !p.Terminal {
		return text
	}
	filled := int(part * barWidth)
	return "[" + strings.Repeat("=", filled) + strings.Repeat(" ", barWidth-filled) + "] " + text
}
