package plan

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// steps are the parts of the work on a plan: the present one, for lines of progress, and those
// skipped because of the time limit.
type steps struct {
	start   time.Time
	until   time.Time // zero: no limit
	present atomic.Pointer[string]
	skipped []string
}

func newSteps(limit time.Duration) *steps {
	s := &steps{start: time.Now()}
	if limit > 0 {
		s.until = s.start.Add(limit)
	}
	s.begin("reading the dataset")
	return s
}

func (s *steps) begin(step string) { s.present.Store(&step) }

// over reports whether the time limit is reached.
func (s *steps) over() bool { return !s.until.IsZero() && !time.Now().Before(s.until) }

func (s *steps) skip(step string) { s.skipped = append(s.skipped, step) }

// line is a line of progress.
func (s *steps) line() string {
	return fmt.Sprintf("siafu plan: %s, after %s", *s.present.Load(), time.Since(s.start).Round(time.Second))
}

// skippedText returns a sentence on the skipped steps, empty without one.
func (s *steps) skippedText(limit time.Duration) string {
	if len(s.skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("Not estimated within --max-time %v: %s. Set more --max-time, or partition the dataset first: counts of shards are "+
		"read.", limit, strings.Join(s.skipped, "; "))
}
