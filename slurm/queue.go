package slurm

import (
	"strconv"
	"strings"
)

// Entry is the batch system's record of a job, or of one task of an array. States are those of Slurm.
type Entry struct {
	ID       string
	Task     int    // of the array; -1: no array, or all queued tasks
	State    string // PENDING, RUNNING, …
	Reason   string // why the job waits
	Restarts int
}

// Queue queries the named batch system for a job. An array has an entry for each task that has left the
// queue. Batch systems forget an ended job after some time.
func Queue(scheduler, id string) ([]Entry, error) {
	s := schedulerOf(scheduler)
	return s.queue(s, id)
}

func slurmQueue(s *scheduler, id string) ([]Entry, error) {
	text, err := s.run(nil, "scontrol", "--oneliner", "show", "job", id)
	if err != nil {
		return nil, err
	}
	return parseQueue(text), nil
}

// parseQueue parses lines of "Key=Value Key=Value". It ignores the rest of a line from Command on,
// where values are paths that may contain anything.
func parseQueue(text string) []Entry {
	var list []Entry
	for _, line := range strings.Split(text, "\n") {
		e := Entry{Task: -1}
		line, _, _ = strings.Cut(line, " Command=")
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "JobId":
				e.ID = value
			case "ArrayTaskId":
				if n, err := strconv.Atoi(value); err == nil {
					e.Task = n
				}
			case "JobState":
				e.State = value
			case "Reason":
				e.Reason = value
			case "Restarts":
				e.Restarts = number(value)
			}
		}
		if e.ID != "" {
			list = append(list, e)
		}
	}
	return list
}

// entryOf returns the entry of a task, or the entry without a task number.
func entryOf(list []Entry, task int) (Entry, bool) {
	for _, want := range []int{task, -1} {
		for _, e := range list {
			if e.Task == want {
				return e, true
			}
		}
	}
	return Entry{}, false
}

// ended reports whether no process of a job writes any more.
func (e Entry) ended() bool {
	p := phase(e, true)
	return p == Failed || p == Cancelled || e.State == "COMPLETING"
}
