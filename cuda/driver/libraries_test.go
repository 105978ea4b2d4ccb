//go:build cgo

package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"siafu/cuda/device"
	"siafu/internal/testkit/drivertest"
)

// withLibraries returns a device and a stream with stand-ins for driver, cuBLAS and cuSPARSE.
func withLibraries(t *testing.T) (*opened, *blasCalls, *sparseCalls, *stream) {
	t.Helper()
	drivertest.StartLog(t)
	file := drivertest.Build(t, "testdata/libraries.c")
	l, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	blas, noBLAS := openBLAS("libno-such-blas.so", file)
	sparse, noSparse := openSparse(file)
	d, err := l.open(0)
	if err = errors.Join(err, noBLAS, noSparse); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Log(t)
	return d, blas, sparse, s.(*stream)
}

// cuBLAS gets its stream, then its own workspace, and the requested products.
func TestBLAS(t *testing.T) {
	d, library, _, s := withLibraries(t)
	b, err := d.openBLAS(library, s)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name() != "cuBLAS 12.13.14" {
		t.Error(b.Name())
	}
	g := device.Gemm{TransA: true, M: 2, N: 3, K: 5, A: 0xa000, LDA: 7, B: 0xb000, LDB: 11, C: 0xc000, LDC: 13, Beta: 1}
	if err := errors.Join(b.Gemm(g), b.Close()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cublasCreate_v2", "cuMemAlloc_v2 33554432", "cublasSetStream_v2 0x5000", "cublasSetWorkspace_v2 33554432", "cublasSetMathMode 0",
		"cublasSgemm_v2 1 0 2 3 5 1 0xa000 7 0xb000 11 1 0xc000 13", "cublasDestroy_v2", "cuCtxSynchronize", "cuMemFree_v2",
	}
	if got := drivertest.Log(t); !slices.Equal(got, want) {
		t.Errorf("called\n%q\nwant\n%q", got, want)
	}
	for _, bad := range []device.Gemm{{}, {M: 1, N: 1, K: 1, LDA: 1, LDB: 1, LDC: 1 << 31}} {
		if err := b.Gemm(bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// Resources of a cuSPARSE product are reused over its calls, and freed.
func TestSparse(t *testing.T) {
	d, _, library, s := withLibraries(t)
	l, err := d.openSparse(library, s)
	if err != nil {
		t.Fatal(err)
	}
	a := device.CSR{Rows: 2, Cols: 3, Edges: 4, Offsets: 0xa000, Index: 0xb000, Values: 0xc000, Half: true}
	b, c := device.Dense{Rows: 3, Cols: 5, At: 0xd000, Half: true}, device.Dense{Rows: 2, Cols: 5, At: 0xe000}
	p, err := l.SpMM(a, b, c, device.RowMajor)
	if err != nil {
		t.Fatal(err)
	}
	if l.Name() != "cuSPARSE 11.12.13" || p.Workspace() != 48 {
		t.Errorf("%s, %d bytes", l.Name(), p.Workspace())
	}
	if err := errors.Join(p.Run(), p.Run(), p.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	const product = " 0 0 1 0x8100 0x15000 0 0x16000 0 6"
	want := []string{
		"cusparseCreate", "cusparseSetStream 0x5000", "cusparseCreateCsr 2 3 4 0xa000 0xb000 0xc000 2 2 0 14",
		"cusparseCreateDnMat 3 5 5 0xd000 14 2", "cusparseCreateDnMat 2 5 5 0xe000 0 2", "cusparseSpMM_bufferSize" + product,
		"cuMemAlloc_v2 48", "cusparseSpMM_preprocess" + product, "cusparseSpMM" + product, "cusparseSpMM" + product,
		"cusparseDestroySpMat 0x8100", "cusparseDestroyDnMat 0x15000", "cusparseDestroyDnMat 0x16000", "cuCtxSynchronize",
		"cuMemFree_v2", "cusparseDestroy",
	}
	if got := drivertest.Log(t); !slices.Equal(got, want) {
		t.Errorf("called\n%q\nwant\n%q", got, want)
	}
	a.Half = false
	if _, err := l.SpMM(a, b, c, device.RowMajor); err == nil {
		t.Error("a product of two types")
	}
}

// Errors have the library's messages; lack of memory is distinguished; earlier resources are
// freed.
func TestLibrariesFail(t *testing.T) {
	d, blas, sparse, s := withLibraries(t)
	a := device.CSR{Rows: 1, Cols: 1, Edges: 1}
	x := device.Dense{Rows: 1, Cols: 1}
	useBLAS := func() error {
		b, err := d.openBLAS(blas, s)
		if err == nil {
			err = b.Gemm(device.Gemm{M: 1, N: 1, K: 1, LDA: 1, LDB: 1, LDC: 1})
			err = errors.Join(err, b.Close())
		}
		return err
	}
	useSparse := func() error {
		l, err := d.openSparse(sparse, s)
		if err != nil {
			return err
		}
		p, err := l.SpMM(a, x, x, device.Deterministic)
		if err == nil {
			err = errors.Join(p.Run(), p.Close())
		}
		return errors.Join(err, l.Close())
	}
	for fail, c := range map[string]struct {
		use    func() error
		says   string
		memory bool
	}{
		"cublasCreate_v2=3":          {useBLAS, "cublasCreate: CUBLAS_STATUS_ALLOC_FAILED", true},
		"cublasSetWorkspace_v2=7":    {useBLAS, "cublasSetWorkspace: CUBLAS_STATUS_OTHER", false},
		"cublasSgemm_v2=13":          {useBLAS, "cublasSgemm: CUBLAS_STATUS_OTHER", false},
		"cuMemAlloc_v2=2":            {useBLAS, "CUDA_ERROR_OUT_OF_MEMORY", true},
		"cusparseCreate=1":           {useSparse, "cusparseCreate: ", false},
		"cusparseCreateDnMat=3":      {useSparse, "cusparseSpMM_bufferSize: ", false},
		"cusparseSpMM_preprocess=11": {useSparse, "cusparseSpMM_preprocess: CUSPARSE_STATUS_INSUFFICIENT", true},
		"cusparseSpMM=6":             {useSparse, "cusparseSpMM: CUSPARSE_STATUS_OTHER", false},
	} {
		t.Run(fail, func(t *testing.T) {
			held := d.resources.Len()
			t.Setenv("FAKE_FAIL", fail)
			if err := c.use(); err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, device.ErrMemory) != c.memory {
				t.Errorf("%v", err)
			}
			if d.resources.Len() != held {
				t.Errorf("%d things are held, %d before", d.resources.Len(), held)
			}
		})
	}
	if _, err := openBLAS("libno-such-blas.so", "libc.so.6"); !errors.Is(err, device.ErrLibrary) ||
		!strings.Contains(fmt.Sprint(err), "libno-such-blas") {
		t.Errorf("%v", err)
	}
}

// The libraries of this host, if any, have all calls.
func TestLibrariesHere(t *testing.T) {
	for _, l := range Libraries() {
		t.Logf("%+v", l)
		if l.Err != nil && (!errors.Is(l.Err, device.ErrLibrary) || strings.Contains(l.Err.Error(), "undefined symbol")) {
			t.Errorf("%+v", l)
		}
	}
}
