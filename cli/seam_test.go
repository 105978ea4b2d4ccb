package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"siafu/kernels/model"
)

// hostReaders lists the files that may treat a matrix as host memory (Mat.Host), because they
// check it, or run only with host memory: the two sides of tensor work on GPUs with graph work
// on the host, samples of mini-batches, and timings.
var hostReaders = []string{
	"halo/exchange.go", "halo/batch.go", "halo/refresh/series.go", "halo/staged.go",
	"kernels/model/device_copy.go", "ranks/tensor/device.go", "halo/history/variates.go", "halo/sample/induced.go", "halo/sample/fetch.go",
	"ranks/plan/calibrate.go", "ranks/forecast/rehearsal.go", "ranks/engine/measure.go", "ranks/engine/pipeline.go",
	"ranks/engine/pipeline_messages.go", "ranks/engine/fetch.go", "ranks/graphwork/edge_arrays.go", "ranks/engine/predictions.go",
	"halo/history/batch.go", "halo/history/predicted.go", "halo/predict/momentum.go",
	"halo/predict/groups.go", "halo/predict/source.go", "halo/predict/layer.go", "halo/predict/transfer.go", "halo/predict/recurrent.go",
	"halo/predict/cell.go", "halo/predict/readout.go", "halo/predict/online.go", "halo/predict/part_graph.go",
	// only on CPUs
	"ranks/graphwork/relation_edges.go", "ranks/graphwork/relational_attention.go", "ranks/graphwork/relational_emission.go",
}

// Layers, gathers, exchanges and all else of a run compute with kernels.Ops and read matrices
// through it. Kernels are methods of Team, which is an Ops: none is a separate function, and
// no other code uses a matrix's Host.
func TestArithmeticGoesThroughOps(t *testing.T) {
	methods := 0
	eachFile(t, "kernels", func(path string, file *ast.File, at func(ast.Node) token.Position) {
		if filepath.Dir(path) != "kernels" {
			return
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !f.Name.IsExported():
			case f.Recv != nil && isTeam(f.Recv.List[0]):
				methods++
			case f.Recv == nil && slices.ContainsFunc(f.Type.Params.List, isTeam):
				t.Errorf("%v: %s takes a Team; make it a method of kernels.Ops", at(d), f.Name)
			}
		}
	})
	if methods == 0 {
		t.Fatal("no kernels are found")
	}
	for _, dir := range []string{"kernels/model", "kernels/task", "halo", "ranks"} {
		eachFile(t, dir, func(path string, file *ast.File, at func(ast.Node) token.Position) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if (s.Sel.Name == "Host" && len(call.Args) == 0 || s.Sel.Name == "HostHalf") && !slices.Contains(hostReaders, path) {
					t.Errorf("%v: a matrix is read where it may not lie; use kernels.Read or kernels.Fetch", at(n))
				}
				return true
			})
		})
	}
}

// Only kernels/model knows networks by their names; others ask model.Kind. The score of pairs
// has a name of its own, and benchmarks repeat published runs.
func TestNetworksAreNotNamed(t *testing.T) {
	for _, dir := range []string{"cuda", "halo", "internal", "lambda", "ranks", "slurm"} {
		eachFile(t, dir, func(path string, file *ast.File, at func(ast.Node) token.Position) {
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && path != "ranks/config/task.go" {
					if name, err := strconv.Unquote(text.Value); err == nil && slices.Contains(model.Kinds(), name) {
						t.Errorf("%v: the network %s is named; add a field to model.Kind", at(n), name)
					}
				}
				return true
			})
		})
	}
}

// isTeam tells whether a receiver or an argument is a *Team.
func isTeam(f *ast.Field) bool {
	star, ok := f.Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	x, ok := star.X.(*ast.Ident)
	return ok && x.Name == "Team"
}

// eachFile parses the files of a folder and those below it, tests aside.
func eachFile(t *testing.T, dir string, look func(path string, file *ast.File, at func(ast.Node) token.Position)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		look(filepath.ToSlash(path), file, func(n ast.Node) token.Position { return set.Position(n.Pos()) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
