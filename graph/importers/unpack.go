package importers

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// maxWindow bounds the memory that a zstd frame may request: 128 MiB is the largest window of the
// zstd command without --long beyond 27.
const maxWindow = 128 << 20

// smallUnpacked is added to the maximum length of an unpacked archive, which is the maximum of
// deflate for its size. Unlike deflate, zstd can expand a kilobyte to any number of megabytes.
const smallUnpacked = 64 << 20

// unpackName is the prefix of the names of temporary folders.
const unpackName = "siafu-unpack"

// unpack streams the wanted files of the .tar.zst archive into a temporary folder next to dst,
// which release removes, and returns its path. Only base names are used, so that no entry can
// leave the folder.
func unpack(k *resources, archive input, dst string, wanted []string) string {
	in := openPacked(archive, ".zst")
	defer in.Close()
	parent := existing(filepath.Dir(filepath.Clean(dst)))
	tmp, err := scratch.Make(filepath.Join(parent, unpackName))
	input{archive.op, parent}.system(err)
	k.closers = append(k.closers, func() error { tmp.Close(); return nil })
	untar(tar.NewReader(in), archive, tmp.Path, wanted)
	return tmp.Path
}

// sweepUnpacked removes the temporary folders of killed imports to dst or to its siblings. They
// are next to dst, or next to a parent if the parents of dst did not exist yet.
func sweepUnpacked(dst string) {
	for dir := existing(filepath.Dir(filepath.Clean(dst))); ; dir = filepath.Dir(dir) {
		scratch.Sweep(filepath.Join(dir, unpackName), nil)
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

// bounded fails if r is longer than left.
type bounded struct {
	r    io.Reader
	left int64
}

var errSwollen = errors.New("unpacks to far more than its size")

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errSwollen
	}
	return n, err
}

func damaged(archive input, detail string, err error) error {
	f := &fault.Error{Op: archive.op, Kind: fault.Data, Path: archive.path, Detail: detail, Err: err}
	if errors.Is(err, errSwollen) {
		return f.Then("unpack it yourself and import the folder")
	}
	return f
}

// existing returns path, or its nearest parent that exists. A temporary folder must not create the
// parents of a destination.
func existing(path string) string {
	for !exists(path) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}

func untar(r *tar.Reader, archive input, dir string, wanted []string) {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			check(damaged(archive, "archive is damaged", err))
		}
		name := path.Base(path.Clean("/" + h.Name))
		if !slices.Contains(wanted, name) {
			continue
		}
		archive.require(!sparse(h), "create the archive without tar --sparse", "%s is a sparse member, which can unpack to any size", name)
		if h.Typeflag == tar.TypeReg {
			unpackFile(r, archive, filepath.Join(dir, name))
		}
	}
}

// sparse reports whether an entry is longer than its bytes in the archive.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

func unpackFile(r io.Reader, archive input, to string) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	archive.require(!errors.Is(err, os.ErrExist), "pack one dataset into an archive", "%s occurs twice", filepath.Base(to))
	input{archive.op, to}.system(err)
	_, err = io.Copy(out, r)
	err = cmp.Or(err, out.Close())
	// Failures to write name the file that was written; the others come from the archive.
	var pe *os.PathError
	if errors.As(err, &pe) && pe.Path == to {
		check(fault.System(archive.op, to, err))
	}
	if err != nil {
		check(damaged(archive, filepath.Base(to), err))
	}
}
