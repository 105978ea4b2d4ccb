package kernels

// Choosing is an Ops that leaves out edges for a call.
type Choosing interface {
	Ops
	// Into is e without the edges into rows whose mark [e.Rows] is not want: those have no
	// edges but their self loops. It may be read until the next call of Into or From.
	Into(e Edges, marks Vector[uint8], want uint8) Edges
	// From is e without the edges from columns whose mark, by local id less e.Base, is not
	// want, as long as Into's.
	From(e Edges, marks Vector[uint8], want uint8) Edges
}

// chosen is room for the edges that are left: their columns lie where those of all
// edges of a row would, so that rows can be chosen from independently.
type chosen struct {
	begin, end []int64
	cols       []uint32
}

// Into implements Choosing.
func (t *Team) Into(e Edges, marks Vector[uint8], want uint8) Edges {
	n := e.Rows()
	fit(marks.Len() == n)
	begin, end := e.Begin.Host(), e.End.Host()
	left := scratch(&t.chosen.end, n)
	for r, mark := range marks.Host() {
		left[r] = begin[r]
		if mark == want {
			left[r] = end[r]
		}
	}
	e.End = HostVector(left)
	return e
}

// chooseTask copies the columns of rows that are wanted.
type chooseTask struct {
	Gather
	to    chosen
	marks []uint8
	want  uint8
}

// From implements Choosing.
func (t *Team) From(e Edges, marks Vector[uint8], want uint8) Edges {
	n := e.Rows()
	if n == 0 {
		return e
	}
	g, to := e.gather(), &t.chosen
	first := g.Begin[0]
	edges := int(g.End[n-1] - first)
	to.begin, to.end, to.cols = scratch(&to.begin, n), scratch(&to.end, n), scratch(&to.cols, edges)
	doWeighted(t, &t.slots.choose, chooseTask{g, *to, marks.Host(), want}, g.Begin, g.End[n-1])
	e.Begin, e.End, e.Cols = HostVector(to.begin), HostVector(to.end), HostVector(to.cols)
	return e
}

// chunk copies every column and moves on behind those that are wanted, which no branch has to
// foresee.
func (k *chooseTask) chunk(lo, hi int) {
	first := k.Begin[0]
	for r := lo; r < hi; r++ {
		at := k.Begin[r] - first
		k.to.begin[r] = at
		to := k.to.cols[at:]
		n := 0
		for _, c := range k.Cols[k.Begin[r]:k.End[r]] {
			to[n] = c
			n += equal(k.marks[c-k.Base], k.want)
		}
		k.to.end[r] = at + int64(n)
	}
}

// equal is 1 where a is b, else 0; the difference is less than 128.
func equal(a, b uint8) int { return int((a^b)-1) >> 7 & 1 }
