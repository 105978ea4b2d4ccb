//go:build mpi

package faulttest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/inject"
)

// The world of the matrix: ranks 0 and 1 are graph ranks, 2 and 3 servers.
const (
	size    = 4
	servers = 2
)

// The values of the matrix.
var (
	kinds   = []string{"kill", "stop", "exit", "disk"}
	victims = []string{"rank 0", "graph rank", "server"}
	modes   = []string{"pipe", "async"}
	moments = []string{"start", "forward", "exchange", "update", "evaluation", "checkpoint"}
)

// point is a point of the matrix: indices of its values.
type point [4]int

var axes = [4][]string{kinds, victims, modes, moments}

func (p point) String() string {
	return fmt.Sprintf("%s/%s/%s/%s", kinds[p[0]], victims[p[1]], modes[p[2]], moments[p[3]])
}

// fixed returns each kind of fault at each moment, with victims and modes such that all pairs of
// values of different axes occur.
func fixed() []point {
	var list []point
	for moment := range moments {
		for kind := range kinds {
			list = append(list, point{kind, (moment + kind) % len(victims), (moment/3 + kind/2 + moment) % len(modes), moment})
		}
	}
	return list
}

// Every pair of values of two axes is in the fixed list.
func TestPairs(t *testing.T) {
	type pair struct{ a, x, b, y int }
	met := map[pair]bool{}
	for _, p := range fixed() {
		for a := range axes {
			for b := range axes {
				met[pair{a, p[a], b, p[b]}] = true
			}
		}
	}
	for a := range axes {
		for b := a + 1; b < len(axes); b++ {
			for x := range axes[a] {
				for y := range axes[b] {
					if !met[pair{a, x, b, y}] {
						t.Errorf("%s never meets %s", axes[a][x], axes[b][y])
					}
				}
			}
		}
	}
}

// words are the moments of package inject by mode and by the role of the
// victim, in the order of moments.
var words = map[string][]string{
	"pipe rank 0":      {"start", "GA", "SC", "WU", "eval", "save state.json"},
	"pipe graph rank":  {"start", "AV", "∇SC", "WU", "eval", "save"},
	"pipe server":      {"start", "pull", "sum", "gradient", "eval", "state"},
	"async rank 0":     {"start", "GA", "SC", "WU", "eval", "save MANIFEST.json"},
	"async graph rank": {"start", "AV", "∇SC", "WU", "eval", "save"},
	"async server":     {"start", "fetch", "sum", "gradient", "eval", "save"},
}

// scene returns the point as a run: the fault strikes in the third stretch between
// two checkpoints.
func (p point) scene() scene {
	s := scene{kind: kinds[p[0]], rank: p[1], mode: modes[p[2]], epoch: 8}
	s.moment = words[s.mode+" "+victims[p[1]]][p[3]]
	return s.timed()
}

// A third of the fixed points, which changes with the commit, with each kind of fault and each moment, and
// a random one; with SIAFU_BIG=1 all of them and 40.
func TestMatrix(t *testing.T) {
	stage := newStage(t)
	turn := hosttest.Turn(t, 3)
	for _, p := range fixed() {
		if !hosttest.Sampled(3, 2*p[0], p[3], turn) {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			stage.play(t, p.scene())
		})
	}
	more := 1
	if hosttest.Big() {
		more = 40
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SIAFU_FAULT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for k := range more {
		s := random(rng)
		t.Run(fmt.Sprintf("random %d", k), func(t *testing.T) {
			t.Parallel()
			t.Logf("SIAFU_FAULT_SEED=%d repeats it", seed)
			stage.play(t, s)
		})
	}
}

// A graph rank is lost while another one waits for its sums of columns in batch normalisation. The
// wait ends, and the restarted run has the usual result.
func TestInSums(t *testing.T) {
	stage := newStage(t)
	stage.flags = []string{"--norm", "batch"}
	stage.undisturbed(t)
	for rank, kind := range []string{"stop", "kill"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stage.play(t, scene{kind: kind, rank: rank, mode: "pipe", moment: inject.Total, epoch: 8})
		})
	}
}

// A graph rank is lost while the other one fetches the inputs of ghosts, whose rows it is to compute
// in two layers: nobody waits for ever, and the run ends as if nothing had been.
func TestInFetch(t *testing.T) {
	stage := newStage(t)
	stage.flags = []string{"--layers", "3", "--recompute-ghosts", "all"}
	stage.undisturbed(t)
	for rank, kind := range []string{"stop", "kill"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stage.play(t, scene{kind: kind, rank: rank, mode: "pipe", moment: inject.Fetch})
		})
	}
}

// A graph rank is lost while it learns to predict ghost rows, and the other one waits for it: for its
// rows, or for its sums in the training of a recurrent predictor. The restarted run has the own rows,
// the states of cells and the weights of the checkpoint, and so the same result.
func TestInPrediction(t *testing.T) {
	for name, flags := range map[string][]string{
		"fitted":    {"--predict", "transfer"},
		"recurrent": {"--predict", "lstm-gcn", "--predict", "every=2"},
		"past":      {"--predict", "gru-gcn", "--predict", "every=2", "--predict", "input=past", "--predict", "hold"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := newStage(t)
			stage.flags = append([]string{"--refresh", "every:3", "--predict", "rows=64"}, flags...)
			stage.undisturbed(t)
			for rank, kind := range []string{"stop", "kill"} {
				if name == "past" && !hosttest.Big() {
					break
				}
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					stage.play(t, scene{kind: kind, rank: rank, mode: "pipe", moment: inject.Predict, epoch: 8})
				})
			}
		})
	}
}

// steps of writing a checkpoint and the end of a run, which only rank 0 knows.
var written = []string{"opened", "save model.safetensors", "save optimizer.safetensors", "save best.safetensors", "save rename", "summary"}

// random returns a random scene at a random moment.
func random(rng *rand.Rand) scene {
	s := scene{kind: kinds[rng.IntN(len(kinds))], rank: rng.IntN(size), mode: modes[rng.IntN(len(modes))], epoch: 1 + rng.IntN(epochs)}
	list := slices.Concat(words[s.mode+" "+victims[min(s.rank, 2)]], []string{"finish"})
	switch {
	case s.rank == 0:
		list = slices.Concat(list, written)
	case s.rank == 1:
		list = append(list, "∇AV", "∇GA")
	case s.rank == 3 && s.mode == "pipe":
		list = slices.DeleteFunc(list, func(w string) bool { return w == "state" }) // asked of the first server only
	}
	s.moment = list[rng.IntN(len(list))]
	return s.timed()
}

// timed removes the epoch if the moment belongs to none.
func (s scene) timed() scene {
	if slices.Contains([]string{"start", "opened", "finish", "summary"}, s.moment) {
		s.epoch = 0
	}
	return s
}
