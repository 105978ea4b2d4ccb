package importers

import (
	"fmt"
	"slices"

	"siafu/graph/npy"
)

// The names under which NumPy's and SciPy's versions pickle their classes.
var (
	arrayMakers = []pyGlobal{"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
	csrClasses  = []pyGlobal{"scipy.sparse.csr csr_matrix", "scipy.sparse._csr csr_matrix"}
)

// pickledArray is the NumPy array that v describes.
func pickledArray(v any) (*npy.Array, error) {
	o, ok := v.(*pyObject)
	if !ok || !slices.Contains(arrayMakers, o.class) {
		return nil, fmt.Errorf("%s is no NumPy array", describe(v))
	}
	// The state is (version, shape, type, column-major, bytes).
	state, _ := o.state.(pyTuple)
	if len(state) != 5 {
		return nil, fmt.Errorf("the state of a NumPy array is %s", describe(o.state))
	}
	dims, ok1 := state[1].(pyTuple)
	fortran, ok2 := pickledBool(state[3])
	data, ok3 := state[4].(string)
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("the state of a NumPy array is (…, %s, …, %s, %s)", describe(state[1]), describe(state[3]), describe(state[4]))
	}
	a := &npy.Array{Fortran: fortran, Data: []byte(data)}
	for _, d := range dims {
		n, ok := d.(int64)
		if !ok || n < 0 {
			return nil, fmt.Errorf("a dimension of a NumPy array is %s", describe(d))
		}
		a.Shape = append(a.Shape, int(n))
	}
	var err error
	a.Type, err = pickledType(state[2])
	return a, err
}

// pickledType is the descriptor of a NumPy type, made by dtype("i4", …) with
// the byte order as second entry of its state.
func pickledType(v any) (string, error) {
	o, ok := v.(*pyObject)
	if ok && o.class == "numpy dtype" && len(o.args) > 0 {
		name, ok1 := o.args[0].(string)
		state, ok2 := o.state.(pyTuple)
		if ok1 && ok2 && len(state) > 1 {
			if order, ok := state[1].(string); ok && len(order) == 1 {
				return order + name, nil
			}
		}
	}
	return "", fmt.Errorf("%s is no NumPy type", describe(v))
}

// pickledBool accepts what Python takes for one.
func pickledBool(v any) (value, ok bool) {
	switch b := v.(type) {
	case bool:
		return b, true
	case int64:
		return b != 0, true
	}
	return false, false
}

// pickledCSR is the SciPy matrix that v describes.
func pickledCSR(op, path string, v any) (*matrix, error) {
	o, ok := v.(*pyObject)
	if !ok || !slices.Contains(csrClasses, o.class) {
		return nil, fmt.Errorf("%s is no csr_matrix of SciPy", describe(v))
	}
	state, ok := o.state.(*pyDict)
	if !ok {
		return nil, fmt.Errorf("the state of a csr_matrix is %s", describe(o.state))
	}
	m := &matrix{op: op, path: path}
	shape, _ := state.get("_shape").(pyTuple)
	if len(shape) != 2 {
		return nil, fmt.Errorf("the shape of a csr_matrix is %s", describe(state.get("_shape")))
	}
	var ok1, ok2 bool
	m.rows, ok1 = shape[0].(int64)
	m.cols, ok2 = shape[1].(int64)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("the shape of a csr_matrix is (%s, %s)", describe(shape[0]), describe(shape[1]))
	}
	a, err := pickledArray(state.get("indptr"))
	if err != nil {
		return nil, err
	}
	if m.indptr, err = a.Int64s(); err != nil {
		return nil, err
	}
	if a, err = pickledArray(state.get("indices")); err != nil {
		return nil, err
	}
	if m.indices, err = a.Uint32s(); err != nil {
		return nil, err
	}
	if a, err = pickledArray(state.get("data")); err != nil {
		return nil, err
	}
	if m.data, err = a.Float32s(); err != nil {
		return nil, err
	}
	return m, m.check()
}

// get is the value of a word, the last one where it comes several times.
func (d *pyDict) get(key string) any {
	for i := len(d.keys) - 1; i >= 0; i-- {
		if k, ok := d.keys[i].(string); ok && k == key {
			return d.values[i]
		}
	}
	return nil
}

// describe names a value in a message, without its contents: it may be large
// or hold itself.
func describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool, int64, float64:
		return fmt.Sprint(x)
	case string:
		return fmt.Sprintf("a string of %d bytes", len(x))
	case pyTuple:
		return fmt.Sprintf("a tuple of %d", len(x))
	case *pyList:
		return fmt.Sprintf("a list of %d", len(x.items))
	case *pyDict:
		return fmt.Sprintf("a dict of %d", len(x.keys))
	case pyGlobal:
		return fmt.Sprintf("the name %q", string(x))
	case *pyObject:
		return fmt.Sprintf("an object of %q", string(x.class))
	}
	return "a mark"
}
