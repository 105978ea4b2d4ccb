package pickle

import (
	"archive/zip"
	"bytes"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

const op = "read torch file"

// TorchFile is an open file.
type TorchFile struct {
	Value any // the saved value

	path     string
	bytes    []byte
	storages map[string]*zip.File // by their keys
	big      bool                 // the bytes of numbers are big-endian
	close    func() error
}

// OpenTorch opens the file at path and reads its pickle. Faults have kind Missing, Data or IO.
func OpenTorch(path string) (*TorchFile, error) {
	m, err := mapped.OpenFile(path)
	if err != nil {
		return nil, err
	}
	f, err := NewTorch(m.Bytes(), path)
	if err != nil {
		m.Close()
		return nil, err
	}
	f.close = m.Close
	return f, nil
}

// NewTorch opens the bytes of a file. Messages contain path.
func NewTorch(b []byte, path string) (*TorchFile, error) {
	f := &TorchFile{path: path, bytes: b, storages: map[string]*zip.File{}, close: func() error { return nil }}
	return f, f.read()
}

// IsTorch reports whether begin are the first bytes of a file of torch.save.
func IsTorch(begin []byte) bool { return bytes.HasPrefix(begin, []byte("PK\x03\x04")) }

// Close closes the file and ends all arrays of it.
func (f *TorchFile) Close() error { return f.close() }

// Bad returns a Data fault about the file.
func (f *TorchFile) Bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, op, f.path, format, args...)
}

// read finds the parts of the archive and decodes the pickle.
func (f *TorchFile) read() error {
	// A pickle before version 1.6 began with this number.
	if bytes.HasPrefix(f.bytes, []byte("\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")) {
		return f.Bad("it has the format of PyTorch before version 1.6").
			Then("load it with torch.load and save it with PyTorch 1.6 or later")
	}
	r, err := zip.NewReader(bytes.NewReader(f.bytes), int64(len(f.bytes)))
	if err != nil {
		return f.Bad("it is not a complete file of torch.save: %v", err).Then("save it again")
	}
	var script *zip.File
	for _, z := range r.File {
		_, name, _ := strings.Cut(z.Name, "/") // after the archive's own name
		switch key, isStorage := strings.CutPrefix(name, "data/"); {
		case isStorage:
			f.storages[key] = z
		case name == "data.pkl":
			script = z
		case name == "constants.pkl":
			return f.Bad("it holds a TorchScript program").Then("save tensors: torch.save(model.state_dict(), FILE)")
		case name == "byteorder":
			order, err := f.stored(z)
			if err != nil {
				return err
			}
			f.big = string(order) == "big"
		}
	}
	if script == nil {
		return f.Bad("the archive has no data.pkl").Then("save it with torch.save")
	}
	b, err := f.stored(script)
	if err != nil {
		return err
	}
	if f.Value, err = decodeKnown(b, isTorchClass); err != nil {
		return f.Bad("%s: %v", script.Name, err).
			Then("save tensors in dicts or a Data of PyTorch Geometric, and no objects of other classes")
	}
	return nil
}

func (f *TorchFile) stored(z *zip.File) ([]byte, error) {
	if z.Method != zip.Store {
		return nil, f.Bad("%s is compressed, but torch.save compresses nothing", z.Name).Then("save it again")
	}
	b, err := npy.Stored(f.bytes, z)
	if err != nil {
		return nil, f.Bad("%s: %v", z.Name, err).Then("fetch the file again, it is damaged or truncated")
	}
	return b, nil
}

// isTorchClass reports whether a pickle of data may contain a name.
func isTorchClass(name Global) bool {
	module, what, _ := strings.Cut(string(name), " ")
	switch module {
	case "collections":
		return what == "OrderedDict" || what == "defaultdict"
	case "builtins", "__builtin__":
		return what == "set" || what == "list" || what == "dict" || what == "tuple" || what == "bytes" || what == "slice"
	case "_codecs":
		return what == "encode"
	case "torch":
		return strings.HasSuffix(what, "Storage") || what == "Size" || what == "device" || elementTypes[what] != ""
	case "torch._utils", "torch._tensor", "torch.storage", "torch.serialization":
		return strings.HasPrefix(what, "_rebuild") || strings.HasSuffix(what, "Storage")
	case "numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric":
		return what == "ndarray" || what == "dtype" || what == "_reconstruct" || what == "_frombuffer" || what == "scalar"
	}
	return module == "torch_geometric.data" || strings.HasPrefix(module, "torch_geometric.") || strings.HasPrefix(module, "torch_sparse.")
}

// elementTypes maps PyTorch's names of supported element types to NumPy's, without byte order.
// npy.BFloat16 is B2.
var elementTypes = map[string]string{
	"float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": "B2", "int64": "i8", "int32": "i4", "int16": "i2",
	"int8": "i1", "uint8": "u1", "bool": "b1",
}

// storageTypes are the types of storages' classes.
var storageTypes = map[string]string{
	"DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "BFloat16Storage": "B2", "LongStorage": "i8",
	"IntStorage": "i4", "ShortStorage": "i2",
	"CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "b1",
}
