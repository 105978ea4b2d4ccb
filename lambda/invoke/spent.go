package invoke

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"

	"siafu/kernels/task"
)

// spent returns the usage of an invocation: the usage in the tail of its log, or else the wall time
// from the request to the response.
func spent(name task.Name, tail *string, wall time.Duration) *task.Spent {
	s := &task.Spent{Name: name, Work: wall, Guessed: true}
	if tail == nil {
		return s
	}
	text, err := base64.StdEncoding.DecodeString(*tail)
	if err != nil {
		return s
	}
	if init, work, ok := reported(string(text)); ok {
		s.Init, s.Work, s.Guessed = init, work, false
	}
	return s
}

// durations matches the durations in a report: the initialisation, the billed time and the work.
var durations = regexp.MustCompile(`(Billed |Restore |Init )?Duration: (\d+(?:\.\d+)?) ms`)

// reported reads the durations in the last line of a log that is Lambda's report of an invocation:
//
// \tREPORT RequestId: …  Duration: 12.34 ms  Billed Duration: 113 ms  Memory Size: 192 MB  Max
// Memory Used: 23 MB  Init Duration: 100.12 ms
//
// An invocation in a warm sandbox has no Init Duration.
func reported(log string) (init, work time.Duration, ok bool) {
	at := strings.LastIndex("\n"+log, "\nREPORT RequestId: ")
	if at < 0 {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(log[at:], "\n")
	for _, field := range durations.FindAllStringSubmatch(line, -1) {
		ms, err := strconv.ParseFloat(field[2], 64)
		d := time.Duration(ms * float64(time.Millisecond))
		switch {
		case err != nil || d < 0:
			return 0, 0, false
		case field[1] == "":
			work, ok = d, true
		case field[1] == "Init ":
			init = d
		}
	}
	return init, work, ok
}
