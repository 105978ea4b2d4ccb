// Package launchtest builds the programs that tests of launchers run.
package launchtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is shared by the tests of a package.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "launchtest")
	if err != nil {
		return "", err
	}
	for name, pkg := range map[string]string{"siafu": "siafu", "standin": "siafu/slurm/testdata/standin"} {
		cmd := exec.Command("go", "build", "-tags", "mpi", "-o", filepath.Join(dir, name), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), err
		}
	}
	return dir, nil
})

// Main runs the tests of a package and removes the programs.
func Main(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// Programs are siafu, and a stand-in for its training whose epochs are naps.
func Programs(t testing.TB) (siafu, standin string) {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatalf("building: %v\n%s", err, dir)
	}
	return filepath.Join(dir, "siafu"), filepath.Join(dir, "standin")
}
