package protocol

// Memory is the memory of a server beside the latest weights and the version in progress,
// now and at its peak since the start.
type Memory struct {
	Versions, PeakVersions int   // that some interval's backward pass needs, the latest among them
	Bytes, PeakBytes       int64 // of those versions
	Waiting, PeakWaiting   int64 // bytes of gradients that wait for one to be added before them
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
	holders int // intervals that have stashed it
}

// stashEntry is what the server knows of one interval between its Fetch and its last
// gradient.
type stashEntry struct {
	epoch   int      // 0: nothing
	version *version // nil while the Fetch waits
	got     []bool   // by layer: its gradient has come
	missing int      // layers whose gradient has not
}

// stash shares versions among the intervals that took them.
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

// markGradient notes that interval i's gradient of layer has come; after the last one
// its version is released.
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

// drop recycles a version that nobody will ask for again.
func (s *stash) drop(v *version) {
	if v.holders == 0 && v != s.latest {
		s.versions.put(v)
	}
}

// draft is a version after the latest, with the same weights as yet.
func (s *stash) draft() *version {
	v := s.versions.get()
	v.number = s.latest.number + 1
	copy(v.weights, s.latest.weights)
	return v
}

func (v *version) bytes() int64 { return 4 * int64(len(v.weights)) }
