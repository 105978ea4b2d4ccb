package cli

import (
	"reflect"
	"testing"

	"github.com/alecthomas/kong"

	"siafu/cli/commandline"
)

// TestCommandLine checks that the grammar of one command is that command's part of the
// whole grammar.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	model := func(args ...string) *kong.Node {
		parser, err := commandline.NewParser(commandLine(args))
		if err != nil {
			t.Fatal(err)
		}
		return parser.Model.Node
	}
	whole := model()
	for _, want := range whole.Children {
		children := model(want.Name).Children
		if len(children) != 1 {
			t.Errorf("%s: %d commands, want 1", want.Name, len(children))
			continue
		}
		if got, want := commandline.Describe(children[0]), commandline.Describe(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", want.Name, got, want)
		}
	}
	for _, args := range [][]string{nil, {"help", "train"}, {"trian"}, {"train", "--help"}, {"bench", "epoch", "-h"}} {
		if n := len(model(args...).Children); n != len(whole.Children) {
			t.Errorf("%q: %d commands, want %d", args, n, len(whole.Children))
		}
	}
}
