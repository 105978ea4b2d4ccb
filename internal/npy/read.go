package npy

import (
	"bytes"
	"errors"
	"io"
	"os"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Read reads one array and nothing after it. Messages use name for r.
func Read(r io.Reader, name string) (*Array, error) {
	a, size, err := readHeader(r, name)
	if err != nil {
		return nil, err
	}
	a.Data, err = readUpTo(r, size)
	if err != nil {
		return nil, truncated(a, size, len(a.Data), err)
	}
	return a, nil
}

// truncated returns the fault of an incomplete array.
func truncated(a *Array, size, read int, err error) error {
	return readFault(a.name, err, "truncated: shape %v of type %s needs %d bytes, but there are %d", a.Shape, a.Type, size, read)
}

// readHeader reads the header of an array, and returns the size of its data in bytes.
func readHeader(r io.Reader, name string) (*Array, int, error) {
	start := make([]byte, 12)
	if n, err := io.ReadFull(r, start); err != nil {
		return nil, 0, readFault(name, err, "truncated after %d bytes, inside the header", n)
	}
	preamble, length, err := headerSize(start)
	if err != nil {
		return nil, 0, fault.New(fault.Data, "read npy", name, "%v", err)
	}
	text := start[preamble:]
	if rest := length - len(text); rest > 0 {
		more := make([]byte, rest)
		if n, err := io.ReadFull(r, more); err != nil {
			return nil, 0, readFault(name, err, "truncated after %d bytes, inside the header", 12+n)
		}
		text = append(text, more...)
	}
	// A header shorter than the two bytes of text in start leaves data there;
	// such a header has no room for a dict and is refused.
	return newArray(text[:min(length, len(text))], name)
}

// newArray returns an array without its bytes, and the number of its bytes.
func newArray(text []byte, name string) (*Array, int, error) {
	bad := func(err error) error { return &fault.Error{Op: "read npy", Kind: fault.Data, Path: name, Err: err} }
	h, err := parseHeader(text)
	if err != nil {
		return nil, 0, bad(err)
	}
	e, err := parseType(h.descr)
	if err != nil {
		return nil, 0, bad(err)
	}
	_, size, err := count(h.shape, e.bytes)
	if err != nil {
		return nil, 0, bad(err)
	}
	return &Array{Shape: h.shape, Fortran: h.fortran, Type: h.descr, name: name}, size, nil
}

// readUpTo reads size bytes. The buffer grows with what arrives, so that a
// false size costs nothing.
func readUpTo(r io.Reader, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(size, 1<<20))
	n, err := io.Copy(&b, io.LimitReader(r, int64(size)))
	if err == nil && n < int64(size) {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// readFault returns a Data fault if the data ended, otherwise the reader's error. A broken
// deflate stream is a Data fault too.
func readFault(name string, err error, format string, args ...any) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Data, "read npy", name, format, args...)
	}
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fault.System("read npy", name, err)
	}
	return &fault.Error{Op: "read npy", Kind: fault.Data, Path: name, Err: err}
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
	a, err = view(f.Bytes(), path)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return a, f.Close, nil
}

// view returns the array that b consists of; its data refers to b.
func view(b []byte, name string) (*Array, error) {
	preamble, length, err := headerSize(b)
	if err != nil {
		return nil, fault.New(fault.Data, "read npy", name, "%v", err)
	}
	if len(b) < preamble+length {
		return nil, fault.New(fault.Data, "read npy", name, "truncated after %d bytes, inside the header", len(b))
	}
	a, size, err := newArray(b[preamble:preamble+length], name)
	if err != nil {
		return nil, err
	}
	a.Data = b[preamble+length:]
	switch {
	case len(a.Data) < size:
		return nil, fault.New(fault.Data, "read npy", name, "truncated: shape %v of type %s needs %d bytes, but there are %d", a.Shape, a.Type, size, len(a.Data))
	case len(a.Data) > size:
		return nil, fault.New(fault.Data, "read npy", name, "%d bytes follow the array of shape %v and type %s", len(a.Data)-size, a.Shape, a.Type)
	}
	return a, nil
}
