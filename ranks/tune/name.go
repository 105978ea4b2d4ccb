package tune

import (
	"strings"

	"siafu/internal/fault"
)

// Names lists the names that Candidates accepts.
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

// Candidates returns the codecs of an automatic choice, the most exact first. name is auto
// or auto:CLASS, which limits the error to that of the class: lossless, bf16, int8 or int4
// (the default). The result is empty if name requests no automatic choice; a fault has kind
// Usage.
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
		return nil, fault.New(fault.Usage, "codec", "", "unknown automatic codec %q", name).Then("use %s", Names)
	}
	return allowed, nil
}
