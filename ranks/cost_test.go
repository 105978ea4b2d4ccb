package ranks

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

// A run costs its hosts' hours, however many ranks are on a host; it says so while it
// goes on and at its end, and in all its parts.
func TestCostOfARun(t *testing.T) {
	data := generated(t, false)
	c := saving(t, "off")
	c.CheckpointEvery, c.Epochs, c.Ranks, c.Servers, c.Quiet, c.Instance = "1h", 4, 3, 1, false, "3600"
	var out bytes.Buffer
	if err := Train(context.Background(), c, data, IO{Out: &out, Err: &out}); err != nil {
		t.Fatal(err)
	}
	r := readRun(t, c.Out)
	s := r.Summary
	if s.Hosts != 1 || s.Instance != "3600" || math.Abs(s.CostUSD-s.TotalSeconds) > 1e-6 { // a dollar a second
		t.Errorf("%+v", s)
	}
	if want := 1 / (s.TotalSeconds * s.CostUSD); math.Abs(s.Value/want-1) > 1e-6 {
		t.Errorf("value %g, want %g", s.Value, want)
	}
	want := fmt.Sprintf("bill instance=3600 usd_an_hour=3600 hosts=1 usd=%.6f", s.CostUSD)
	if text := out.String(); !strings.Contains(text, want) || !strings.Contains(text, " usd=") {
		t.Errorf("it prints no %q:\n%s", want, text)
	}
	before := 0.0
	for _, e := range r.Epochs {
		if e.CostUSD <= before || e.CostUSD > s.CostUSD {
			t.Errorf("epoch %d: $%g, after $%g and of $%g", e.Epoch, e.CostUSD, before, s.CostUSD)
		}
		before = e.CostUSD
	}
	c.Epochs, c.Resume, c.Quiet = 5, "auto", true
	if next := train(t, c, data).Summary; next.CostUSD <= before || math.Abs(next.CostUSD-next.TotalSeconds) > 1e-6 {
		t.Errorf("$%g for %g s when resumed", next.CostUSD, next.TotalSeconds)
	}
	c = quick(t)
	c.Epochs = 1
	if s := train(t, c, data).Summary; s.CostUSD != 0 || s.Value != 0 || s.Instance != "" {
		t.Errorf("%+v without --instance", s)
	}
}
