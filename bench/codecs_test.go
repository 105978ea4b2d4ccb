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

func TestCodecs(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 3000, Noise: 0.2}, false); err != nil {
		t.Fatal(err)
	}
	o := CodecsOptions{Data: data, Codecs: []string{"none", "int8", "zstd"}, Seeds: 2, Config: config.Defaults()}
	o.Config.Ranks, o.Config.Epochs, o.Config.Hidden = 3, 10, 128
	var out strings.Builder
	if err := o.Run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ratio at width 128", "none", "1.00", "int8", "3.88", "zstd", " - "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
	for _, harm := range []func(*CodecsOptions){
		func(o *CodecsOptions) { o.Seeds = 0 },
		func(o *CodecsOptions) { o.Codecs = []string{"none", "gzip"} },
	} {
		bad := o
		harm(&bad)
		if err := bad.Run(context.Background(), &out); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", bad.Codecs, err)
		}
	}
}
