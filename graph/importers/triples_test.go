package importers

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// A folder's split is held out with its relations, and every training triple is an edge, with its reverse or
// without. Entities may have blanks in their names, and connect to themselves.
func TestTriples(t *testing.T) {
	for _, reverse := range []string{"", "off"} {
		rng := rand.New(rand.NewPCG(1, 1))
		lists, text := [3]map[string]bool{{}, {}, {}}, [3]string{}
		for i := range 200 {
			k := max(0, i-150) * 3 / 60 // 170 for training
			x := fmt.Sprintf("the %d\tr%d\tthe %d", rng.IntN(20), rng.IntN(4), rng.IntN(22))
			lists[k][x] = true
			text[k] += x + "\r\n" + strings.Repeat("\n", i%2)
		}
		src := files(t, map[string][]byte{"train.txt": []byte(text[0]), "valid.txt": []byte(text[1]), "test.txt": []byte(text[2])})
		dst := filepath.Join(t.TempDir(), "kg")
		if _, err := Import("auto", Options{Src: src, Dst: dst, ReverseRelations: reverse}); err != nil {
			t.Fatal(err)
		}
		ds, err := graph.Open(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		h, done, err := graph.OpenHeldOut(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		r := ds.Meta.Relations.Relations
		name := func(u uint32, relation uint16, v uint32) string {
			return ds.IDs.At(int(u)) + "\t" + r[relation].Name + "\t" + ds.IDs.At(int(v))
		}
		got := [3]map[string]bool{{}, {}, {}}
		for v := range uint32(ds.In.Rows()) {
			for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
				u, relation := ds.In.Cols[i], ds.Relations[i]
				if r[relation].Reverse {
					if u, v = v, u; !lists[0][name(u, uint16(r[relation].Inverse), v)] {
						t.Fatalf("the reverse edge %s has no triple", name(u, relation, v))
					}
					u, v = v, u
					continue
				}
				got[0][name(u, relation, v)] = true
			}
		}
		for i, v := range h.Loops.Edges.Src {
			got[0][name(v, h.Loops.Relations[i], v)] = true
		}
		for k, x := range []graph.Held{h.Val, h.Test} {
			for i, relation := range x.Relations {
				got[k+1][name(x.Edges.Src[i], relation, x.Edges.Dst[i])] = true
				u, v := x.Not.Src[i], x.Not.Dst[i]
				not := name(u, relation, v)
				if lists[0][not] || lists[1][not] || lists[2][not] || (u != x.Edges.Src[i]) == (v != x.Edges.Dst[i]) {
					t.Errorf("%s is no negative of %s", not, name(x.Edges.Src[i], relation, x.Edges.Dst[i]))
				}
			}
		}
		for k := range got {
			if fmt.Sprint(got[k]) != fmt.Sprint(lists[k]) {
				t.Errorf("split %d has %v, want %v", k, got[k], lists[k])
			}
		}
		if n := ds.Meta.Vertices; ds.Meta.Links.Train != int64(len(lists[0])) || int64(ds.Features.Sparse.Cols[n-1]) != n-1 ||
			h.Loops.Edges.Len() == 0 || (len(r) == 8) != (reverse == "") || ds.Meta.FeatureDim != int(n) {
			t.Errorf("%+v, %d relations", ds.Meta.Links, len(r))
		}
	}
}

// A file has triples between blanks. Lines that are no triples are refused by number, with a remedy; damaged files
// are read or refused within their memory.
func TestTripleFiles(t *testing.T) {
	for _, c := range [][2]string{
		{"a r b\nb r c\n", ""}, {"\n\n a  r  b \n", ""}, {"a\tr\tb c\n", ""},
		{"", "no triples"}, {"3\n0 1 0\n", "line 1"}, {"a r b\na r\n", "line 2"}, {"a r b\n\na r b c\n", "line 3"}, {"a\tr\t \n", "line 1"},
		{"a\tr\tb\tc\n", "line 1"},
	} {
		dir := files(t, map[string][]byte{"kg.txt": []byte(c[0])})
		_, err := Import("triples", Options{Src: filepath.Join(dir, "kg.txt"), Dst: filepath.Join(dir, "out")})
		if (err == nil) != (c[1] == "") || err != nil && (fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), c[1])) {
			t.Errorf("%q: it says %v, want %q", c[0], err, c[1])
		}
	}
	good := map[string][]byte{"train.txt": []byte("a r b\nb s c\nc r a\n"), "valid.txt": []byte("a s c\n"), "test.txt": []byte("b r b\n")}
	for name, b := range good {
		for i := 0; i < 2*len(b); i += 3 {
			lie := append([]byte(nil), b[:i%len(b)]...) // cut off, or with another byte
			if i >= len(b) {
				lie = append(append(lie, "\x80\r"[i%2]), b[i%len(b)+1:]...)
			}
			contents := map[string][]byte{"train.txt": good["train.txt"], "valid.txt": good["valid.txt"], "test.txt": good["test.txt"]}
			contents[name] = lie
			src := files(t, contents)
			decodertest.Bounded(t, int64(len(b)), func() {
				if _, err := Import("triples", Options{Src: src, Dst: src + "-out"}); err != nil && fault.KindOf(err) != fault.Data {
					t.Errorf("%q: %v", lie, err)
				}
			})
		}
	}
	many := new(strings.Builder)
	for i := range graph.MaxRelations/2 + 1 {
		fmt.Fprintf(many, "a %d b\n", i)
	}
	dir := files(t, map[string][]byte{"kg.txt": []byte(many.String())})
	_, err := Import("triples", Options{Src: filepath.Join(dir, "kg.txt"), Dst: filepath.Join(dir, "out")})
	if err == nil || !strings.Contains(err.Error(), "triple 16385 has relation") {
		t.Errorf("too many relations: %v", err)
	}
}
