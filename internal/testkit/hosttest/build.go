package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// made contains the programs that this process has built.
var (
	mu   sync.Mutex
	made = map[string]bool{}
)

// Build returns the path of a program that how builds at a path. All tests of a checkout share it,
// in build/test. Build replaces the file only if its content changes, because go test caches results
// only while file times are unchanged.
func Build(t testing.TB, name string, how func(root, path string) *exec.Cmd) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	root := checkout(t)
	path := filepath.Join(root, "build", "test", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		defer lock.Close()
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !made[path] {
		// The new file is in another folder, because a file beside path would change its folder's
		// time. go build does not link a program that is already there and current.
		fresh := filepath.Join(root, "build", "fresh", name)
		_ = os.MkdirAll(filepath.Dir(fresh), 0o755) // how fails if the folder is missing
		_ = exec.Command("cp", path, fresh).Run()   // fails if there is no earlier program
		if out, err := how(root, fresh).CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
		settle := os.Rename
		if exec.Command("cmp", "-s", fresh, path).Run() == nil {
			settle = func(fresh, _ string) error { return os.Remove(fresh) }
		}
		if err := settle(fresh, path); err != nil {
			t.Fatal(err)
		}
		made[path] = true
	}
	// go test records this access, and runs the tests again when the program changes.
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Go builds the program of a package with build tags, separated by commas, and returns its path.
func Go(t testing.TB, name, pkg, tags string) string {
	t.Helper()
	return Build(t, name, func(root, path string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-tags", tags, "-o", path, pkg)
		cmd.Dir = root
		return cmd
	})
}

// checkout returns the folder that contains go.mod.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = up
	}
}
