package protocol

// Memory is the memory of a server without the latest weights and the version in progress, now
// and at its peak since the start.
type Memory struct {
	Versions, PeakVersions int   // needed by some interval's backward pass, including the latest
	Bytes, PeakBytes       int64 // of those versions
	Waiting, PeakWaiting   int64 // bytes of gradients that wait for an earlier one in the order of sums
}

func (m *Memory) stashed(versions int, bytes int64) {
	m.Versions += versions
	m.Bytes += int64(versions) * bytes
	m.PeakVersions = max(m.PeakVersions, m.Versions)
	m.PeakBytes = max(m.PeakBytes, m.Bytes)
}

func (m *Memory) wait(bytes int64) {
	m.Waiting += bytes
	m.PeakWaiting = max(m.PeakWaiting, m.Waiting)
}

// version is one state of all weights.
type version struct {
	number  int
	weights []float32
	holders int // number of intervals that have stashed this version
}

// stashEntry is the server's state of one interval between its Fetch and its last gradient.
type stashEntry struct {
	epoch   int      // 0: unused
	version *version // nil while the Fetch waits
	got     []bool   // by layer: its gradient has arrived
	missing int      // layers without their gradient
}

// stash shares versions among the intervals that use them.
type stash struct {
	entries  []stashEntry // by interval of all ranks
	latest   *version
	versions pool[*version]
	load     int // entries in use
	memory   Memory
}

func newStash(intervals, layers, number int, weights []float32) stash {
	s := stash{
		entries: make([]stashEntry, intervals),
		latest:  &version{number: number, weights: weights},
		versions: pool[*version]{make: func() *version {
			return &version{weights: make([]float32, len(weights))}
		}},
	}
	for i := range s.entries {
		s.entries[i].got = make([]bool, layers)
	}
	return s
}

// addEntry makes the entry of interval i, which has no version yet.
func (s *stash) addEntry(i, epoch int) {
	e := &s.entries[i]
	e.epoch, e.missing = epoch, len(e.got)
	clear(e.got)
	s.load++
}

// assignLatest gives interval i the latest version.
func (s *stash) assignLatest(i int) *version {
	v := s.latest
	s.entries[i].version = v
	if v.holders++; v.holders == 1 {
		s.memory.stashed(1, v.bytes())
	}
	return v
}

// markGradient records interval i's gradient of layer; after the last one its version is
// released.
func (s *stash) markGradient(i, layer int) {
	e := &s.entries[i]
	e.got[layer] = true
	if e.missing--; e.missing > 0 {
		return
	}
	v := e.version
	e.epoch, e.version = 0, nil
	s.load--
	if v.holders--; v.holders == 0 {
		s.memory.stashed(-1, v.bytes())
		s.drop(v)
	}
}

// publish makes next the latest version.
func (s *stash) publish(next *version) {
	old := s.latest
	s.latest = next
	s.drop(old)
}

// drop recycles a version that will not be requested again.
func (s *stash) drop(v *version) {
	if v.holders == 0 && v != s.latest {
		s.versions.put(v)
	}
}

// draft returns a version after the latest, still with the same weights.
func (s *stash) draft() *version {
	v := s.versions.get()
	v.number = s.latest.number + 1
	copy(v.weights, s.latest.weights)
	return v
}

func (v *version) bytes() int64 { return 4 * int64(len(v.weights)) }
