package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"siafu/kernels/model"
)

// Every network can be asked for by its name, and no other.
func TestNetworksOfTheCommandLine(t *testing.T) {
	var g grammar
	parser, err := kong.New(&g)
	if err != nil {
		t.Fatal(err)
	}
	want, found := strings.Join(model.Kinds(), ","), false
	for _, command := range parser.Model.Leaves(true) {
		for _, f := range command.Flags {
			if f.Name == "model" && f.Enum != "" { // bench accuracy filters by it
				found = true
				if f.Enum != want {
					t.Errorf("%s --model takes %s, the table of networks has %s", command.Path(), f.Enum, want)
				}
			}
		}
	}
	if !found {
		t.Error("no command has a flag --model")
	}
}
