package tune

import (
	"strings"

	"siafu/graph/fault"
)

// Names says what Candidates takes.
const Names = "auto, auto:lossless, auto:bf16, auto:int8 or auto:int4"

// candidates are the codecs to choose from, the most exact first. Those that
// differ in what they lose of a number differ in class.
var candidates = []struct{ name, class string }{
	{"none", "lossless"}, {"zeros", "lossless"}, {"s2", "lossless"}, {"zstd", "lossless"},
	{"bf16", "bf16"}, {"bf16+s2", "bf16"},
	{"int8", "int8"}, {"int8+s2", "int8"},
	{"adaptive", "int4"}, {"adaptive+s2", "int4"},
	{"int4", "int4"}, {"int4+s2", "int4"}, {"int4+zstd", "int4"},
}

// Candidates are the codecs that an automatic choice is made from, the most
// exact first. name is auto, or auto:CLASS for those that lose no more than the
// class does: lossless, bf16, int8 or int4, which is the default. There are none
// where name asks for no choice; a fault has kind Usage.
func Candidates(name string) ([]string, error) {
	if name == "auto" {
		name = "auto:int4"
	}
	most, limited := strings.CutPrefix(name, "auto:")
	if !limited {
		return nil, nil
	}
	var names, allowed []string
	for _, c := range candidates {
		names = append(names, c.name)
		if c.class == most {
			allowed = names
		}
	}
	if allowed == nil {
		return nil, fault.New(fault.Usage, "codec", "", "no automatic choice is called %q", name).Then("use %s", Names)
	}
	return allowed, nil
}
