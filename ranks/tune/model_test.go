package tune

import (
	"math"
	"testing"

	"siafu/ranks/world/link"
)

// pairs is a table in which every two of n ranks have the same link.
func pairs(n int, latency, rate float64) *link.Table {
	t := &link.Table{Size: n, Latency: make([]float64, n*n), Bandwidth: make([]float64, n*n)}
	for p := range n {
		for q := range n {
			if p != q {
				t.Latency[p*n+q], t.Bandwidth[p*n+q] = latency, rate
			}
		}
	}
	return t
}

// set changes the link of a pair.
func set(t *link.Table, p, q int, latency, rate float64) {
	for _, at := range []int{p*t.Size + q, q*t.Size + p} {
		t.Latency[at], t.Bandwidth[at] = latency, rate
	}
}

// What a message costs, counted by hand: rows of 25 floats are 100 bytes.
func TestModel(t *testing.T) {
	raw := []Cost{{Size: 1}}
	shared := pairs(4, 0.001, 1e6) // two ranks a host: each is measured with half of its link
	set(shared, 0, 1, 0.0001, 1e8)
	set(shared, 2, 3, 0.0001, 1e8)
	lame := pairs(4, 0.001, 1e6)
	set(lame, 0, 3, 0.001, 1e5)
	for _, k := range []struct {
		name   string
		hosts  []string
		links  *link.Table
		rows   map[[2]int]int64
		back   bool
		costs  []Cost
		hidden []float64
		want   float64
	}{
		{"one way", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4}, false, raw, nil, 1.001},
		{"both ways at the same time", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4, {1, 0}: 4e3}, false, raw, nil, 1.001},
		{"a quarter", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4}, false, []Cost{{Size: 0.25}}, nil, 0.251},
		{"encoded and decoded by the same rank", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4, {1, 0}: 1e4}, false,
			[]Cost{{Size: 0.25, Encode: 1e-7, Decode: 3e-7}}, nil, 0.251 + 0.4},
		{"half hidden", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4}, false, raw, []float64{0.5}, 0.501},
		{"hidden, but for the work", []string{"a", "b"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4}, false,
			[]Cost{{Size: 1, Encode: 1e-7}}, []float64{2}, 0.1},
		{"copies are not hidden", []string{"a", "a"}, pairs(2, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4}, false, raw, []float64{2}, 1.001},
		{"ranks share their host's link", []string{"a", "a", "b", "b"}, shared, map[[2]int]int64{{0, 2}: 1e4, {1, 3}: 1e4}, false, raw, nil, 1.001},
		{"one rank has the link for itself", []string{"a", "a", "b", "b"}, shared, map[[2]int]int64{{0, 2}: 1e4, {0, 3}: 1e4}, false, raw, nil, 1.002},
		{"within and between hosts", []string{"a", "a", "b", "b"}, shared, map[[2]int]int64{{0, 1}: 1e4, {0, 2}: 1e4}, false, raw, nil, 1.001 + 0.0101},
		{"a slow pair", []string{"a", "b", "c", "d"}, lame, map[[2]int]int64{{0, 3}: 1e3, {0, 1}: 1e3, {0, 2}: 1e3}, false, raw, nil, 1.003},
		{"backward", []string{"a", "b", "c"}, pairs(3, 0.001, 1e6), map[[2]int]int64{{0, 1}: 1e4, {0, 2}: 1e4}, true, raw, nil, 2.001},
		{"nobody", []string{"a", "b"}, pairs(2, 0.001, 1e6), nil, false, raw, nil, 0},
	} {
		t.Run(k.name, func(t *testing.T) {
			n := len(k.hosts)
			rows := make([]int64, n*n)
			for pq, r := range k.rows {
				rows[pq[0]*n+pq[1]] = r
			}
			m := NewModel(Traffic{Hosts: k.hosts, Rows: rows, Exchanges: []Exchange{{25, k.back}}}, k.links)
			if got := m.Seconds(k.costs, k.hidden, 1); math.Abs(got-k.want) > 1e-9 {
				t.Errorf("%.6f s, want %.6f", got, k.want)
			}
		})
	}
}
