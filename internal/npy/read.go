package npy

import (
	"bytes"
	"io"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Read reads r to its end and returns the array with which it begins. Messages use name for r.
func Read(r io.Reader, name string) (*Array, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fault.System("read npy", name, err)
	}
	a, _, err := parse(b, name)
	return a, err
}

// ReadFile reads the npy file at path, which must end with the array.
func ReadFile(path string) (*Array, error) {
	a, done, err := Map(path)
	if err != nil {
		return nil, err
	}
	a.Data = bytes.Clone(a.Data)
	return a, done()
}

// Map reads like ReadFile, but without a copy. The array refers to the mapped file and is valid
// until done is called.
func Map(path string) (a *Array, done func() error, err error) {
	f, err := mapped.OpenFile(path)
	if err != nil {
		return nil, nil, err
	}
	if a, err = view(f.Bytes(), path); err != nil {
		f.Close()
		return nil, nil, err
	}
	return a, f.Close, nil
}

// view returns the array that b consists of; its data refers to b.
func view(b []byte, name string) (*Array, error) {
	a, rest, err := parse(b, name)
	if err == nil && rest > 0 {
		return nil, a.bad("%d bytes follow the array of shape %v and type %s", rest, a.Shape, a.Type)
	}
	return a, err
}

// parse returns the array with which b begins, and the number of bytes after it. The array's
// data refers to b.
func parse(b []byte, name string) (a *Array, rest int, err error) {
	a = &Array{name: name}
	bad := func(err error) error { return &fault.Error{Op: "read npy", Kind: fault.Data, Path: name, Err: err} }
	preamble, length, err := headerSize(b)
	if err != nil {
		return nil, 0, bad(err)
	}
	if len(b) < preamble+length {
		return nil, 0, a.bad("truncated after %d bytes, inside the header", len(b))
	}
	h, err := parseHeader(b[preamble : preamble+length])
	if err != nil {
		return nil, 0, bad(err)
	}
	e, err := parseType(h.descr)
	if err == nil && e.kind == 'B' {
		err = typeError("bfloat16 is not supported")
	}
	if err != nil {
		return nil, 0, bad(err)
	}
	_, size, err := count(h.shape, e.bytes)
	if err != nil {
		return nil, 0, bad(err)
	}
	a.Shape, a.Fortran, a.Type, a.Data = h.shape, h.fortran, h.descr, b[preamble+length:]
	if rest = len(a.Data) - size; rest < 0 {
		return nil, 0, a.bad("truncated: shape %v of type %s needs %d bytes, but there are %d", a.Shape, a.Type, size, len(a.Data))
	}
	a.Data = a.Data[:size]
	return a, rest, nil
}
