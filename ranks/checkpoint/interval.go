package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"siafu/internal/fault"
)

// Interval is how often a run saves. The zero value means never.
type Interval struct {
	Epochs int           // after every epoch that this divides
	Time   time.Duration // at the first epoch's end after this time
}

// ParseInterval parses 20e (epochs), a time such as 10m or 90s, or 0 or off. A fault has
// kind Usage and names --checkpoint-every.
func ParseInterval(s string) (Interval, error) {
	if s == "off" || s == "0" {
		return Interval{}, nil
	}
	if digits, ok := strings.CutSuffix(s, "e"); ok {
		n, err := strconv.Atoi(digits)
		if err == nil && n > 0 {
			return Interval{Epochs: n}, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return Interval{Time: d}, nil
	}
	return Interval{}, fault.New(fault.Usage, "train", "", "--checkpoint-every=%q", s).
		Then("it must be epochs such as 20e, a time such as 10m or 90s, or off")
}

// Due reports whether to save at the end of an epoch. since is the time of the last
// checkpoint, or of the start. Only the clock of rank 0 counts: rank 0 decides for all
// ranks.
func (i Interval) Due(epoch int, since time.Time) bool {
	switch {
	case i.Epochs > 0:
		return epoch%i.Epochs == 0
	case i.Time > 0:
		return time.Since(since) >= i.Time
	}
	return false
}

// String returns the form that ParseInterval parses.
func (i Interval) String() string {
	switch {
	case i.Epochs > 0:
		return fmt.Sprintf("%de", i.Epochs)
	case i.Time > 0:
		return i.Time.String()
	}
	return "off"
}
