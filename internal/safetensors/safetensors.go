package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// Tensor is a named row-major array.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// entry is a tensor in the JSON header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

const metadataKey = "__metadata__"

// maxHeader is the format's maximum header length.
const maxHeader = 100_000_000

// Stream writes a file with the tensors, in the given order, and metadata to w. It does not
// copy the data. It returns w's error. It panics if a tensor's shape and data length differ.
func Stream(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	if _, err := w.Write(header(tensors, metadata)); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(mapped.Bytes(t.Data)); err != nil {
			return err
		}
	}
	return nil
}

// header returns the bytes before the data.
func header(tensors []Tensor, metadata map[string]string) []byte {
	head := bytes.NewBuffer(make([]byte, 8))
	head.WriteByte('{')
	if len(metadata) > 0 {
		fmt.Fprintf(head, "%q:%s", metadataKey, mustJSON(metadata)) // maps are written with sorted keys
	}
	offset := int64(0)
	for i, t := range tensors {
		if size(t.Shape) != int64(len(t.Data)) {
			panic("safetensors: shape and data differ")
		}
		if i > 0 || len(metadata) > 0 {
			head.WriteByte(',')
		}
		end := offset + 4*int64(len(t.Data))
		fmt.Fprintf(head, "%s:%s", mustJSON(t.Name), mustJSON(entry{"F32", t.Shape, [2]int64{offset, end}}))
		offset = end
	}
	head.WriteByte('}')
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	b := head.Bytes()
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("safetensors: value without JSON")
	}
	return b
}

// Write writes a file atomically, with a checksum in its metadata. Faults have kind IO or Missing.
func Write(path string, tensors []Tensor, metadata map[string]string) error {
	return durable.Write("write model", path, func(w io.Writer) error { return Stream(w, tensors, withChecksum(tensors, metadata)) })
}

// Read reads a file, and verifies its checksum if it has one. The tensors are in the order of their data. It converts F64, F16, BF16 and
// I64 to float32.
func Read(path string) ([]Tensor, map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fault.System("read model", path, err)
	}
	tensors, md, err := Decode(b)
	if err != nil {
		return nil, nil, fault.New(fault.Data, "read model", path, "%v", err).
			Then("use a complete safetensors file, without %q in its metadata if another program has written it", checksumKey)
	}
	return tensors, md, nil
}

// Decode decodes the bytes of a file.
func Decode(b []byte) ([]Tensor, map[string]string, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("%d bytes are too few", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(b)-8) || n > maxHeader {
		return nil, nil, fmt.Errorf("a header of %d bytes in a file of %d", n, len(b))
	}
	var head map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &head); err != nil {
		return nil, nil, fmt.Errorf("header: %v", err)
	}
	var metadata map[string]string
	if raw, ok := head[metadataKey]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, nil, fmt.Errorf("metadata: %v", err)
		}
		delete(head, metadataKey)
		if sum, ok := metadata[checksumKey]; ok {
			if err := verify(b, 8+int(n), sum); err != nil {
				return nil, nil, err
			}
		}
		if delete(metadata, checksumKey); len(metadata) == 0 {
			metadata = nil
		}
	}
	return decodeTensors(head, metadata, b[8+n:])
}

func decodeTensors(head map[string]json.RawMessage, metadata map[string]string, data []byte) ([]Tensor, map[string]string, error) {
	entries := map[string]entry{}
	var names []string
	for name, raw := range head {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %v", name, err)
		}
		entries[name] = e
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		a, b := entries[x].Offsets, entries[y].Offsets
		if c := slices.Compare(a[:], b[:]); c != 0 {
			return c
		}
		return bytes.Compare([]byte(x), []byte(y))
	})
	var tensors []Tensor
	end := int64(0)
	for _, name := range names {
		e := entries[name]
		if e.Offsets[0] != end {
			return nil, nil, fmt.Errorf("tensor %q begins at %d, but the previous one ends at %d", name, e.Offsets[0], end)
		}
		t, err := e.decode(name, data)
		if err != nil {
			return nil, nil, err
		}
		tensors = append(tensors, t)
		end = e.Offsets[1]
	}
	if end != int64(len(data)) {
		return nil, nil, fmt.Errorf("%d bytes of data, but the header lists %d", len(data), end)
	}
	return tensors, metadata, nil
}

// size returns the number of elements of a shape, -1 if invalid.
func size(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > (1<<40)/int64(d) {
			return -1
		}
		n *= int64(d)
	}
	return n
}

// types maps the names of supported types to NumPy's, and widths to the bytes of an element.
var (
	types  = map[string]string{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": npy.BFloat16, "I64": "<i8"}
	widths = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8}
)

func (e entry) decode(name string, data []byte) (Tensor, error) {
	width, ok := widths[e.DType]
	if !ok {
		return Tensor{}, fmt.Errorf("tensor %q has the unsupported type %q; siafu reads F32, F64, F16, BF16 and I64", name, e.DType)
	}
	lo, hi, n := e.Offsets[0], e.Offsets[1], size(e.Shape)
	if lo < 0 || hi < lo || hi > int64(len(data)) || n < 0 || hi-lo != n*width {
		return Tensor{}, fmt.Errorf("tensor %q of shape %v does not fit bytes %d to %d of %d", name, e.Shape, lo, hi, len(data))
	}
	t := Tensor{Name: name, Shape: e.Shape, Data: make([]float32, n)}
	a := npy.Array{Type: types[e.DType], Shape: e.Shape, Data: data[lo:hi]}
	return t, a.CopyFloat32s(t.Data)
}
