package download

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"siafu/internal/fault"
)

// expansion is the maximum ratio of a zip file's content to its own size. The archives in the
// manifest contain compressed files and grow by at most half.
const expansion = 100

// unzip unpacks the file at path into the folder dst. It creates only plain files and folders
// inside dst and rejects archives with other entries.
func unzip(path, dst string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return broken(path, err)
	}
	defer z.Close()
	left := expansion * uint64(sizeOf(path))
	for _, entry := range z.File {
		// Compare before subtracting: a sum of such numbers could overflow.
		if entry.UncompressedSize64 > left {
			return broken(path, fmt.Errorf("entry %q: %d bytes are more than such a file can unpack to",
				entry.Name, entry.UncompressedSize64))
		}
		left -= entry.UncompressedSize64
		if err := unpack(entry, path, dst); err != nil {
			return err
		}
	}
	return nil
}

func broken(path string, err error) error {
	if e := fault.System(op, path, err); e.Kind == fault.Missing {
		return e
	}
	return (&fault.Error{Op: op, Kind: fault.Data, Path: path, Err: err}).Then("remove the file and run again")
}

// unpack writes one entry of an archive.
func unpack(entry *zip.File, path, dst string) error {
	mode := entry.Mode()
	if !filepath.IsLocal(entry.Name) || !mode.IsRegular() && !mode.IsDir() {
		return broken(path, fmt.Errorf("entry %q is not a file inside the archive", entry.Name))
	}
	to := filepath.Join(dst, filepath.FromSlash(entry.Name))
	if mode.IsDir() {
		if err := os.MkdirAll(to, 0o777); err != nil {
			return fault.System(op, to, err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return fault.System(op, to, err)
	}
	in, err := entry.Open()
	if err != nil {
		return broken(path, fmt.Errorf("entry %q: %w", entry.Name, err))
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if os.IsExist(err) {
		return broken(path, fmt.Errorf("entry %q occurs twice", entry.Name))
	}
	if err != nil {
		return fault.System(op, to, err)
	}
	// The archive's reader stops at the declared size and checks the CRC.
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil && e != nil {
		err = e
	}
	if err == nil {
		return nil
	}
	if e := fault.System(op, to, err); e.Remedy != "" { // a local disk error
		return e
	}
	return broken(path, fmt.Errorf("entry %q: %w", entry.Name, err))
}
