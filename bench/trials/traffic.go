package trials

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"time"

	"siafu/ranks/runfolder"
)

// Traffic has the bytes that the network interfaces of a training's hosts sent, summed over the
// hosts: everything that ranks and mpirun exchange, with the headers of packets.
type Traffic struct {
	Setup   float64 `json:"setup_bytes"`       // before the first epoch
	Epoch   float64 `json:"epoch_bytes"`       // per epoch, without the first and the last one; includes evaluations between them
	Missing string  `json:"missing,omitempty"` // reason why there are no numbers
}

// meter reads a counter of sent bytes whenever a run has written the line of an epoch.
type meter struct {
	sent  func() (int64, error)
	path  string // metrics.jsonl of the run
	size  int64  // of the file, when it was last read
	start int64  // of the counter
	marks []mark
	err   error // the first one
}

// mark is the counter after an epoch.
type mark struct {
	epochs int
	bytes  int64
}

// lookEvery is the time between two looks at the file: short relative to the timed epochs
// together, and long relative to the microseconds of a look.
const lookEvery = time.Millisecond

// watchTraffic measures the traffic of the hosts until stop, for a run that writes its metrics
// into a folder. It removes the metrics of an earlier run.
func (s *Site) watchTraffic(folder string) (stop func() Traffic) {
	missing := func(err error) func() Traffic {
		return func() Traffic { return Traffic{Missing: err.Error()} }
	}
	counters, err := s.Hosts.Counters()
	if err != nil {
		return missing(err)
	}
	m := &meter{sent: counters.Sent, path: filepath.Join(folder, runfolder.Metrics)}
	if m.start, err = m.sent(); err == nil {
		if err = os.Remove(m.path); os.IsNotExist(err) {
			err = nil
		}
	}
	if err != nil {
		counters.Close()
		return missing(err)
	}
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for tick := time.NewTicker(lookEvery); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				m.look()
			}
		}
	}()
	return func() Traffic {
		close(end)
		<-ended
		counters.Close()
		return m.traffic()
	}
}

// look reads the counter if the file has grown.
func (m *meter) look() {
	info, err := os.Stat(m.path)
	if err != nil || info.Size() == m.size || m.err != nil {
		return
	}
	n, err := m.sent()
	if err != nil {
		m.err = err
		return
	}
	text, err := os.ReadFile(m.path)
	if err != nil {
		return // the run has replaced its folder
	}
	m.size = int64(len(text))
	if epochs := bytes.Count(text, []byte("\n")); epochs > 0 {
		m.marks = append(m.marks, mark{epochs, n})
	}
}

// traffic returns the traffic between the first and the last mark, and before the first epoch.
func (m *meter) traffic() Traffic {
	if m.err != nil {
		return Traffic{Missing: m.err.Error()}
	}
	// A late look after the last epoch would count the final evaluation.
	if text, err := os.ReadFile(m.path); err == nil {
		total := bytes.Count(text, []byte("\n"))
		m.marks = slices.DeleteFunc(m.marks, func(k mark) bool { return k.epochs == total })
	}
	if len(m.marks) < 2 {
		return Traffic{Missing: "fewer than two epochs before the last one were seen; set more epochs"}
	}
	first, last := m.marks[0], m.marks[len(m.marks)-1]
	each := float64(last.bytes-first.bytes) / float64(last.epochs-first.epochs)
	return Traffic{Setup: max(float64(first.bytes-m.start)-each*float64(first.epochs), 0), Epoch: each}
}
