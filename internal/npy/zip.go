package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
)

// Zip is an open npz file.
type Zip struct {
	path  string
	bytes []byte
	files map[string]*zip.File // by name without ".npy"
	names []string
	got   map[string]bool // names passed to Get
	arena *mapped.Arena   // of unpacked arrays
	close func() error
}

// OpenZip opens the npz file at path.
func OpenZip(path string) (*Zip, error) {
	f, err := mapped.OpenFile(path)
	if err != nil {
		return nil, err
	}
	z, err := newZip(f.Bytes(), path)
	if err != nil {
		f.Close()
		return nil, err
	}
	z.close = f.Close
	return z, nil
}

func newZip(b []byte, path string) (*Zip, error) {
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, &fault.Error{Op: "open npz", Kind: fault.Data, Path: path, Err: err}
	}
	z := &Zip{path: path, bytes: b, files: map[string]*zip.File{}, got: map[string]bool{}, arena: mapped.NewArena(),
		close: func() error { return nil }}
	packed := uint64(0)
	for _, f := range r.File {
		if packed += f.CompressedSize64; f.CompressedSize64 > uint64(len(b)) || packed > uint64(len(b)) {
			return nil, fault.New(fault.Data, "open npz", path,
				"its files overlap: the files up to %q claim %d of %d bytes", f.Name, packed, len(b))
		}
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if z.files[name] != nil {
			return nil, fault.New(fault.Data, "open npz", path, "array %q occurs twice", name)
		}
		z.files[name] = f
		z.names = append(z.names, name)
	}
	return z, nil
}

// Names returns the arrays' names in the order of the file.
func (z *Zip) Names() []string { return slices.Clone(z.names) }

// Has reports whether there is an array with that name.
func (z *Zip) Has(name string) bool { return z.files[name] != nil }

// Rest returns the names of arrays that have not been read.
func (z *Zip) Rest() []string {
	return slices.DeleteFunc(z.Names(), func(name string) bool { return z.got[name] })
}

// Get reads one array. It is valid until Close, because uncompressed data is not copied from the
// mapped file.
func (z *Zip) Get(name string) (*Array, error) {
	f, where := z.files[name], z.path+"["+name+"]"
	z.got[name] = true
	if f == nil {
		return nil, fault.New(fault.Data, "read npz", z.path, "array %q is missing, the arrays are %s", name, z.list()).
			Then("check that the file has the requested format")
	}
	b, err := z.content(f, where)
	if err != nil {
		return nil, err
	}
	return view(b, where)
}

// content returns the bytes of a file of the archive, in place or unpacked, after verifying their
// checksum.
func (z *Zip) content(f *zip.File, where string) ([]byte, error) {
	bad := func(err error) error { return &fault.Error{Op: "read npz", Kind: fault.Data, Path: where, Err: err} }
	if f.Method == zip.Store {
		b, err := Stored(z.bytes, f)
		if err != nil {
			return nil, bad(err)
		}
		return b, nil
	}
	if f.UncompressedSize64 > Deflated*f.CompressedSize64 {
		return nil, fault.New(fault.Data, "read npz", where, "it claims %d bytes, too many for %d compressed bytes",
			f.UncompressedSize64, f.CompressedSize64).
			Then("write the file again")
	}
	r, err := f.Open()
	if err != nil {
		return nil, bad(err)
	}
	defer r.Close()
	b, err := z.reserve(int(f.UncompressedSize64), where)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, bad(err)
	}
	// Reading to the end makes the zip package compare the length and the checksum.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, bad(err)
	}
	return b, nil
}

// Deflated is the maximum ratio of deflate: two bits encode 258 bytes.
const Deflated = 1032

// reserve returns size bytes, or a fault if the system does not have them.
func (z *Zip) reserve(size int, where string) (b []byte, err error) {
	defer func() {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			err = fault.New(fault.Config, "read npz", where, "its %d bytes do not fit into memory: %v", size, f).
				Then("use a machine with more memory")
		}
	}()
	if err := host.RequireMemory("read npz", where, int64(size), host.LargerMachine); err != nil {
		return nil, err
	}
	defer mapped.Catch(&err)
	return mapped.Make[byte](z.arena, size), nil
}

// Stored returns the bytes, in place, of an uncompressed file of an archive, after verifying
// their checksum.
func Stored(archive []byte, f *zip.File) ([]byte, error) {
	start, err := f.DataOffset()
	if err != nil {
		return nil, err
	}
	size := f.UncompressedSize64
	if start < 0 || start > int64(len(archive)) || size > math.MaxInt64 || int64(size) > int64(len(archive))-start {
		return nil, errors.New("extends past the end of the file")
	}
	b := archive[start : start+int64(size)]
	if crc32.ChecksumIEEE(b) != f.CRC32 {
		return nil, zip.ErrChecksum
	}
	return b, nil
}

// list returns the names for a message, truncated if there are many.
func (z *Zip) list() string {
	const most = 20
	if len(z.names) == 0 {
		return "none"
	}
	if len(z.names) > most {
		return strings.Join(z.names[:most], ", ") + ", …"
	}
	return strings.Join(z.names, ", ")
}

// Close unmaps the file and frees the unpacked arrays.
func (z *Zip) Close() error {
	z.arena.Free()
	return z.close()
}
