package pytorch

import (
	"bytes"
	_ "embed"
	"io"
	"regexp"
	"slices"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/inventory"
)

// script needs PyTorch alone, and reads the network from the file of weights beside it.
//
//go:embed model.py
var script string

// kindsInScript is the line of the script that lists its networks.
var kindsInScript = regexp.MustCompile(`(?m)^ *if kind not in \((.*)\):$`)

// Networks returns the kinds of networks in the script.
func Networks() []string {
	return strings.Split(strings.ReplaceAll(kindsInScript.FindStringSubmatch(script)[1], `"`, ""), ", ")
}

// Knows reports whether the script has a network of that kind.
func Knows(kind string) bool { return slices.Contains(Networks(), kind) }

// WriteScript writes the Python file to path, over one of an earlier version if need be.
// Faults have kind Usage, IO or Missing.
func WriteScript(path string) error {
	head, _, _ := strings.Cut(script, "\n\n")
	if err := inventory.Overwrite("export", path, func(b []byte) bool { return bytes.HasPrefix(b, []byte(head)) }); err != nil {
		return err
	}
	return durable.Write("export", path, func(w io.Writer) error { _, err := io.WriteString(w, script); return err })
}
