package yardstick

import (
	"context"
	"strconv"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// SpMM starts the C loop, with the instructions of siafu's best kernels, for a whole square matrix (Base 0, Begin and End of one CSR, both
// scales given) and x [rows x width].
func (l *Runner) SpMM(ctx context.Context, g kernels.Gather, x []float32, width, threads int) ([]*Reference, error) {
	flags := []string{"-fopenmp"}
	if kernels.Best() != "avx512" {
		flags = append(flags, "-mno-avx512f")
	}
	program, err := l.compile(ctx, "spmm", flags...)
	if err != nil {
		return nil, err
	}
	rows := g.Rows()
	offsets := append(append(make([]int64, 0, rows+1), g.Begin...), g.End[rows-1])
	r, err := l.start(ctx, "C loop", nil, operands{
		"offsets": mapped.Bytes(offsets), "cols": mapped.Bytes(g.Cols), "x": mapped.Bytes(x),
		"row_scale": mapped.Bytes(g.RowScale), "col_scale": mapped.Bytes(g.ColScale),
	}, []string{program}, strconv.Itoa(rows), strconv.Itoa(len(g.Cols)), strconv.Itoa(width), strconv.Itoa(threads))
	if err != nil {
		return nil, err
	}
	return []*Reference{r}, nil
}

// Form is the transposition of a product's operands.
type Form string

// The products of MatMul, MatMulTransB and MatMulTransA.
const (
	Plain  Form = "N"
	TransB Form = "B"
	TransA Form = "A"
)

// coreTypes returns the sets of routines to try OpenBLAS with: "" is its own choice, which in
// some versions is older than the processor supports. They use the instructions of siafu's best kernels.
func coreTypes() []string {
	switch kernels.Best() {
	case "avx512":
		return []string{"", "SkylakeX"}
	case "avx2":
		return []string{"Haswell", "Zen"}
	}
	return []string{""}
}

// SGEMM starts cblas_sgemm of OpenBLAS once for every useful set of its routines; the caller
// takes the best. Shapes are those of package kernels.
func (l *Runner) SGEMM(ctx context.Context, form Form, m, n, k int, a, b []float32, threads int) ([]*Reference, error) {
	program, err := l.compile(ctx, "sgemm", "-lopenblas")
	if err != nil {
		return nil, err
	}
	var references []*Reference
	for _, core := range coreTypes() {
		name, env := "OpenBLAS", []string{"OPENBLAS_NUM_THREADS=" + strconv.Itoa(threads)}
		if core != "" {
			name, env = name+" "+core, append(env, "OPENBLAS_CORETYPE="+core)
		}
		r, err := l.start(ctx, name, env, operands{"a": mapped.Bytes(a), "b": mapped.Bytes(b)}, []string{program},
			string(form), strconv.Itoa(m), strconv.Itoa(n), strconv.Itoa(k))
		if err != nil {
			CloseAll(references)
			return nil, err
		}
		references = append(references, r)
	}
	return references, nil
}

// CloseAll closes references, and ignores errors.
func CloseAll(references []*Reference) {
	for _, r := range references {
		r.Close()
	}
}
