// Package kernels is the kernels of the CUDA backend as PTX text, for devices of
// compute capability 7.0 and all later ones, which their driver compiles it for.
//
// The text is made from the .cu files beside it by make-ptx, with clang-16 and
// nothing else; whoever changes one of them runs it again. The head of each file
// says what its kernels compute and how; the Ops in package cuda are their only
// caller and know what they take.
//
// Sums have an order that depends on shapes alone, and there are no atomics: the
// same launch gives the same bits.
package kernels

import (
	"embed"
	"path"
	"strings"
)

//go:embed ptx/*.ptx
var files embed.FS

// Module is the PTX of a .cu file.
type Module struct{ Name, Text string }

// Modules are all of them, by name.
func Modules() []Module {
	entries, err := files.ReadDir("ptx")
	if err != nil {
		panic("kernels: no PTX in this build")
	}
	var modules []Module
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("ptx", e.Name()))
		if err != nil {
			panic("kernels: no PTX in this build")
		}
		modules = append(modules, Module{strings.TrimSuffix(e.Name(), ".ptx"), string(text)})
	}
	return modules
}

// Entries are the names of the kernels in m.
func (m Module) Entries() []string {
	var names []string
	for line := range strings.Lines(m.Text) {
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
