package checkpoint

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"siafu/ranks/runfolder"
)

// saverRun makes this program a process that saves into the run folder it
// names, until it is killed.
const saverRun = "SIAFU_TEST_SAVER_RUN"

func TestMain(m *testing.M) {
	if run := os.Getenv(saverRun); run != "" {
		if err := saveForEver(run); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// killWidth makes a save take some milliseconds.
const killWidth = 20_000

// saveForEver continues from the newest checkpoint, and prints each epoch when its checkpoint is
// durable.
func saveForEver(run string) error {
	lock, err := runfolder.Acquire(run, "", 0)
	if err != nil {
		return err
	}
	defer lock.Release()
	dir := filepath.Join(run, Dir)
	s, _, err := Latest(dir)
	if err != nil {
		return err
	}
	epoch := 0
	if s != nil {
		epoch = s.Epoch
	}
	for fmt.Println("from", epoch); ; fmt.Println("saved", epoch) {
		epoch++
		if _, err := Save(dir, stateOf(epoch, killWidth), nil); err != nil {
			return err
		}
		if _, err := Prune(dir, 2, epoch); err != nil {
			return err
		}
	}
}

// A process that is killed at any moment leaves its newest checkpoint, or the
// one that it was about to finish; the next process finds it, gets the lock,
// and tidies up.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes for some seconds")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	run := t.TempDir()
	dir := filepath.Join(run, Dir)
	torn := 0
	for range 25 {
		told := killAfter(t, run, time.Duration(rng.IntN(60_000))*time.Microsecond)
		for _, name := range names(t, dir) {
			if hidden.MatchString(name) {
				torn++
			}
		}
		s, skipped, err := Latest(dir)
		if err != nil || skipped != nil {
			t.Fatalf("%v %v", skipped, err)
		}
		if s == nil {
			if told > 0 {
				t.Fatalf("nothing left of %d epochs", told)
			}
			continue
		}
		if s.Epoch != told && s.Epoch != told+1 {
			t.Fatalf("epoch %d is left after %d was told", s.Epoch, told)
		}
		want := stateOf(s.Epoch, killWidth)
		if d := difference(&want, s); d != "" {
			t.Fatal("the checkpoint holds something else")
		}
	}
	t.Logf("%d times killed while something was written or removed", torn)
	lock, err := runfolder.Acquire(run, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t, dir) {
		if epochOf(name) < 0 {
			t.Errorf("left behind: %s", name)
		}
	}
}

// killAfter starts a process that saves, kills it so long after its first
// words, and returns the last epoch that it told.
func killAfter(t *testing.T, run string, d time.Duration) int {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(run, Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), saverRun+"="+run)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if told < 0 {
			time.AfterFunc(d, func() { cmd.Process.Kill() })
		}
		_, n, _ := strings.Cut(lines.Text(), " ")
		if told, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait() // it was killed
	if told < 0 {
		t.Fatal("the process did not begin")
	}
	return told
}
