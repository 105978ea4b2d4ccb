package pickle

import (
	"strings"

	"siafu/internal/npy"
)

// Functions of PyTorch that make a tensor.
const (
	tensorMaker    = "torch._utils _rebuild_tensor_v2"
	parameterMaker = "torch._utils _rebuild_parameter"
)

// IsTensor reports whether v is a tensor. Tensor does not support all kinds of tensors.
func IsTensor(v any) bool {
	o, ok := v.(*Object)
	return ok && strings.HasPrefix(string(o.Class), "torch._utils _rebuild")
}

// storage is a flat array. Tensors are views of it.
type storage struct {
	kind  string // of types
	size  int    // bytes of an element
	bytes []byte
}

// Array returns the tensor or the array of NumPy that v describes, called name in messages. It is
// valid until Close.
func (f *TorchFile) Array(v any, name string) (*npy.Array, error) {
	if IsTensor(v) {
		return f.Tensor(v, name)
	}
	a, err := NumPy(v)
	if err != nil {
		return nil, f.Bad("%s: %v", name, err).Then("save arrays of NumPy or dense tensors")
	}
	return a.Called(f.path + "[" + name + "]"), nil
}

// Tensor returns the array that v describes, called name in messages. It is valid until Close.
func (f *TorchFile) Tensor(v any, name string) (*npy.Array, error) {
	o, ok := v.(*Object)
	if ok && o.Class == parameterMaker && len(o.Args) > 0 {
		o, ok = o.Args[0].(*Object)
	}
	if !ok || o.Class != tensorMaker || len(o.Args) < 4 {
		return nil, f.Bad("%s is %s instead of a dense tensor", name, Describe(v)).
			Then("save dense tensors: to_dense(), and edge_index for an adjacency matrix")
	}
	s, err := f.storage(o.Args[0], name)
	if err != nil {
		return nil, err
	}
	offset, ok1 := o.Args[1].(int64)
	shape, ok2 := ints(o.Args[2])
	stride, ok3 := ints(o.Args[3])
	if !ok1 || !ok2 || !ok3 || len(shape) != len(stride) {
		return nil, f.Bad("%s has the offset %s, the shape %s and the strides %s", name, Describe(o.Args[1]),
			Describe(o.Args[2]), Describe(o.Args[3]))
	}
	return f.view(s, offset, shape, stride, name)
}

// storage returns the data outside the pickle with the id (storage, class, key, device,
// elements).
func (f *TorchFile) storage(v any, name string) (storage, error) {
	p, _ := v.(*Persistent)
	if p == nil {
		return storage{}, f.Bad("the storage of %s is %s", name, Describe(v))
	}
	id, _ := p.ID.(Tuple)
	if len(id) < 5 {
		return storage{}, f.Bad("the storage of %s is called %s", name, Describe(p.ID))
	}
	class, _ := id[1].(Global)
	key, _ := id[2].(string)
	_, what, _ := strings.Cut(string(class), " ")
	kind := storageTypes[what]
	if kind == "" {
		return storage{}, f.Bad("%s has elements of %q, which are not supported", name, string(class)).
			Then("convert it: to(torch.float32), or to(torch.int64)")
	}
	z := f.storages[key]
	if z == nil {
		return storage{}, f.Bad("the archive has no data/%.40s, which stores %s", key, name).
			Then("fetch the file again, it is damaged or truncated")
	}
	b, err := f.stored(z)
	return storage{kind, int(kind[len(kind)-1] - '0'), b}, err
}

// ints returns the integers of a tuple or of a torch.Size.
func ints(v any) ([]int64, bool) {
	if o, ok := v.(*Object); ok && o.Class == "torch Size" && len(o.Args) == 1 {
		v = o.Args[0]
	}
	t, ok := v.(Tuple)
	list := make([]int64, 0, len(t))
	for _, x := range t {
		n, whole := x.(int64)
		ok = ok && whole
		list = append(list, n)
	}
	return list, ok
}

// view returns the part of a storage that a tensor refers to: in place if row-major or
// column-major, else a copy. A tensor with more elements than its storage, as made by expand,
// is refused: its bytes do not prove its size.
func (f *TorchFile) view(s storage, offset int64, shape, stride []int64, name string) (*npy.Array, error) {
	held := int64(len(s.bytes) / s.size)
	count, last := int64(1), offset
	for i, n := range shape {
		switch {
		case n < 0 || stride[i] < 0 || offset < 0:
			return nil, f.Bad("%s has the offset %d, the shape %v and the strides %v", name, offset, shape, stride)
		case n > 0 && count > held/n:
			return nil, f.Bad("%s has the shape %v in a storage of %d elements", name, shape, held).Then("save tensor.contiguous()")
		}
		count *= n
		if n > 1 {
			last += (n - 1) * min(stride[i], held/(n-1)+1) // beyond held where the stride is cut
		}
	}
	if count > 0 && (last < 0 || last >= held) {
		return nil, f.Bad("%s reaches to element %d of a storage of %d", name, last, held).
			Then("fetch the file again, it is damaged or truncated")
	}
	a := npy.Array{Type: f.typeOf(s.kind), Shape: make([]int, len(shape))}
	for i, n := range shape {
		a.Shape[i] = int(n)
	}
	switch {
	case count == 0:
	case contiguous(shape, stride):
		a.Data = s.bytes[offset*int64(s.size) : (offset+count)*int64(s.size)]
	case len(shape) == 2 && stride[0] == 1 && stride[1] == shape[0]:
		a.Data, a.Fortran = s.bytes[offset*int64(s.size):(offset+count)*int64(s.size)], true
	default:
		a.Data = gathered(s, offset, count, shape, stride)
	}
	return a.Called(f.path + "[" + name + "]"), nil
}

// typeOf returns the NumPy name of a type.
func (f *TorchFile) typeOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "1"):
		return "|" + kind
	case f.big:
		return ">" + kind
	}
	return "<" + kind
}

func contiguous(shape, stride []int64) bool {
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && stride[i] != step {
			return false
		}
		step *= shape[i]
	}
	return true
}

// gathered returns the elements of a view as contiguous rows.
func gathered(s storage, offset, count int64, shape, stride []int64) []byte {
	out := make([]byte, 0, count*int64(s.size))
	index := make([]int64, len(shape))
	at := offset
	for range count {
		out = append(out, s.bytes[at*int64(s.size):(at+1)*int64(s.size)]...)
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			at += stride[d]
			if index[d] < shape[d] {
				break
			}
			at -= index[d] * stride[d]
			index[d] = 0
		}
	}
	return out
}
