package config

import (
	"strings"
	"testing"

	"siafu/internal/fault"
)

// A codec of tasks is refused without functions, if it is unknown, and if it depends on earlier
// messages.
func TestTravelOfTasks(t *testing.T) {
	for _, c := range []struct {
		tensor, codec, without string
		refused                string // the flag
	}{
		{"lambda", "float32", "", ""}, {"lambda", "", "", ""}, {"lambda", "s2", "fusion", ""},
		{"lambda", "int4+zstd", "streaming,fusion,rematerialisation", ""}, {"lambda", "adaptive:3", "", ""},
		{"lambda", "fp3", "", "--lambda codec="}, {"lambda", "int8+ef", "", "--lambda codec="}, {"lambda", "auto", "", "--lambda codec="},
		{"lambda", "float32", "speed", "--lambda without="}, {"lambda", "float32", "fusion,", "--lambda without="},
		{"cpu", "s2", "", "--lambda codec="}, {"cpu", "float32", "fusion", "--lambda without="}, {"cpu", "float32", "", ""},
	} {
		d := Defaults()
		d.Tensor, d.LambdaCodec, d.LambdaWithout = c.tensor, c.codec, c.without
		if c.tensor == TensorLambda {
			d.Lambda = LambdaLocal
		}
		err := d.Validate()
		if c.refused == "" && err == nil {
			continue
		}
		if c.refused == "" || fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// An optimisation is there unless it is left out.
func TestWith(t *testing.T) {
	c := Defaults()
	c.LambdaWithout = "streaming,fusion"
	for what, want := range map[string]bool{Fusion: false, Streaming: false, Rematerialisation: true} {
		if c.With(what) != want {
			t.Errorf("%s: %t", what, !want)
		}
	}
	if codec, err := c.TaskCodec(); codec != nil || err != nil {
		t.Errorf("values travel as %v, %v", codec, err)
	}
}
