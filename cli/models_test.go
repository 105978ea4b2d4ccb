package cli

import (
	"slices"
	"strings"
	"testing"

	"siafu/kernels/model"
)

// Every network and every initialiser can be selected by its name; other names are refused.
// siafu help networks has a line for each network.
func TestNamesOfTheCommandLine(t *testing.T) {
	for flag, names := range map[string][]string{
		"model":       model.Kinds(),
		"initializer": append([]string{model.Auto}, model.Initializers()...),
	} {
		found := false
		for _, command := range describe().Leaves() {
			if f := command.Flag(flag); f != nil && f.Values != nil { // bench accuracy filters by a model
				found = true
				if !slices.Equal(f.Values, names) {
					t.Errorf("%s --%s takes %s, the package has %s", command.Path, flag, f.Values, names)
				}
			}
		}
		if !found {
			t.Errorf("no command has a flag --%s", flag)
		}
	}
	lines := strings.Split(must(t, "help", "networks"), "\n")
	for i, kind := range model.Kinds() {
		if k := model.KindOf(kind); k.Help == "" || !strings.HasPrefix(lines[i], kind+" ") || !strings.Contains(lines[i], k.Help) ||
			!strings.Contains(lines[i], k.Paper) {
			t.Errorf("help networks has %q for %s", lines[i], kind)
		}
	}
}
