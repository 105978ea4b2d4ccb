//go:build mpi

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"siafu/bench"
	"siafu/internal/fault"
	"siafu/internal/testkit/mpitest"
)

// overLinks calls a bench that trains with siafu on hosts of this machine, or skips the test
// with the reason why it cannot.
func overLinks(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(program(t, "mpi"))+":"+os.Getenv("PATH"))
	r := siafu(append([]string{"bench"}, args...)...)
	if r.code == fault.Missing.ExitCode() {
		t.Skip(r.err)
	}
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	return r.out
}

// TestBenchLinksComparesVariants: variants are compared with the first one. Interfaces count
// more bytes than the rows, because gradients and headers travel as well, and no rows travel if
// all are computed.
func TestBenchLinksComparesVariants(t *testing.T) {
	mpitest.NeedOpenMPI4(t, "a link with a rate")
	out := overLinks(t, "links", small(t), "--hosts", "2", "--rates", "1gbit", "--partitioners", "hash", "--epochs",
		"100", "--turns", "2", "--json",
		"--variants", "received=--recompute-ghosts none; computed=--recompute-ghosts all;int8=--recompute-ghosts none --codec int8",
		"--", "--servers", "0", "--hidden", "32", "--input-dropout", "0", "--eval-every", "0", "--checkpoint-every", "off")
	var runs []bench.LinkRun
	if err := json.Unmarshal([]byte(out), &runs); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	for _, r := range runs {
		names = append(names, r.Variant+" "+r.Codec+" "+r.Mode)
		if r.Interface == nil || *r.Interface < float64(r.Sent) || r.Uncounted != "" {
			t.Errorf("%s: %d bytes of rows, interfaces %v, %s", r.Variant, r.Sent, r.Interface, r.Uncounted)
		}
		if r.Least <= 0 || r.SpeedUp != runs[0].Epoch/r.Epoch {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(names, ", "); got != "received none pipe, computed none pipe, int8 int8 pipe" {
		t.Error(got)
	}
	received, computed := runs[0], runs[1]
	if received.Sent == 0 || computed.Sent != 0 || *computed.Interface >= *received.Interface {
		t.Errorf("received %+v, computed %+v", received, computed)
	}
}

// TestBenchNeutronStar: over links, ranks that compute their ghosts' rows receive none, and the
// fetch of the inputs is counted before the first epoch.
func TestBenchNeutronStar(t *testing.T) {
	mpitest.NeedOpenMPI4(t, "a link with a rate")
	out := overLinks(t, "neutronstar", "--data", small(t, "--vertices", "4000", "--edges", "40000", "--features", "64"), "--models", "gcn",
		"--hosts", "2", "--rates", "1gbit", "--epochs", "400", "--turns", "1",
		"--only", "links", "--work", t.TempDir(), "--", "--input-dropout", "0")
	cells := map[string][]string{}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) == 15 && words[0] == "small" {
			cells[words[4]] = words
		}
	}
	received, computed := cells["DepComm"], cells["DepCache"]
	if len(cells) != 3 || received == nil || computed == nil {
		t.Fatal(out)
	}
	megabytes := func(words []string, column int) float64 {
		x, err := strconv.ParseFloat(words[column], 64)
		if err != nil {
			t.Errorf("column %d: %v\n%s", column, err, out)
		}
		return x
	}
	const rows, sent, fetch = 7, 8, 14 // columns of megabytes
	if megabytes(computed, rows) != 0 || megabytes(received, rows) == 0 || megabytes(computed, sent) >= megabytes(received, sent) ||
		megabytes(computed, fetch) <= 0 {
		t.Error(out)
	}
}
