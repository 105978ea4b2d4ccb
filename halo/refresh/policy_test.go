package refresh_test

import (
	"strings"
	"testing"

	"siafu/halo/refresh"
	"siafu/internal/fault"
)

// Parse and String are inverse. A default value is omitted again.
func TestParse(t *testing.T) {
	for text, want := range map[string]refresh.Policy{
		"":               {Name: "always"},
		"never":          {Name: "never"},
		"previous":       {Name: "previous", Value: 0.95, Rows: true, Grads: true},
		"previous:none":  {Name: "previous"},
		"previous:F0.95": {Name: "previous", Value: 0.95, Rows: true},
		"previous:G0":    {Name: "previous", Grads: true},
		"previous:GF0.5": {Name: "previous", Value: 0.5, Rows: true, Grads: true},
		"every:10":       {Name: "every", Epochs: 10},
		"every:10,9":     {Name: "every", Epochs: 10, Lag: 9},
		"sample:0.1":     {Name: "sample", Value: 0.1},
		"delay:0":        {Name: "delay"},
		"delay:5":        {Name: "delay", Epochs: 5},
		"drift:0":        {Name: "drift", Epochs: 10},
		"drift:0.05,3":   {Name: "drift", Value: 0.05, Epochs: 3},
		"age:4":          {Name: "age", Epochs: 4, Value: 1},
		"age:4,0.9":      {Name: "age", Epochs: 4, Value: 0.9},
	} {
		got, err := refresh.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, err, want)
		}
		if text == "previous" {
			text = "previous:GF0.95"
		}
		if s := got.String(); text != "" && s != text {
			t.Errorf("%q is written as %q", text, s)
		}
	}
}

// Invalid names are usage faults that name the valid forms.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"sometimes":      "one of",
		"always:1":       "without a parameter",
		"previous:0.95":  "F, G or GF",
		"previous:FG0.9": "F, G or GF",
		"previous:F1":    "below 1",
		"previous:F":     "DECAY",
		"every":          "number of epochs",
		"every:0":        "1 or more",
		"every:x":        "1 or more",
		"every:4,5":      "from 0 to N",
		"every:4,1,2":    "one of",
		"sample":         "probability",
		"sample:":        "probability",
		"sample:0":       "above 0",
		"sample:1.5":     "up to 1",
		"sample:NaN":     "up to 1",
		"delay:-1":       "from 0",
		"drift:-0.1":     "0 or more",
		"drift:Inf":      "0 or more",
		"drift:0.1,0":    "1 or more",
		"age:2,0":        "above 0",
	} {
		_, err := refresh.Parse(text)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--refresh="+text) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", text, err, want)
		}
	}
}
