package importers

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// bothWays has relations that name each other's packages, and one that comes in three fields.
const bothWays = debFixture + `
Package: tool
Section: misc
Depends: zsh (>= 5) | vim, zsh
Enhances: libc6 [amd64]
Suggests: none | libc6 (= 2)
Description: a tool

Package: zsh
Version: 6
Section: shells
Recommends: tool
Description: the newest
`

// Edges of packages have the features of their relations, in both directions, in the requested
// order.
func TestDebianEdgeFeatures(t *testing.T) {
	all := []string{"depends", "pre-depends", "recommends", "suggests", "enhances", "version", "alternative"}
	for _, c := range []struct {
		name, text string
		ask, names []string
		want       map[string]string // features of edges: of the source's relations, then "/" and the destination's
	}{
		{"everything", debFixture, []string{"field", "version", "alternative"}, all, map[string]string{
			"zsh>libc6": "pre-depends recommends version/", "libc6>zsh": "/pre-depends recommends version",
			"zsh>vim": "recommends/", "vim>zsh": "/recommends",
			"nothing>zsh": "enhances/", "zsh>nothing": "/enhances", "nothing>vim": "enhances alternative/",
			"vim>nothing": "/enhances alternative",
		}},
		{"some", debFixture, []string{"alternative", "version"}, []string{"alternative", "version"}, map[string]string{
			"zsh>libc6": "version/", "libc6>zsh": "/version", "zsh>vim": "/", "vim>zsh": "/",
			"nothing>zsh": "/", "zsh>nothing": "/", "nothing>vim": "alternative/", "vim>nothing": "/alternative",
		}},
		{"both ways", bothWays, []string{"field", "version", "alternative"}, all, map[string]string{
			"tool>zsh": "depends version/recommends", "zsh>tool": "recommends/depends version",
			"tool>vim": "depends alternative/", "vim>tool": "/depends alternative",
			"tool>libc6": "suggests enhances version alternative/", "libc6>tool": "/suggests enhances version alternative",
			"nothing>zsh": "enhances/", "zsh>nothing": "/enhances", "nothing>vim": "enhances alternative/",
			"vim>nothing": "/enhances alternative",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Src: "-", Stdin: strings.NewReader(c.text), TableOptions: TableOptions{EdgeFeatures: c.ask}}
			d, log := written(t, "debian", o)
			if said := "features=" + strings.Join(c.names, ","); !strings.Contains(log, said+" of the source's") {
				t.Errorf("log lacks %q: %s", said, log)
			}
			dim, got := 2*len(c.names), map[string]string{}
			if d.Meta.EdgeDim != dim {
				t.Fatalf("%d features, want %d", d.Meta.EdgeDim, dim)
			}
			for v := range d.In.Rows() {
				for i := d.In.Offsets[v]; i < d.In.Offsets[v+1]; i++ {
					var says [2][]string
					for j, x := range d.EdgeFeatures[int(i)*dim:][:dim] {
						if half := j / len(c.names); x == 1 {
							says[half] = append(says[half], c.names[j%len(c.names)])
						} else if x != 0 {
							t.Errorf("a feature of %v", x)
						}
					}
					got[d.IDs.At(int(d.In.Cols[i]))+">"+d.IDs.At(v)] = strings.Join(says[0], " ") + "/" + strings.Join(says[1], " ")
				}
			}
			for edge, says := range c.want {
				if got[edge] != says {
					t.Errorf("%s says %q, want %q", edge, got[edge], says)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("edges are %v", got)
			}
			plain, _ := written(t, "debian", Options{Src: "-", Stdin: strings.NewReader(c.text)})
			if plain.Meta.EdgeDim != 0 || !slices.Equal(plain.In.Cols, d.In.Cols) || !slices.Equal(plain.In.Offsets, d.In.Offsets) {
				t.Error("other edges than without features")
			}
		})
	}
	for want, o := range map[string]Options{
		`"word"`:            {TableOptions: TableOptions{EdgeFeatures: []string{"field", "word"}}},
		"named twice":       {TableOptions: TableOptions{EdgeFeatures: []string{"field", "field"}}},
		"--symmetrise":      {TableOptions: TableOptions{EdgeFeatures: []string{"field"}}, Symmetrise: true},
		"it has no columns": {TableOptions: TableOptions{Weight: "w"}},
	} {
		o.Src, o.Stdin, o.Dst = "-", strings.NewReader(debFixture), filepath.Join(t.TempDir(), "out")
		if _, err := Import("debian", o); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
