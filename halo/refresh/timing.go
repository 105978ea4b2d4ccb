package refresh

// Timing describes the epochs of the ghost rows that a policy provides.
type Timing struct {
	Period   int     // epochs between two epochs in which any rows are sent
	Interval int     // most epochs between two epochs in which a vertex is sent
	MaxAge   int     // most epochs between sending a row and its last use
	Ahead    bool    // rows are sent in passes that only refresh ghosts
	Average  float32 // stored rows are Average · stored row + (1-Average) · new row
	Decay    float32 // stored rows are multiplied by Decay for each epoch of age, except attention scores
}

// Timing returns the epochs of the ghost rows. The policy must use stale rows, and all of them.
func (p Policy) Timing() Timing {
	t := Timing{Period: 1, Interval: 1, MaxAge: 1, Decay: 1}
	n := max(p.Epochs, 1)
	switch p.Name {
	case previousKind.Name:
		if p.Rows {
			t.Average = float32(p.Value)
		}
	case everyKind.Name:
		t.Period, t.Interval, t.MaxAge = n, n, n-1+p.Lag
	case delayKind.Name:
		t.Interval, t.MaxAge = n, 2*n-1
	case driftKind.Name:
		t.Interval, t.MaxAge = n, n-1
	case ageKind.Name:
		t.Period, t.Interval, t.MaxAge, t.Ahead, t.Decay = n, n, n-1, true, float32(p.Value)
	}
	return t
}

// Stale returns the mean number of earlier epochs whose rows an epoch uses, and the mean fraction of
// ghosts that have such rows. It is an upper bound for policies that choose rows by their change.
func (t Timing) Stale() (epochs, rows float64) {
	rows = 1
	if t.MaxAge < t.Interval { // in the epoch that sends it, a row is used at once
		rows -= 1 / float64(t.Interval)
	}
	return rows * float64(t.Interval/t.Period), rows
}

// Sends reports whether rows that training passes offer in an epoch may be sent.
func (t Timing) Sends(epoch int, ahead bool) bool {
	return ahead == t.Ahead && (epoch-1)%t.Period == 0
}
