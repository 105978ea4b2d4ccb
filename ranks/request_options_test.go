package ranks

import (
	"bytes"
	"strings"
	"testing"

	"siafu/internal/testkit/functiontest"
	"siafu/ranks/config"
)

// Each optimisation of tasks can be disabled, and lossless codecs can be used: this changes
// the bytes sent, and no bit of the model. Lossy codecs also train, with fewer bytes.
func TestLambdaForms(t *testing.T) {
	t.Parallel()
	data, path := parted(t, generated(t, true)), functiontest.Build(t)
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads, c.Layers = 4, 1, 0, 2, 2, 3
	want := train(t, c, data)
	as := func(codec, without string) (got trained, tasks int, size float64) {
		c := c
		c.Out += "-" + codec + without
		c.LambdaCodec, c.LambdaWithout = codec, without
		got, _, n := invoked(t, c, data, path, nil)
		t.Logf("--lambda codec=%s,without=%q: %v", codec, without, n)
		return got, n.Sent, float64(n.Bytes) / float64(n.Sent+n.Again)
	}
	_, tasks, size := as("float32", "")
	for _, form := range []struct{ codec, without string }{
		{"float32", "fusion"}, {"float32", "rematerialisation"}, {"float32", "streaming"}, {"s2", ""},
		{"float32", "fusion,rematerialisation,streaming"},
	} {
		got, n, each := as(form.codec, form.without)
		if !bytes.Equal(got.model, want.model) {
			t.Errorf("%+v: the model is another one", form)
		}
		if more := strings.Contains(form.without, config.Fusion); (n > tasks) != more || each == size {
			t.Errorf("%+v: %d tasks of %.0f bytes, and %d of %.0f without", form, n, each, tasks, size)
		}
	}
	for _, codec := range []string{"bf16", "int8"} {
		got, n, each := as(codec, "")
		if n != tasks || each >= size {
			t.Errorf("%s: %d tasks of %.0f bytes, and %d of %.0f without", codec, n, each, tasks, size)
		}
		sameLosses(t, codec, got.losses(), want.losses(), 0.05)
		if bytes.Equal(got.model, want.model) {
			t.Errorf("%s: nothing is rounded", codec)
		}
	}
}
