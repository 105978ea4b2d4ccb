package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

// nasty is a name that must be shown and not run.
const nasty = "</text><script>alert(1)</script>\x01 \" '"

func twoLines() *Chart {
	return &Chart{Name: "loss", Title: nasty, X: "epoch", Y: "loss", Lines: []Line{
		{Group: 0, Name: nasty, Points: []Point{{1, 2, 0.5}, {2, 1, 0.25}}},
		{Group: 8, Name: "b", Points: []Point{{1, 3, 0}, {2, 2, 0}}},
	}}
}

func twoBars() *Chart {
	return &Chart{Name: "acc", Title: "a", X: "s", Bars: []Bar{{0, nasty, 0.5, 0.1, "0.5 ± 0.1"}, {1, "b", 0.25, 0, "0.25"}}}
}

// elements counts the elements of a document by name and by class, and checks its syntax.
func elements(t *testing.T, text string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					count["."+strings.Fields(a.Value)[0]]++
				}
			}
		}
	}
}

// A chart has its marks, as a file and in a page, and whatever its names are, it is
// well-formed and has no script.
func TestSVG(t *testing.T) {
	for _, tc := range []struct {
		chart *Chart
		want  map[string]int
	}{
		{twoLines(), map[string]int{".line": 2, ".band": 1, "script": 0}},
		{twoBars(), map[string]int{".bar": 2, ".whisker": 3, "script": 0}},
	} {
		for form, write := range map[string]func(io.Writer) error{"page": tc.chart.Draw, "file": tc.chart.WriteSVG} {
			var b strings.Builder
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			got := elements(t, b.String())
			for name, n := range tc.want {
				if form == "file" && name == ".line" {
					n *= 2 // and in the legend
				}
				if got[name] != n {
					t.Errorf("%s: %d of %s, want %d", form, got[name], name, n)
				}
			}
			if form == "file" && strings.Contains(b.String(), "var(") {
				t.Error("a file has variables of a page's style")
			}
		}
	}
}

// An image has the colours of its groups.
func TestPNG(t *testing.T) {
	for _, tc := range []struct {
		chart  *Chart
		groups []int
	}{{twoLines(), []int{0, 8}}, {twoBars(), []int{0, 1}}} {
		var b bytes.Buffer
		if err := tc.chart.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[[3]uint32]bool{}
		for y := range picture.Bounds().Dy() {
			for x := range picture.Bounds().Dx() {
				r, g, b, _ := picture.At(x, y).RGBA()
				seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
			}
		}
		for _, k := range tc.groups {
			if c := palette[k%len(palette)].light; !seen[[3]uint32{uint32(c.R), uint32(c.G), uint32(c.B)}] {
				t.Errorf("%s: nothing has the colour of group %d", tc.chart.Name, k)
			}
		}
	}
}

// Ticks are round numbers in their span with different labels, for all sizes of the span.
func TestTicks(t *testing.T) {
	for _, s := range []span{{0, 1}, {0.7853, 0.7903}, {1, 60}, {0, 3e-5}, {-1e9, 2e9}, {0, 1e-12}, span{0.6931,
		math.Nextafter(0.6931, 1)}.wide(), span{1e9, 1e9 + 1e-6}.wide(), span{5, 5}.wide(), span{0, 0}.wide(), emptySpan().wide()} {
		at, text := s.ticks(5)
		if len(at) < 2 || len(at) > 11 {
			t.Errorf("%v: %d ticks", s, len(at))
		}
		for i, v := range at {
			if slack := (s.to - s.from) * 1e-6; v < s.from-slack || v > s.to+slack || math.Signbit(v) && v == 0 {
				t.Errorf("%v: a tick at %g", s, v)
			}
			if i > 0 && text[i] == text[i-1] {
				t.Errorf("%v: two ticks %q", s, text[i])
			}
		}
	}
}

// Losses of a run that has diverged leave a chart of numbers, and the others' in sight.
func TestHuge(t *testing.T) {
	c := twoLines()
	c.Lines[0].Points[1].Y, c.Lines[1].Points[0].Deviation = math.MaxFloat64, math.MaxFloat64
	if _, y := c.extent(); y.to > 10 {
		t.Errorf("the axis ends at %g", y.to)
	}
	c.Lines[0].Points[1].Y, c.Whole = 95, true
	if _, y := c.extent(); y.to < 95 {
		t.Errorf("the axis of a whole chart ends at %g", y.to)
	}
	var b strings.Builder
	if err := c.Draw(&b); err != nil || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("%v: %s", err, &b)
	}
}

// A long line keeps its first and its last point.
func TestThin(t *testing.T) {
	for _, n := range []int{0, 1, maxPoints, maxPoints + 1, 10*maxPoints + 7} {
		points := make([]Point, n)
		for i := range points {
			points[i].X = float64(i)
		}
		few := thin(points)
		if len(few) > maxPoints+1 || n > 0 && (few[0].X != 0 || few[len(few)-1].X != float64(n-1)) {
			t.Errorf("of %d points: %d", n, len(few))
		}
	}
}
