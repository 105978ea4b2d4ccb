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
	"sync"
)

//go:embed ptx/*.ptx
var files embed.FS

// Module is the PTX of a .cu file.
type Module struct {
	Name, Text string
	Entries    []string // names of its kernels
}

// Modules returns all modules by name. The caller must not change the list.
var Modules = sync.OnceValue(func() []Module {
	list, err := files.ReadDir("ptx")
	if err != nil {
		panic("kernels: no PTX in this build")
	}
	var modules []Module
	for _, f := range list {
		modules = append(modules, read(f.Name()))
	}
	return modules
})

func read(file string) Module {
	text, err := files.ReadFile(path.Join("ptx", file))
	if err != nil {
		panic("kernels: no PTX in this build")
	}
	m := Module{Name: strings.TrimSuffix(file, ".ptx"), Text: string(text)}
	for line := range strings.Lines(m.Text) {
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			m.Entries = append(m.Entries, strings.TrimSpace(name))
		}
	}
	return m
}
