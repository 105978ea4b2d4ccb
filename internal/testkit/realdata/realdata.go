package realdata

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Root returns the data folder, or "" if there is none.
func Root() string {
	if dir := os.Getenv("SIAFU_TESTDATA"); dir != "" {
		return dir
	}
	checkout, err := os.Getwd()
	for ; err == nil && checkout != filepath.Dir(checkout); checkout = filepath.Dir(checkout) {
		if _, err := os.Stat(filepath.Join(checkout, "go.mod")); err == nil {
			break
		}
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(checkout), "*", "data", "cora.tar.zst"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[0])
}

// File returns the path of a file below the data folder. It skips the test if the file does not
// exist.
func File(t testing.TB, rel string) string {
	t.Helper()
	root := Root()
	if root == "" {
		t.Skip("real graphs are absent: set SIAFU_TESTDATA to a folder that holds them")
	}
	path := filepath.Join(root, rel)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real graph is absent: %v", err)
	}
	return path
}

// Dir returns the folder of the named graph. If the data folder has only an archive of the
// graph, Dir unpacks it into a temporary folder of the test. It skips the test if the graph
// does not exist.
func Dir(t testing.TB, name string) string {
	t.Helper()
	if root := Root(); root != "" {
		dir := filepath.Join(root, name)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	archive := File(t, name+".tar.zst")
	into := t.TempDir()
	if err := unpack(archive, into); err != nil {
		t.Fatalf("unpacking %s: %v", archive, err)
	}
	return filepath.Join(into, name)
}

func unpack(archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		path := filepath.Join(into, filepath.Clean("/"+h.Name))
		content, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o666)); err != nil {
			return err
		}
	}
}
