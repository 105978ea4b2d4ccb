package cli

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listed is a package as "go list -json" has it.
type listed struct {
	Dir, ImportPath string
	Standard        bool
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Path string }
}

// checked are packages whose types are known, by import path.
type checked map[string]*types.Package

// siafu and the function have no type errors on another architecture, without cgo and assembly.
// Type checking takes seconds. Compiling would take most of a minute, because it includes the
// standard library.
func TestTypesOnAnotherArchitecture(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,ImportPath,Standard,GoFiles,ImportMap,Module", ".", "./lambda/function/bootstrap")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	known, ours := checked{"unsafe": types.Unsafe}, 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != "unsafe" {
			known.check(t, p)
		}
		if p.Module != nil && p.Module.Path == "siafu" {
			ours++
		}
	}
	if ours < 50 {
		t.Errorf("%d packages of siafu are looked at", ours)
	}
}

// check looks at a package whose imports it knows, and into functions where they are ours.
func (c checked) check(t *testing.T, p listed) {
	files, fset := []*ast.File{}, token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	ours := p.Module != nil && p.Module.Path == "siafu"
	config := types.Config{
		Sizes: types.SizesFor("gc", "arm64"), IgnoreFuncBodies: !ours,
		Importer: importer(func(path string) (*types.Package, error) {
			if real, ok := p.ImportMap[path]; ok {
				path = real
			}
			return c[path], nil
		}),
		Error: func(err error) {
			if ours {
				t.Error(err)
			}
		},
	}
	c[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil) // Error has had it
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) { return i(path) }
