package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/config"
)

func TestEpoch(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 100, Edges: 400}, false); err != nil {
		t.Fatal(err)
	}
	o := EpochOptions{Data: data, Config: config.Defaults()}
	o.Config.Ranks, o.Config.Epochs = 3, 4
	var out strings.Builder
	if err := o.Run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 ranks (1 servers)", "3 epochs", "median s", "∇GA", "peak memory"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	o.Data, o.Like, o.Scale = "", "ogbn-arxiv", 0.001
	if err := o.Run(context.Background(), &out); err != nil {
		t.Error(err)
	}
	o.Data = data
	if err := o.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
		t.Errorf("two graphs: %v", err)
	}
	o.Like, o.Config.Epochs = "", 1
	if err := o.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
		t.Errorf("one epoch: %v", err)
	}
}
