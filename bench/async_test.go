package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/fault"
	"siafu/graph/generate"
	"siafu/ranks/config"
)

func TestAsync(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 3000, Noise: 0.2}, false); err != nil {
		t.Fatal(err)
	}
	o := AsyncOptions{Data: data, Staleness: []int{0, 1}, Config: config.Defaults()}
	o.Config.Ranks, o.Config.Epochs, o.Config.Intervals, o.Config.Dropout = 3, 40, 2, 0
	var out strings.Builder
	if err := o.Run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"converges to", "pipe", "async s=0", "async s=1", "1.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	o.Config.Dropout = 0.5
	if err := o.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
		t.Errorf("dropout: %v", err)
	}
}
