package ranks

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
)

// approximations are features that promise no equal losses on other ranks. With equal flags their
// runs have equal bits too.
var approximations = []feature{
	{"codec", []string{"codec=int8"}, isTrained}, {"codec", []string{"codec=int4+ef"}, isTrained},
	{"codec", []string{"codec=adaptive"}, isTrained}, {"codec", []string{"codec=polyline"}, isTrained},
	{"refresh", []string{"refresh=previous:0.9"}, isTrained}, {"refresh", []string{"refresh=drift:0.1"}, isTrained},
	{"refresh", []string{"refresh=age:3,0.5"}, isTrained}, {"refresh", []string{"refresh=sample:0.5"}, isTrained},
	{"predict", []string{"predict=transfer", "refresh=every:2"}, isTrained},
	{"predict", []string{"predict=lstm-gcn", "refresh=every:2"}, isTrained},
	{"batch", []string{"batch=neighbor:4,3,2", "input-dropout=0"}, isTrained}, {"batch", []string{"batch=saint:20"}, isTrained},
	{"batch", []string{"batch=cluster:4"}, isTrained}, {"batch", []string{"batch=history:4"}, isTrained},
	{"batch", []string{"batch=variates:4,2"}, isTrained}, {"batch", []string{"batch=history:4", "history-format=int8"}, isTrained},
	{"local-epochs", []string{"local-epochs=2"}, isTrained},
	{"link-score", []string{"link-score=mlp", "data=links"}, isTrained},
}

// emulatedRuns is the number of runs on ARM64 of a commit, and of the long variant.
const emulatedRuns, emulatedRunsBig = 12, 100

// The program for ARM64 trains networks with random flags to the bytes of this processor's program, with
// its best kernels and in plain Go. The compiler for ARM64 fuses products and sums that are not rounded.
func TestEmulatedARM64HasTheSameBits(t *testing.T) {
	t.Parallel()
	arm := hosttest.ARM64(t, "siafu", "siafu", false)
	stage, seed, kinds, count := newPairStage(t), hosttest.CommitSeed(t, hosttest.CasesVariable), model.Kinds(), emulatedRuns
	if hosttest.Big() {
		count = emulatedRunsBig
	}
	all, trained := append(features(), approximations...), 0
	for k := 0; trained < count && k < 2*count; k++ { // 2: flags may be refused
		rng, kind := rand.New(rand.NewPCG(seed, uint64(k))), kinds[k%len(kinds)]
		other := all[rng.IntN(len(all))]
		if rng.IntN(2) == 0 {
			other = approximations[rng.IntN(len(approximations))]
		}
		list := withOthers(t, all, feature{"model", []string{"model=" + kind}, isTrained}, other, int(rng.Int32()))
		for n := len(list); n > 0; n-- { // the last ones may be refused
			if stage.emulate(t, arm, merged(list[:n])) {
				trained++
				break
			}
		}
	}
	if trained < count {
		t.Errorf("%d runs are trained, not %d", trained, count)
	}
}

// emulate trains here and on ARM64 with flags. It reports whether siafu accepts them.
func (s *pairStage) emulate(t *testing.T, arm []string, f flags) bool {
	t.Helper()
	c, data := f.config(t, s.dir), s.datasets[f["data"]]()
	err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
	if kind := fault.KindOf(err); err != nil && (kind == fault.Usage || kind == fault.Config) {
		return false
	} else if err != nil {
		t.Fatalf("siafu train %v: %v", f, err)
	}
	want, out := readRun(t, c.Out), filepath.Join(s.dir, "emulated")
	args := slices.Concat(arm[1:], []string{"train", filepath.Join(c.Out, "config.toml"), data, "--out", out, "--force"})
	if text, err := exec.Command(arm[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
	}
	got := readRun(t, out)
	if why := differs(got.losses(), want.losses(), 0); why != "" || !bytes.Equal(got.model, want.model) {
		t.Errorf("siafu train %v: ARM64 has other bits: %s", f, why)
	}
	return true
}
