package importers

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"siafu/graph/fault"
)

// maxWindow bounds what a zstd frame may ask the decoder to keep: 128 MiB is
// the largest window of the zstd command without --long beyond 27.
const maxWindow = 128 << 20

// unpack streams the wanted files of the .tar.zst archive o.Src into a
// temporary folder beside o.Dst, which release removes, and returns its path.
// Only base names are used, so that no entry can leave the folder.
func unpack(k *keeper, op string, o Options, wanted []string) (string, error) {
	in, err := os.Open(o.Src)
	if err != nil {
		return "", fault.System(op, o.Src, err)
	}
	defer in.Close()
	z, err := zstd.NewReader(bufio.NewReaderSize(in, 1<<20), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return "", &fault.Error{Op: op, Kind: fault.Data, Path: o.Src, Err: err}
	}
	defer z.Close()
	parent := existing(filepath.Dir(filepath.Clean(o.Dst)))
	dir, err := os.MkdirTemp(parent, ".siafu-unpack-*")
	if err != nil {
		return "", fault.System(op, parent, err)
	}
	k.closers = append(k.closers, func() error { return os.RemoveAll(dir) })
	return dir, untar(tar.NewReader(z), op, o.Src, dir, wanted)
}

// existing is path, or the nearest folder above it that is there: a folder that
// is yet to be made is not made for what is only temporary.
func existing(path string) string {
	for !exists(path) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}

// untar writes the wanted files into dir.
func untar(r *tar.Reader, op, archive, dir string, wanted []string) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &fault.Error{Op: op, Kind: fault.Data, Path: archive, Detail: "archive is damaged", Err: err}
		}
		name := path.Base(path.Clean("/" + h.Name))
		if h.Typeflag != tar.TypeReg || !slices.Contains(wanted, name) {
			continue
		}
		if err := unpackFile(r, op, archive, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, op, archive, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fault.New(fault.Data, op, archive, "%s comes twice", filepath.Base(to)).
			Then("pack one dataset into an archive")
	}
	if err != nil {
		return fault.System(op, to, err)
	}
	_, err = io.Copy(out, r)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		return nil
	}
	// Failures to write name the file that was written; the others come from
	// the archive.
	var pe *os.PathError
	if errors.As(err, &pe) && pe.Path == to {
		return fault.System(op, to, err)
	}
	return &fault.Error{Op: op, Kind: fault.Data, Path: archive, Detail: filepath.Base(to), Err: err}
}
