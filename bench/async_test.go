package bench

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/config"
)

func TestAsync(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 3000, Noise: 0.2}, false); err != nil {
		t.Fatal(err)
	}
	o := AsyncOptions{Data: data, Staleness: []int{0, 1}, Lingers: []float64{0, 2}, Seeds: 2, Most: 1.5, Config: config.Defaults()}
	o.Config.Ranks, o.Config.Epochs, o.Config.Intervals, o.Config.Dropout = 3, 40, 2, 0
	var out strings.Builder
	if err := o.Run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"converges to", "pipe", "async s=0 linger=0", "async s=1 linger=2", "1.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	for name, wrong := range map[string]func(o *AsyncOptions){
		"dropout": func(o *AsyncOptions) { o.Config.Dropout = 0.5 },
		"seeds":   func(o *AsyncOptions) { o.Seeds = 0 },
		"most":    func(o *AsyncOptions) { o.Most = math.NaN() },
	} {
		o := o
		wrong(&o)
		if err := o.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
