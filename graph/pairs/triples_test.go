package pairs

import (
	"math/rand/v2"
	"testing"

	"siafu/graph"
)

// kinds describes three users and four items, whose ids are equal.
func kinds() (*graph.Relations, *graph.IDs) {
	r := &graph.Relations{Kinds: []graph.VertexKind{{Name: "user", Vertices: 3}, {Name: "item", Vertices: 4}},
		Relations: []graph.Relation{{Name: "buys", To: 1, Inverse: -1}, {Name: "knows", Inverse: -1}}}
	r.AddReverse(0)
	return r, &graph.IDs{Ints: []int64{1, 2, 3, 1, 2, 3, 4}}
}

// Vertices of several kinds are KIND:ID, and relations have a name.
func TestTripleNames(t *testing.T) {
	r, ids := kinds()
	ds := &graph.Dataset{IDs: ids, Meta: &graph.Meta{Vertices: 7, Relations: r}}
	names := NewNames(ds)
	s, err := Read("test", file(t, "p.csv", "src,relation,dst\nuser:2,buys,item:4\nuser:1,user-knows-user,user:3\n"), names)
	if err != nil || s.Edges.Src[0] != 1 || s.Edges.Dst[0] != 6 || s.Edges.Dst[1] != 2 || s.Relations[0] != 0 || s.Relations[1] != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if name := ds.VertexName(6); name != "item:4" {
		t.Errorf("vertex 6 is %s", name)
	}
	for _, c := range [][2]string{{"2,buys,4\n", "write KIND:ID: user:2 or item:2"},
		{"4,buys,item:4\n", "write KIND:ID: item:4"}, {"user:9,buys,item:4\n", "give ids of the dataset"},
		{"item:1,buys,item:4\n", "line 2: relation buys leads from kind user to item, but the ends have the kinds item and item"},
		{"user:1,buys,user:2\n", "name vertices of the relation's kinds"}, {"item:1,user-knows-user,user:1\n", "from kind user to user"},
		{"user:1,rev_buys,item:1\n", "the graph's relations are"},
		{"user:1,buys\n", "line 2"}} {
		_, err := Read("test", file(t, "p.csv", "src,relation,dst\n"+c[0]), names)
		says(t, err, "p.csv", c[1])
	}
	_, err = Read("test", file(t, "p.txt", "user:2\tbuys\n"), names)
	says(t, err, "p.txt", "three words between tabs")
}

// A negative has another vertex of the same kind at one end, and is no known triple, even if only one is left. A
// triple without a negative is refused.
func TestCorrupt(t *testing.T) {
	r, _ := kinds()
	var all Triples
	for u := range uint32(3) {
		for v := uint32(3); v < 7; v++ {
			all = append(all, graph.Triple{Src: u, Dst: v})
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for left := range len(all) {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		known := append(Triples(nil), all[left:]...).Sort()
		h := &graph.HeldOut{}
		h.Val.Add(known...)
		err := Corrupt("test", "data", h, r, known, 1)
		if err != nil {
			if left > 6 {
				t.Errorf("%d unknown triples: %v", left, err)
			}
			says(t, err, "data", "all vertices", "remove the relation")
			continue
		}
		for i, x := range known {
			y := graph.Triple{Src: h.Val.Not.Src[i], Dst: h.Val.Not.Dst[i]}
			if known.Has(y) || (y.Src == x.Src) == (y.Dst == x.Dst) || y.Src > 2 || y.Dst < 3 || y.Dst > 6 {
				t.Errorf("%v is no negative of %v", y, x)
			}
		}
		if left == 0 {
			t.Error("there is a negative of a complete relation")
		}
	}
}
