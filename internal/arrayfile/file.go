package arrayfile

import (
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

const opOpen = "open"

const remedy = "create it again with siafu import or siafu partition: it is damaged or siafu did not write it"

// Piece is the size in bytes of the pieces of a large array that a check reads one after another. Each
// full piece is then forgotten, because the program may read only parts of the array, or convert it.
const Piece = 16 << 20

func (f *File) checksum(data []byte) (sum uint32) {
	for len(data) > 0 {
		n := min(len(data), Piece)
		sum = crc32.Update(sum, castagnoli, data[:n])
		if n == Piece {
			f.file.Forget(data[:n])
		}
		data = data[n:]
	}
	return sum
}

// File is an open and mapped file. Open verifies it.
type File struct {
	path string
	file *mapped.File
	head header
	crc  uint32
	read bool // the checksums of arrays are verified
}

// Open maps the file at path, which must be of the given kind, and verifies
// the checksum of everything in it. Faults have kind Missing, IO or Data.
func Open(path, kind string) (*File, error) { return open(path, kind, true) }

// Map is Open without reading the arrays: it verifies the header and the positions of arrays only.
func Map(path, kind string) (*File, error) { return open(path, kind, false) }

func open(path, kind string, read bool) (*File, error) {
	m, err := mapped.OpenFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, file: m, read: read}
	damage, err := f.verify(kind)
	if damage != nil {
		err = fault.New(fault.Data, opOpen, path, "%v", damage).Then(remedy)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return f, nil
}

// verify returns the damage of the file, or the error if it cannot be read.
func (f *File) verify(kind string) (damage, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer mapped.Catch(&err)
	return f.check(kind), nil
}

func (f *File) check(kind string) error {
	b := f.file.Bytes()
	var err error
	if f.head, f.crc, err = decode(b, int64(len(b))); err != nil {
		return err
	}
	if f.head.kind != kind {
		return fmt.Errorf("it is a %q file, expected a %q file", f.head.kind, kind)
	}
	end := int64(page)
	for _, e := range f.head.entries {
		if e.offset != align(end) {
			return fmt.Errorf("array %q is at byte %d, expected byte %d", e.name, e.offset, align(end))
		}
		for i, pad := range b[end:e.offset] {
			if pad != 0 {
				return fmt.Errorf("byte %d between two arrays is not zero", end+int64(i))
			}
		}
		end = e.offset + e.bytes()
		data := b[e.offset:end]
		if !f.read {
			continue
		}
		if got := f.checksum(data); got != e.crc {
			return fmt.Errorf("array %q (bytes %d to %d): checksum %08x instead of %08x", e.name, e.offset, end, got, e.crc)
		}
	}
	if end != f.head.length {
		return fmt.Errorf("%d bytes follow the last array", f.head.length-end)
	}
	return nil
}

// Get returns the named array, mapped: it is valid until Close and must not be written to. An
// absent array, or one of another type, is a Data fault.
func Get[T mapped.Elem](f *File, name string) ([]T, error) {
	for _, e := range f.head.entries {
		if e.name != name {
			continue
		}
		if e.typ != typeOf[T]() {
			return nil, fault.New(fault.Data, opOpen, f.path, "array %q holds %v, expected %v", name, e.typ, typeOf[T]()).Then(remedy)
		}
		return mapped.Cast[T](f.file.Bytes()[e.offset : e.offset+e.bytes()]), nil
	}
	return nil, fault.New(fault.Data, opOpen, f.path, "there is no array %q", name).Then(remedy)
}

// Has reports whether the file holds an array of that name.
func (f *File) Has(name string) bool {
	return slices.ContainsFunc(f.head.entries, func(e entry) bool { return e.name == name })
}

// Verified reports whether the checksums of arrays have been verified.
func (f *File) Verified() bool { return f.read }

// Len returns the length of the file in bytes.
func (f *File) Len() int64 { return f.head.length }

// CRC32C returns the checksum of the header page, 8 hex digits. The page has the checksums of
// all arrays: two files with the same one have the same content.
func (f *File) CRC32C() string { return fmt.Sprintf("%08x", f.crc) }

// Forget removes the pages of an array, or of a part of it, from this process's memory until they are
// read again. It ignores memory outside the file.
func (f *File) Forget(part []byte) { f.file.Forget(part) }

// Close unmaps the file. Its arrays must not be used afterwards.
func (f *File) Close() error { return f.file.Close() }
