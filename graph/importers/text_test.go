package importers

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// TestParseFloat: the fast path equals strconv to the bit. TestNumbers has the refused
// notations of Go.
func TestParseFloat(t *testing.T) {
	compare := func(t interface{ Fatalf(string, ...any) }, s string) {
		got, ok := parseFloat([]byte(s))
		want, err := strconv.ParseFloat(s, 64)
		if ok != (err == nil) || ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q is %v, %v, want %v, %v", s, got, ok, want, err)
		}
	}
	for _, s := range []string{"0", "-0", "-0.0", "+1.5", ".5", "5.", "1e22", "1e23", "9007199254740993", "123456789012345678",
		"1234567890123456789012", "1e-22", "0.1e-21", "1e400", "-1e-400", "nan", "inf", "", "-", ".", "e5", "1e",
		"1e+", "1.2.3", "0x10", " 1"} {
		compare(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "value")
		for _, format := range []byte{'e', 'f', 'g'} {
			compare(t, strconv.FormatFloat(f, format, rapid.IntRange(-1, 20).Draw(t, "digits"), 64))
		}
	})
}

// TestParseInt: equals strconv, also on overflow.
func TestParseInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[-+]?[0-9]{0,20}`), rapid.StringMatching(`[0-9x._]{1,5}`)).Draw(t, "text")
		got, ok := parseInt([]byte(s))
		want, err := strconv.ParseInt(s, 10, 64)
		if ok != (err == nil) || ok && got != want {
			t.Fatalf("%q is %d, %v, want %d, %v", s, got, ok, want, err)
		}
	})
}

// TestLongText: lines that cross blocks are parsed once, in order, and an error names the
// line.
func TestLongText(t *testing.T) {
	var text bytes.Buffer
	var want []int64
	for i := int64(0); text.Len() < 3*blockSize; i++ {
		fmt.Fprintf(&text, "%d\t%d\n", i*7919%1000003, i)
		want = append(want, i*7919%1000003, i)
	}
	parse := func(b block) ([]int64, error) { return parseEdges(input{"test", "x"}, b, false, true) }
	parsed := func(text []byte, take func([]int64)) (err error) {
		defer catch(&err)
		parseText(bytes.NewReader(text), input{"test", "x"}, parse, take)
		return nil
	}
	var got []int64
	err := parsed(text.Bytes(), func(v []int64) { got = append(got, v...) })
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v: %d numbers, want %d", err, len(got), len(want))
	}
	lines := bytes.SplitAfter(text.Bytes(), []byte("\n"))
	lines[len(lines)-100] = []byte("wrong\n")
	err = parsed(bytes.Join(lines, nil), func([]int64) {})
	if want := fmt.Sprintf("line %d: ", len(lines)-99); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	stop := fault.New(fault.Data, "test", "x", "enough")
	if err := parsed(text.Bytes(), func([]int64) { check(stop) }); err != stop {
		t.Errorf("got %v, want the error of take", err)
	}
}

// TestRanking: both forms number any ids like sorting.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 50), rapid.Int64Range(math.MaxUint32-3, math.MaxUint32+3))
		pairs := rapid.SliceOfN(id, 2, 40).Draw(t, "ids")
		pairs = pairs[:len(pairs)/2*2]
		k := newResources(input{})
		defer k.release()
		l := &edgeList{resources: k, least: math.MaxInt64, top: math.MinInt64, narrow: &chunks[uint32]{resources: k}}
		for i := 0; i < len(pairs); i += 2 { // narrow at first, perhaps
			l.take(pairs[i : i+2])
		}
		r, err := caught(l.rank)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Compact(slices.Sorted(slices.Values(pairs)))
		if !slices.Equal(r.ids(), want) || r.n != int64(len(want)) {
			t.Fatalf("ids are %v, want %v", r.ids(), want)
		}
		e := l.renumber(k, r.of)
		i := 0
		e.Each(func(u, v uint32) error {
			if want[u] != pairs[i] || want[v] != pairs[i+1] {
				t.Fatalf("edge %d is %d→%d, want %d→%d", i/2, want[u], want[v], pairs[i], pairs[i+1])
			}
			i += 2
			return nil
		})
		if i != len(pairs) {
			t.Fatalf("%d edges, want %d", i/2, len(pairs)/2)
		}
	})
}

func FuzzEdgeList(f *testing.F) {
	f.Add([]byte("# c\n1 2\n3,4\r\n\n-5\t6 0.5"), true)
	f.Add([]byte("from;to\n1;99999999999999999999"), true)
	f.Fuzz(func(t *testing.T, b []byte, heading bool) {
		var pairs []int64
		var err error
		decodertest.Heap(t, int64(len(b)), func() { pairs, err = parseEdges(input{"fuzz", "x"}, block{b, 1}, heading, true) })
		if err != nil && fault.KindOf(err) != fault.Data {
			t.Fatalf("%v is no Data fault", err)
		}
		if len(pairs)%2 != 0 || err == nil && len(pairs)/2 > bytes.Count(b, []byte("\n"))+1 {
			t.Fatalf("%d ids from %q", len(pairs), b)
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("1,2\n3,4e-1\r\n.5,nan"))
	f.Add([]byte(",\n,\n"))
	f.Add([]byte(strings.Repeat("0,", 20_000) + "0" + strings.Repeat("\n", 20_000))) // ragged
	f.Fuzz(func(t *testing.T, b []byte) {
		var table csvTable[float32]
		var err error
		decodertest.Heap(t, int64(len(b)), func() { table, err = csvParser(input{"fuzz", "x"}, parseFeature)(block{b, 1}) })
		if err != nil {
			if fault.KindOf(err) != fault.Data {
				t.Fatalf("%v is no Data fault", err)
			}
			return
		}
		if len(b) > 0 && (table.cols == 0 || len(table.values)%table.cols != 0) {
			t.Fatalf("%d values in %d columns from %q", len(table.values), table.cols, b)
		}
		for _, v := range table.values {
			if v-v != 0 {
				t.Fatalf("%v was read as a finite number", v)
			}
		}
	})
}

func FuzzBsnap(f *testing.F) {
	m := tinyBsnap()
	f.Add(m["labels.bsnap"], m["features.bsnap"], m["graph.bsnap"])
	f.Add(little(uint32(1)), little(uint32(0)), little(int32(4), uint32(0), uint64(0)))
	f.Fuzz(func(t *testing.T, l, x, e []byte) {
		// These must be page-aligned, like a mapped file.
		l, x, e = slices.Clone(l), slices.Clone(x), slices.Clone(e)
		var classes int
		labels, err := caught(func() (labels []int32) { labels, classes = bsnapLabels(input{path: "l"}, l); return labels })
		if err != nil {
			return
		}
		for _, c := range labels {
			if int(c) >= classes || c < 0 {
				t.Fatalf("label %d of %d", c, classes)
			}
		}
		n := int64(len(labels))
		if f, err := caught(func() graph.Features { return bsnapFeatures(input{path: "x"}, x, n) }); err == nil &&
			len(f.Dense) != f.Rows*f.Dim {
			t.Fatalf("%d numbers for %d x %d", len(f.Dense), f.Rows, f.Dim)
		}
		pairs, err := caught(func() graph.EdgePairs { pairs, _ := bsnapEdges(input{path: "e"}, e, n); return pairs })
		for _, v := range pairs {
			if err == nil && int64(v) >= n {
				t.Fatalf("vertex %d of %d", v, n)
			}
		}
	})
}
