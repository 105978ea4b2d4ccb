package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// A command line with parts sets the options that it would set with a flag for each option.
func TestSeparate(t *testing.T) {
	for line, want := range map[string]string{
		"--predict lstm-gcn:window=4,every=10 g": "--predict=lstm-gcn --predict-window=4 --predict-every=10 g",
		"--predict=lstm-gcn:hold,every=2":        "--predict=lstm-gcn --predict-hold=true --predict-every=2",
		"--predict hold=false g":                 "--predict-hold=false g",
		"--predict window=4":                     "--predict-window=4",
		"--predict momentum:0.9":                 "--predict momentum:0.9",
		"--batch history:4,format=bf16":          "--batch=history:4 --history-format=bf16",
		"--batch neighbor:25,10":                 "--batch neighbor:25,10",
		"--survive g":                            "--survive g",
		"--survive spares=1,least=2 g":           "--survive --spares=1 --least-ranks=2 g",
		"--survive notice=test,-f,x,listen=::/0": "--survive --notice=test,-f,x --listen=::/0",
		"--lambda aws:faults=crash=0.1,late=0.2": "--lambda=aws --lambda-faults=crash=0.1,late=0.2",
		"--lambda address=:0,host:0,bridges=2":   "--bridge-address=:0,host:0 --bridges=2",
		"--memory 8GB:scratch=/a,b":              "--memory=8GB --scratch=/a,b",
		"--optimizer sgd --optimizer momentum=0": "--optimizer sgd --momentum=0",
		"predict window=4":                       "predict window=4",
		"-- --predict window=4":                  "-- --predict window=4",
		"--predict":                              "--predict",
		"--model appnp:alpha=,hops=":             "--model=appnp --alpha= --hops=",
	} {
		got, err := Separate(strings.Fields(line))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %s", line, got, err, want)
		}
	}
	for _, line := range []string{"--predict lstm-gcn:windw=4", "--predict=windw=4,every=3", "--memory 8GB:scratchh=/a"} {
		if _, err := Separate(strings.Fields(line)); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "its parts are") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Each option can be set as Spell has it. A flag with parts has no value in which one of their names
// would be read.
func TestSpell(t *testing.T) {
	for option := range optionIndices() {
		words := strings.Fields(Spell(option, "true"))
		got, err := Separate(words)
		if err != nil || !slices.Contains(got, "--"+option+"=true") {
			t.Errorf("%s: %q %q %v", option, words, got, err)
		}
		if p, ok := PartOf(option); ok && OptionOf(p.Flag, p.Name) != option {
			t.Errorf("%s is not the part %s of %s", option, p.Name, p.Flag)
		}
		if _, ok := optionIndices()[parts().options[option].Flag]; !ok && parts().options[option].Flag != "" {
			t.Errorf("%s is a part of no flag", option)
		}
	}
	for flag, list := range parts().of {
		for _, c := range Choices()[flag] {
			if head, set, err := separate(flag, c.Form); head != c.Form || set != nil || err != nil {
				t.Errorf("--%s %s: %+v %v", flag, c.Form, set, err)
			}
		}
		if len(list) == 0 {
			t.Errorf("--%s has no parts", flag)
		}
	}
}

// A file and a variable have parts, too.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		flag, value string
		want        map[string]string
	}{
		{"mode", "async:staleness=1", map[string]string{"mode": "async", "staleness": "1"}},
		{"survive", "spares=1", map[string]string{"survive": "true", "spares": "1"}},
		{"hidden", "a=b", map[string]string{"hidden": "a=b"}},
		{"predict", "", map[string]string{"predict": ""}},
	} {
		if got, err := Values(c.flag, c.value); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s = %s: %v %v", c.flag, c.value, got, err)
		}
	}
}
