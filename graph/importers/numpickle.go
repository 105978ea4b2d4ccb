package importers

import (
	"fmt"
	"slices"

	"siafu/internal/npy"
	"siafu/internal/pickle"
	"siafu/internal/torchfile"
)

// csrClasses lists the class names in pickles of SciPy's versions.
var csrClasses = []pickle.Global{"scipy.sparse.csr csr_matrix", "scipy.sparse._csr csr_matrix"}

// pickledCSR returns the SciPy matrix that v describes.
func pickledCSR(op, path string, v any) (m *matrix, err error) {
	defer catch(&err)
	o, ok := v.(*pickle.Object)
	if !ok || !slices.Contains(csrClasses, o.Class) {
		return nil, fmt.Errorf("%s is not a SciPy csr_matrix", pickle.Describe(v))
	}
	state, ok := o.State.(*pickle.Dict)
	if !ok {
		return nil, fmt.Errorf("the state of a csr_matrix is %s", pickle.Describe(o.State))
	}
	m = &matrix{place: place{op, path}}
	shape, _ := state.Get("_shape").(pickle.Tuple)
	if len(shape) != 2 {
		return nil, fmt.Errorf("the shape of a csr_matrix is %s", pickle.Describe(state.Get("_shape")))
	}
	var ok1, ok2 bool
	m.rows, ok1 = shape[0].(int64)
	m.cols, ok2 = shape[1].(int64)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("the shape of a csr_matrix is (%s, %s)", pickle.Describe(shape[0]), pickle.Describe(shape[1]))
	}
	get := func(key string) *npy.Array { return must(torchfile.NumPy(state.Get(key))) }
	m.indptr = must(get("indptr").Int64s())
	m.indices = must(get("indices").Uint32s())
	m.data = must(get("data").Float32s())
	m.check()
	return m, nil
}
