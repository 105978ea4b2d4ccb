package pickle

import (
	"fmt"
	"slices"

	"siafu/internal/npy"
)

// The names under which NumPy's versions pickle their arrays.
var (
	arrayMakers = []Global{"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
	viewMakers  = []Global{"numpy.core.numeric _frombuffer", "numpy._core.numeric _frombuffer"} // from protocol 5 on
)

// NumPy returns the NumPy array that a value of a pickle describes.
func NumPy(v any) (*npy.Array, error) {
	o, ok := v.(*Object)
	switch {
	case ok && slices.Contains(viewMakers, o.Class) && len(o.Args) == 4:
		// The arguments are (bytes, type, shape, order).
		return arrayOf(o.Args[2], o.Args[1], o.Args[3] == "F", o.Args[0])
	case !ok || !slices.Contains(arrayMakers, o.Class):
		return nil, fmt.Errorf("%s is not a NumPy array", Describe(v))
	}
	// The state is (version, shape, type, column-major, bytes).
	state, _ := o.State.(Tuple)
	if len(state) != 5 {
		return nil, fmt.Errorf("the state of a NumPy array is %s", Describe(o.State))
	}
	fortran, ok := pickledBool(state[3])
	if !ok {
		return nil, fmt.Errorf("the order of a NumPy array is %s", Describe(state[3]))
	}
	return arrayOf(state[1], state[2], fortran, state[4])
}

func arrayOf(shape, descr any, fortran bool, content any) (*npy.Array, error) {
	dims, ok1 := shape.(Tuple)
	data, ok2 := pickledBytes(content)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("a NumPy array has the shape %s and the bytes %s", Describe(shape), Describe(content))
	}
	a := &npy.Array{Fortran: fortran, Data: data}
	for _, d := range dims {
		n, ok := d.(int64)
		if !ok || n < 0 {
			return nil, fmt.Errorf("a dimension of a NumPy array is %s", Describe(d))
		}
		a.Shape = append(a.Shape, int(n))
	}
	var err error
	a.Type, err = pickledType(descr)
	return a, err
}

// pickledBytes returns a string of bytes. Protocol 2 has no bytes of Python 3. Instead, Python
// writes a call that encodes a text with code points 0 to 255, or that makes empty bytes.
func pickledBytes(v any) ([]byte, bool) {
	o, ok := v.(*Object)
	if !ok {
		s, ok := v.(string)
		return []byte(s), ok
	}
	if o.Class == "__builtin__ bytes" && len(o.Args) == 0 {
		return nil, true
	}
	if o.Class != "_codecs encode" || len(o.Args) != 2 || o.Args[1] != "latin1" {
		return nil, false
	}
	text, ok := o.Args[0].(string)
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return nil, false
		}
		b = append(b, byte(r))
	}
	return b, ok
}

// pickledType returns the descriptor of a NumPy type, made by dtype("i4", …) with the byte
// order as second entry of its state.
func pickledType(v any) (string, error) {
	o, ok := v.(*Object)
	if ok && o.Class == "numpy dtype" && len(o.Args) > 0 {
		name, ok1 := o.Args[0].(string)
		state, ok2 := o.State.(Tuple)
		if ok1 && ok2 && len(state) > 1 {
			if order, ok := state[1].(string); ok && len(order) == 1 {
				return order + name, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not a NumPy type", Describe(v))
}

// pickledBool accepts booleans and integers, as Python does.
func pickledBool(v any) (value, ok bool) {
	switch b := v.(type) {
	case bool:
		return b, true
	case int64:
		return b != 0, true
	}
	return false, false
}
