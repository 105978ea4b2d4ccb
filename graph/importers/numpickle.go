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
func pickledCSR(op, path string, v any) (*matrix, error) {
	o, ok := v.(*pickle.Object)
	if !ok || !slices.Contains(csrClasses, o.Class) {
		return nil, fmt.Errorf("%s is not a SciPy csr_matrix", pickle.Describe(v))
	}
	state, ok := o.State.(*pickle.Dict)
	if !ok {
		return nil, fmt.Errorf("the state of a csr_matrix is %s", pickle.Describe(o.State))
	}
	m := &matrix{op: op, path: path}
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
	get := func(key string) ndarray {
		a, err := torchfile.NumPy(state.Get(key))
		return ndarray{a, op, path, err}
	}
	var err error
	if m.indptr, err = elements(get("indptr"), (*npy.Array).Int64s); err != nil {
		return nil, err
	}
	if m.indices, err = elements(get("indices"), (*npy.Array).Uint32s); err != nil {
		return nil, err
	}
	if m.data, err = elements(get("data"), (*npy.Array).Float32s); err != nil {
		return nil, err
	}
	return m, m.check()
}
