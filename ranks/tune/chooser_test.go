package tune

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// link is ranks as they are, which a Chooser learns of by what they measure.
type link struct {
	name     string
	codecs   []string
	predicts []float64 // by codec: seconds of exchanges, as the measuring epoch shows them
	takes    []float64 // by codec: seconds of an epoch
	rng      *rand.Rand
	noise    float64 // by which share an epoch may be longer
}

// epoch lets a chooser go through an epoch and returns what it says.
func (l *link) epoch(c *Chooser) string {
	var exchanges []float64
	if c.Measuring() {
		exchanges = l.predicts
	}
	seconds := l.takes[c.Current()]
	if l.rng != nil {
		seconds *= 1 + l.noise*l.rng.Float64()
	}
	report, due := c.Ended(seconds)
	if !due {
		return ""
	}
	return c.Agreed(report, exchanges)
}

// run simulates the given number of epochs.
func (l *link) run(c *Chooser, epochs int) (said []string, used []int) {
	for range epochs {
		used = append(used, c.Current())
		if s := l.epoch(c); s != "" {
			said = append(said, s)
		}
	}
	return said, used
}

//go:embed testdata/links.tsv
var measured string

// speed is GB of float32 a second that a thread encodes and decodes, as
// docs/halo.md has them.
var speed = map[string][2]float64{
	"none": {1e9, 1e9}, "s2": {0.34, 0.68}, "zstd": {0.16, 0.59}, "bf16": {18, 18}, "bf16+s2": {0.75, 1.6},
	"int8": {6.8, 20}, "int8+s2": {1.3, 3.7}, "adaptive": {5.3, 18}, "adaptive+s2": {2, 7},
	"int4": {6.6, 22}, "int4+s2": {2.3, 8.3}, "int4+zstd": {0.93, 5},
}

// links returns the links of the table, with the times that a measuring epoch would find: without
// overlap, the waiting time is the transfer time.
func links(t *testing.T) (list []*link) {
	const ranks = 4
	var travel, hidden, raw float64
	for line := range strings.Lines(measured) {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		name, codec := strings.Join(f[:3], ", "), f[3]
		var numbers [3]float64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseFloat(f[5+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		epoch, waited, bytes := numbers[0], numbers[1], numbers[2]
		if f[4] == "nopipe" {
			travel, raw = waited, bytes
			list = append(list, &link{name: name})
			continue
		}
		l := list[len(list)-1]
		if codec == "none" {
			hidden = max(travel-waited, 0)
		}
		s := speed[codec]
		work := raw / 1e3 / ranks * (1/s[0] + 1/s[1])
		l.codecs, l.takes = append(l.codecs, codec), append(l.takes, epoch)
		l.predicts = append(l.predicts, work+max(bytes/raw*travel-hidden, 0))
	}
	return list
}

// On every link that was measured the choice is within 5 % of the best fixed
// codec, and within a tenth where every epoch is up to a tenth longer by chance.
func TestMeasuredLinks(t *testing.T) {
	for _, l := range links(t) {
		t.Run(l.name, func(t *testing.T) {
			for _, epochs := range []int{30, 100, 1000} {
				c := NewChooser(l.codecs, "", 1, epochs)
				said, _ := l.run(c, epochs)
				if got, best := l.takes[c.Current()], slices.Min(l.takes); got > 1.05*best {
					t.Errorf("%d epochs: %s takes %.3f s, %.3f is possible: %q", epochs, l.codecs[c.Current()], got, best, said)
				}
			}
			for seed := range uint64(200) {
				l := *l
				l.rng, l.noise = rand.New(rand.NewPCG(seed, 1)), 0.10
				c := NewChooser(l.codecs, "", 1, 100)
				said, _ := l.run(c, 100)
				if got, best := l.takes[c.Current()], slices.Min(l.takes); got > 1.10*best {
					t.Errorf("seed %d: %s takes %.3f s, %.3f is possible: %q", seed, l.codecs[c.Current()], got, best, said)
				}
			}
		})
	}
}

var three = []string{"none", "int8", "int4"}

// The first epoch is for warm-up and the second is measured, both with the most exact candidate.
// Then candidates have three epochs each, the most promising first.
func TestStates(t *testing.T) {
	for _, k := range []struct {
		name            string
		predicts, takes []float64
		epochs          int
		used            string // candidates of the first epochs
		says            string // the end of the last line
	}{
		{"nothing to gain", []float64{0.02, 0.01, 0.01}, []float64{1, 0.1, 0.1}, 100, "0000", "-> none"},
		{"as predicted", []float64{0.9, 0.5, 0.2}, []float64{1, 0.6, 0.3}, 100, "002222", "-> int4"},
		{"as good and more exact", []float64{0.9, 0.205, 0.2}, []float64{1, 0.305, 0.3}, 100, "00222111", "-> int8"},
		{"worse than predicted", []float64{0.9, 0.3, 0.2}, []float64{1, 0.4, 0.9}, 100, "002221111", "-> int8"},
		{"no better than none", []float64{0.9, 0.5, 0.2}, []float64{1, 1.1, 1.2}, 100, "00222000", "-> none"},
		{"a short run", []float64{0.9, 0.5, 0.2}, []float64{1, 0.6, 1.3}, 13, "002222", "-> int4"},
		{"one trial", []float64{0.9, 0.4, 0.2}, []float64{1, 0.4, 0.5}, 14, "002222", "-> int4"},
		{"two epochs", []float64{0.9, 0.5, 0.2}, []float64{1, 0.6, 0.3}, 2, "00", "-> int4"},
	} {
		t.Run(k.name, func(t *testing.T) {
			l := link{codecs: three, predicts: k.predicts, takes: k.takes}
			c := NewChooser(three, "", 1, k.epochs)
			said, used := l.run(c, k.epochs)
			var got strings.Builder
			for _, i := range used {
				got.WriteString(strconv.Itoa(i))
			}
			if !strings.HasPrefix(got.String(), k.used) || !strings.HasSuffix(said[len(said)-1], k.says) {
				t.Errorf("epochs run through %s, it says %q", got.String(), said)
			}
		})
	}
}

// Trials take no more than a quarter of the epochs that are left after measuring.
func TestTrialsAreFew(t *testing.T) {
	all, _ := Candidates("auto")
	for _, epochs := range []int{3, 14, 20, 50, 100} {
		l := link{codecs: all, predicts: slices.Repeat([]float64{0.1}, len(all)), takes: slices.Repeat([]float64{2}, len(all))}
		l.predicts[0], l.takes[0] = 0.9, 1 // all look better than none, and are not
		c := NewChooser(all, "", 1, epochs)
		_, used := l.run(c, epochs)
		tried := 0
		for _, i := range used {
			if i > 0 {
				tried++
			}
		}
		if epochs >= 14 && 4*tried > epochs-2 {
			t.Errorf("%d of %d epochs are trials", tried, epochs)
		}
	}
}

// A link that gets slower is noticed, and so is one that gets faster where a more
// exact codec might do: the first time after ten epochs, then after twenty, and
// so on. What changes less is not.
func TestLinkChanges(t *testing.T) {
	fast := link{codecs: three, predicts: []float64{0.01, 0.01, 0.01}, takes: []float64{0.2, 0.25, 0.25}}
	slow := link{codecs: three, predicts: []float64{0.8, 0.3, 0.1}, takes: []float64{1, 0.5, 0.3}}
	c := NewChooser(three, "", 1, 1000)
	for _, takes := range []float64{0.2, 0.25, 0.1, 0.14} {
		fast.takes[0] = takes
		if said, _ := fast.run(c, 50); len(said) > 1 || c.Current() != 0 {
			t.Fatalf("for nothing: %q", said)
		}
	}
	said, used := slow.run(c, 2*10+1+rounds)
	if len(said) != 3 || !strings.Contains(said[0], "measuring again") || c.Current() != 2 || slices.Index(used, 2) > 20+1 {
		t.Fatalf("over a slow link %v: %q", used, said)
	}
	fast.takes = []float64{0.1, 0.1, 0.1}
	if said, _ := slow.run(c, 20); len(said) > 0 {
		t.Fatalf("for nothing: %q", said)
	}
	if said, _ := fast.run(c, 20+1); len(said) != 2 || c.Current() != 0 {
		t.Errorf("over a fast link again: %q", said)
	}
}

// Names and what they allow.
func TestCandidates(t *testing.T) {
	all := strings.Fields("none zeros s2 zstd bf16 bf16+s2 int8 int8+s2 adaptive adaptive+s2 int4 int4+s2 int4+zstd")
	for name, want := range map[string]string{
		"auto":          "none zeros s2 zstd bf16 bf16+s2 int8 int8+s2 adaptive adaptive+s2 int4 int4+s2 int4+zstd",
		"auto:int4":     "none zeros s2 zstd bf16 bf16+s2 int8 int8+s2 adaptive adaptive+s2 int4 int4+s2 int4+zstd",
		"auto:int8":     "none zeros s2 zstd bf16 bf16+s2 int8 int8+s2",
		"auto:bf16":     "none zeros s2 zstd bf16 bf16+s2",
		"auto:lossless": "none zeros s2 zstd",
		"int8":          "",
		"none":          "",
	} {
		got, err := Candidates(name)
		got = slices.DeleteFunc(got, func(c string) bool { return !slices.Contains(all, c) })
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"auto:", "auto:none", "auto:int2", "auto:int8+s2"} {
		if got, err := Candidates(name); err == nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
}
