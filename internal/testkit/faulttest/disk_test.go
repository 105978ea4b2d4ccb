//go:build mpi

package faulttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// fullDisk fills the disk at the moment at which the scene pauses. The run ends with exit code 74,
// and continues to the end once there is space. If it was writing a checkpoint, the space of that
// file may suffice for the rest.
func (s *stage) fullDisk(t *testing.T, x scene, j *job, disk, run string) {
	await(t, j)
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	if err := os.WriteFile(j.mark+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	j.wait(t)
	if strings.HasPrefix(x.moment, "save ") && j.code == 0 && strings.Contains(j.text(), "; continuing without it") {
		s.whole(t, x, run, j)
		return
	}
	last := j.lines[len(j.lines)-1]
	if j.code != 74 || !strings.Contains(last, run) || !strings.Contains(last, "no space left") {
		t.Errorf("%v: exit %d, and last it says %q\n%s", x, j.code, last, j.text())
	}
	if d := time.Since(began); d > 3*endsIn { // it was tried three times
		t.Errorf("%v: it ended after %v", x, d)
	}
	if _, err := os.Stat(filepath.Join(run, "summary.json")); err == nil {
		t.Errorf("%v: the run looks finished", x)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	j = s.launch(t, scene{kind: "kill", rank: size, mode: x.mode, moment: "none"}, run, j.mark+"-again", "--resume", "auto")
	if j.wait(t); j.code != 0 {
		t.Fatalf("%v: with space again exit %d\n%s", x, j.code, j.text())
	}
	s.whole(t, x, run, j)
}

// await waits for the mark.
func await(t *testing.T, j *job) {
	t.Helper()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(j.mark); err == nil {
			return
		}
	}
	j.wait(t)
	t.Fatalf("it never comes to that:\n%s", j.text())
}

// fill writes until nothing more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 4096); err == nil; {
		_, err = f.Write(chunk)
	}
}
