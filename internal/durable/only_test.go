package durable

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder.
const root = "../.."

// byHand are the files outside this package that write, make or rename by
// themselves, with the calls that they make and why they may.
var byHand = map[string][]string{
	"internal/scratch":         {"Mkdir", "Rename"},                              // this package's own ground
	"internal/testkit":         {"MkdirAll", "MkdirTemp", "Rename", "WriteFile"}, // for tests
	"graph/download/unzip.go":  {"MkdirAll"},                                     // only temporary
	"ranks/runfolder/claim.go": {"Mkdir"},                                        // undone with the claim, else synced
	"internal/disk/file.go":    {"CreateTemp"},                                   // without a name
	// of a file that is open for appending; a checkpoint syncs it
	"ranks/checkpoint/metrics.go":    {"WriteFile"},
	"internal/host/memory.go":        {"WriteFile"}, // to the kernel
	"slurm/launch":                   {"WriteFile"}, // for as long as the launcher lives
	"slurm/hosts":                    {"WriteFile"}, // until the hosts are closed
	"slurm/testdata/standin/main.go": {"MkdirAll", "WriteFile"},
	"bench":                          {"Create", "Mkdir", "MkdirAll", "MkdirTemp", "WriteFile"}, // measures, and keeps nothing
}

// All code writes permanent files and folders through this package.
func TestOnlyWay(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(rel, "internal/durable/") {
			return err
		}
		calls, err := writing(path)
		for _, c := range calls {
			if !allowed(rel, c.name) {
				t.Errorf("%s:%d: os.%s: what is to stay is written through durable", rel, c.line, c.name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allowed tells whether a file, or the folder that it is in, may make a call.
func allowed(file, call string) bool {
	for path := file; path != "."; path = filepath.Dir(path) {
		if slices.Contains(byHand[path], call) {
			return true
		}
	}
	return false
}

type call struct {
	name string
	line int
}

// writing returns the calls in a source file that make or rename something.
func writing(path string) (calls []call, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch fmt.Sprint(s.X) + "." + s.Sel.Name {
		case "os.Create", "os.CreateTemp", "os.Mkdir", "os.MkdirAll", "os.MkdirTemp", "os.Rename", "os.WriteFile",
			"unix.Rename", "unix.Renameat", "unix.Renameat2", "syscall.Rename":
			calls = append(calls, call{s.Sel.Name, files.Position(s.Pos()).Line})
		}
		return true
	})
	return calls, nil
}
