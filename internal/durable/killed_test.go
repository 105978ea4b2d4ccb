package durable

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

const child = "SIAFU_TEST_DURABLE_DIR"

// As a child this program writes a file and a folder again and again, until it
// is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(child)
	if dir == "" {
		os.Exit(m.Run())
	}
	for fill := byte('a'); ; fill = 'a' + (fill-'a'+1)%26 {
		if err := writeBoth(dir, fill); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
}

// size is that of the files: large enough to be killed in.
const size = 1 << 16

func writeBoth(dir string, fill byte) error {
	b := bytes.Repeat([]byte{fill}, size)
	if err := WriteFile(op, filepath.Join(dir, "file"), b, Perm); err != nil {
		return err
	}
	f, err := NewFolder(op, filepath.Join(dir, "folder"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := WriteFile(op, filepath.Join(f.Path, "file"), b, Perm); err != nil {
		return err
	}
	return f.Commit()
}

// Whenever a process is killed, what it was writing is whole, older or newer;
// and what it has left half written the next process removes.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	if err := writeBoth(dir, 'a'); err != nil {
		t.Fatal(err)
	}
	random, dirty := rand.New(rand.NewPCG(1, 2)), 0
	const tries = 25
	for range tries {
		killed(t, dir, time.Duration(random.IntN(20_000))*time.Microsecond)
		for _, name := range []string{"file", "folder/file"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(b) != size || bytes.Count(b, b[:1]) != size {
				t.Fatalf("%s has %d bytes: %v", name, len(b), err)
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 2 {
			dirty++
		}
		if err := writeBoth(dir, 'z'); err != nil {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 2 {
			t.Fatalf("left behind: %v", entries)
		}
	}
	t.Logf("%d of %d left something", dirty, tries)
	if dirty == 0 {
		t.Error("nobody was killed while writing")
	}
}

// killed runs the child so long, from the first file that it has written on.
func killed(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), child+"="+dir), &said
	file := filepath.Join(dir, "file")
	before, _ := os.Stat(file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if now, err := os.Stat(file); err == nil && !os.SameFile(before, now) {
			break
		}
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if said.Len() > 0 {
		t.Fatalf("the writer fails: %s", said.String())
	}
}
