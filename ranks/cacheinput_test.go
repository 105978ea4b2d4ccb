package ranks

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/ranks/config"
)

// A resumed run caches ÂX or not as it began, whatever free memory is then. It ends with the
// bits of a run that never stopped, and its recorded configuration repeats the choice.
func TestResumeKeepsCacheInput(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, kind := range []string{"gcn", "sgc", "sign"} {
		t.Run(kind, func(t *testing.T) { resumeKeeps(t, kind, data) })
	}
}

func resumeKeeps(t *testing.T, kind, data string) {
	begin := func(cache string) Config {
		c := saving(t, "off")
		c.Model, c.InputDropout, c.Hidden, c.CacheInput, c.Ranks, c.Servers = kind, 0, 4, cache, 2, 0
		return c
	}
	models := map[string][]byte{}
	for _, cache := range []string{"auto", "on", "off"} {
		models[cache] = train(t, begin(cache), data).model
	}
	if bytes.Equal(models["on"], models["off"]) || !bytes.Equal(models["on"], models["auto"]) {
		t.Fatal("the choice does not show in the model")
	}
	for cache, written := range map[string]string{"auto": "on", "on": "on", "off": "off"} {
		t.Run(cache, func(t *testing.T) {
			c := begin(cache)
			c.Epochs, c.CheckpointEvery = 13, "5e"
			train(t, c, data)
			c.Epochs, c.CacheInput, c.Resume = 40, "auto", "auto"
			got := train(t, c, data)
			if !bytes.Equal(got.model, models[cache]) {
				t.Error("another model than that of a run that never stopped")
			}
			if want := `cache-input = "` + written + `"`; !strings.Contains(got.Config, want) {
				t.Errorf("the configuration lacks %s:\n%s", want, got.Config)
			}
		})
	}
	t.Run("asked for", func(t *testing.T) {
		c := begin("on")
		c.Epochs, c.CheckpointEvery = 13, "5e"
		train(t, c, data)
		c.Epochs, c.CacheInput, c.Resume = 40, "off", "auto"
		var said bytes.Buffer
		if err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: &said}); err != nil ||
			!strings.Contains(said.String(), "cache_input is now false, but was true before the checkpoint") {
			t.Errorf("%v %s", err, &said)
		}
		log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
		if err != nil || !strings.Contains(string(log), "cache_input=false (switched off)") {
			t.Errorf("%v %s", err, log)
		}
	})
}

// The result of auto: the choice is recorded if memory made it, or if a resumed run made
// another one.
func TestSettleCacheInput(t *testing.T) {
	t.Parallel()
	powers := func(c *Config) { c.Model = "sign" }
	yes, no := true, false
	with, without := &yes, &no
	dense := &graph.Meta{Vertices: 1000, Edges: 10_000, FeatureDim: 30, FeatureKind: "dense", Classes: 4}
	sparse := &graph.Meta{Vertices: 1000, Edges: 2000, FeatureDim: 3000, FeatureKind: "sparse", FeatureNNZ: 5000, Classes: 4}
	for name, tc := range map[string]struct {
		set     func(*Config)
		meta    *graph.Meta
		drop    float64
		fits    bool
		earlier *bool
		want    string
	}{
		"fits":                                 {nil, dense, 0, true, nil, "on"},
		"does not fit":                         {nil, dense, 0, false, nil, "off"},
		"fits, but the run did without":        {nil, dense, 0, true, without, "off"},
		"does not fit, but the run has had it": {nil, dense, 0, false, with, "on"},
		"fits, and the run has had it":         {nil, dense, 0, true, with, "on"},
		"dropout, so never":                    {nil, dense, 0.5, true, nil, "auto"},
		"dropout, so never, no room":           {nil, dense, 0.5, false, without, "auto"},
		"costs more than it saves":             {nil, sparse, 0, true, nil, "auto"},
		"was asked for all the same":           {nil, sparse, 0, true, with, "on"},
		"powers fit":                           {powers, dense, 0, true, nil, "on"},
		"powers do not fit, but have been had": {powers, dense, 0, false, with, "on"},
		"powers cost more than they save":      {powers, sparse, 0, true, nil, "auto"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.Defaults()
			if c.InputDropout = tc.drop; tc.set != nil {
				tc.set(&c)
			}
			if got := chooseCache(c, c.Network(tc.meta.FeatureDim, tc.meta.Classes), tc.meta, tc.fits, tc.earlier); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
