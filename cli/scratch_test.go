package cli

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// In a control group that is too small for the values, a run is refused, but with --memory scratch=DIR it trains to
// the bits of a run without a limit. The bytes that its second epoch reads and writes are those of the header.
// The tolerance of 2 % is blocks that two passes share.
func TestScratchUnderALimit(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("under the race detector arrays are on the heap")
	}
	t.Setenv(kernels.CPUVariable, "") // for plain Go the arrays are too large
	group := newCage(t, 350<<20)
	data, out := filepath.Join(t.TempDir(), "data"), t.TempDir()
	disk, err := os.MkdirTemp("/var/tmp", "siafu-test-")
	if err != nil || host.InMemory(disk) {
		t.Skipf("no disk under /var/tmp: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(disk) })
	must(t, "generate", data, "--vertices", "300000", "--edges", "1000000", "--features", "64", "--classes", "64")
	args := func(run string, more ...string) []string {
		return append([]string{"train", data, "--vertex-order", "natural", "--hidden", "64", "--epochs", "2", "--eval-every", "0",
			"--defaults", "fixed", "--input-dropout", "0", "--cache-input", "on", "--threads", "2", "--out",
			filepath.Join(out, run)}, more...)
	}
	must(t, args("memory")...)
	if r := group.run(t, args("refused")...); r.code != 78 {
		t.Errorf("without --memory scratch=DIR: exit code %d: %s", r.code, r.err)
	}
	r := group.run(t, args("scratch", "--memory", "250MiB:scratch="+disk)...)
	if r.code != 0 || !strings.Contains(r.out, "scratch dir=") {
		t.Fatalf("with --memory scratch=DIR: exit code %d: %s", r.code, r.err)
	}
	metrics, err := os.ReadFile(filepath.Join(out, "scratch", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// Blocks that are in memory when the next pass requests them are not read again, and written once: at most
	// 32 MiB that are fetched ahead, and 8 unused ones of 2 MiB. A missing array of the graph has 77 MB.
	const again = (32 + 8*2) << 20
	for _, name := range []string{"read", "written"} {
		forecast := numberAfter(t, r.out, "epoch_"+name+"=")
		epochs := strings.Split(string(metrics), `"epoch":2,`)
		measured := numberAfter(t, epochs[len(epochs)-1], `"disk_bytes_`+name+`":`)
		if !strings.Contains(r.out, "files reads=direct") || math.Abs(measured-forecast) > 0.02*forecast+again {
			t.Errorf("an epoch has %s %g bytes, forecast %g", name, measured, forecast)
		}
	}
	var models [][]byte
	for _, run := range []string{"memory", "scratch"} {
		b, err := os.ReadFile(filepath.Join(out, run, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, b)
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("the weights differ")
	}
}

// numberAfter returns the number after the first occurrence of a key.
func numberAfter(t *testing.T, text, key string) float64 {
	_, rest, ok := strings.Cut(text, key)
	n := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	x, err := strconv.ParseFloat(rest[:max(n, 0)], 64)
	if !ok || err != nil {
		t.Fatalf("no number after %q: %v", key, err)
	}
	return x
}
