package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// made are the programs that this process has made, below mu.
var (
	mu   sync.Mutex
	made = map[string]bool{}
)

// Build returns the path of a program that how builds. All tests of a checkout share it, in
// build/test. It is replaced only if it differs, because go test caches results only while
// file times are unchanged.
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
		fresh := filepath.Join(root, "build", "fresh", name) // a file next to path would change its folder's time
		_ = os.MkdirAll(filepath.Dir(fresh), 0o755)          // where it is there, it is; go test does not hear of it
		_ = exec.Command("cp", path, fresh).Run()            // what go build finds there, and would make again, it does not link
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
	// go test keeps in mind what tests look at: with another program they run again.
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
