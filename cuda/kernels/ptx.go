// Package kernels has the kernels of the CUDA backend as PTX text. The driver compiles it for
// devices of compute capability 7.0 and later.
//
// make-ptx generates the text from the .cu files with clang-16 only; run it after a change.
// The head of each file documents its kernels; the Ops in package cuda are their only callers.
//
// The order of sums depends only on shapes, and there are no atomics: the same launch gives
// the same bits.
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
