package protocol

// Setting has the settings that all ranks of a world share. Graph ranks are the first ranks
// of the world; servers follow.
type Setting struct {
	Intervals []int // of each graph rank, at least 1
	Servers   int
	Staleness int // s: epochs that an interval may be ahead of the slowest
	Trained   int // epochs before the initial weights, in a resumed run
	// Fixed makes all intervals of a rank choose server rank mod Servers, so that sums have
	// one order in every run.
	Fixed bool
}

// Range is a layer's part of the flat weights.
type Range struct{ Lo, Hi int }

// Updater applies a summed gradient to the weights of one layer in place. step counts from 1.
type Updater interface {
	Update(step, layer int, weights, grad []float32)
	// State returns the optimiser's state, slot after slot. It changes with the next
	// Update.
	State() [][]float32
}

// Graph returns the number of graph ranks.
func (s Setting) Graph() int { return len(s.Intervals) }

// Server returns the world's rank of the k-th server.
func (s Setting) Server(k int) int { return s.Graph() + k }

func (s Setting) check() {
	if s.Graph() < 1 || s.Servers < 1 || s.Staleness < 0 || s.Trained < 0 {
		panic("protocol: setting without ranks or servers, or negative")
	}
	for _, n := range s.Intervals {
		if n < 1 {
			panic("protocol: graph rank without intervals")
		}
	}
}

// firsts numbers the intervals of all ranks. firsts[r] is the number of the first interval of rank r,
// and the last entry is the number of all intervals.
func (s Setting) firsts() []int {
	firsts := make([]int, 1, s.Graph()+1)
	for r, n := range s.Intervals {
		firsts = append(firsts, firsts[r]+n)
	}
	return firsts
}
