package ranks

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// asynchronous returns a configuration of bounded asynchrony.
func asynchronous(c Config, s, intervals int) Config {
	c.Mode, c.Staleness, c.Intervals = "async", s, intervals
	return c
}

// With one interval on one rank nothing can be stale: the asynchronous run equals the
// synchronous one, with any bound, with and without servers. Each kind of network runs on one
// of the graphs, or on both with SIAFU_BIG=1.
func TestAsyncOfOneIntervalIsSynchronous(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		for i, kind := range model.Kinds() {
			if model.KindOf(kind).Relational {
				continue // needs one epoch for all intervals
			}
			base := compared(t, 0.3)
			base.Model, base.LR, base.EvalEvery, base.Heads = kind, 0.005, 1, 2
			want := train(t, base, data)
			for s := range 2 {
				for servers := range 2 {
					if directed != ((i+s+servers)%2 > 0) && !hosttest.Big() {
						continue
					}
					t.Run(fmt.Sprintf("%s directed=%t s=%d servers=%d", kind, directed, s, servers), func(t *testing.T) {
						c := asynchronous(base, s, 1)
						c.Ranks, c.Servers, c.Out = 1+servers, servers, c.Out+"-async"
						got := train(t, c, data)
						sameLosses(t, kind, got.losses()[c.Epochs:], want.losses()[c.Epochs:], 1e-5)
					})
				}
			}
		}
	}
}

// If no rank is late, a rank with a wait budget trains as in synchronous mode, with any bound,
// and reads only rows of its own epoch.
func TestAsyncWithWaitBudgetIsSynchronous(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for s, kind := range []string{"gcn", "sage", "gat", "sage-max", "sage-pool", "gatv2"} {
		c := compared(t, 0)
		c.Model, c.LR, c.EvalEvery, c.Heads, c.Epochs, c.Ranks, c.Servers, c.Intervals = kind, 0.005, 1, 2, 20, 4, s%2, 3
		want := train(t, c, data)
		c = asynchronous(c, s, 3)
		c.Linger, c.Out = 1e6, c.Out+"-async"
		got := train(t, c, data)
		sameLosses(t, kind, got.losses(), want.losses(), 1e-4)
		for _, e := range got.Epochs {
			if e.Late == nil || *e.Late != (runfolder.Late{}) {
				t.Fatalf("%s: epoch %d: late is %+v", kind, e.Epoch, e.Late)
			}
		}
	}
}

// A late rank delays the others by their wait budget. Then they continue with old rows: with
// all of an epoch's intervals except one, s+1 epochs ahead.
func TestAsyncGoesOnWithoutALateRank(t *testing.T) {
	t.Parallel()
	c := asynchronous(quick(t), 1, 2)
	c.Ranks, c.Servers, c.Epochs, c.Dropout, c.Delay = 3, 0, 12, 0, "1:20ms:1"
	for _, c.Linger = range []float64{0, 0.1} {
		weights, gathers := 0.0, 0.0
		for _, e := range train(t, c, generated(t, false)).Epochs {
			weights, gathers = weights+e.Late.Weights, gathers+e.Late.Gathers
		}
		if weights == 0 || gathers == 0 {
			t.Errorf("linger %g: nothing is late: %g and %g", c.Linger, weights, gathers)
		}
		c.Out += "-"
	}
}

// Rows of intervals are encoded: fewer bytes, and almost the same loss.
func TestAsyncCodecs(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := asynchronous(compared(t, 0), 0, 2)
	c.Ranks, c.Servers, c.Hidden = 4, 1, 32
	plain := train(t, c, data)
	last := func(r trained) float64 { return r.Summary.FinalLoss }
	for _, name := range []string{"zstd", "bf16", "int8", "int4+zstd", "adaptive:3"} {
		c.Codec, c.Out = name, c.Out+"-"
		got := train(t, c, data)
		if s := got.Summary; s.GhostBytesSent >= s.GhostBytesRaw || s.GhostBytesRaw == 0 {
			t.Errorf("%s: %d bytes for %d", name, s.GhostBytesSent, s.GhostBytesRaw)
		}
		// Timing alone moves the last loss by a few percent.
		if math.Abs(last(got)-last(plain)) > 0.15*last(plain) {
			t.Errorf("%s: loss %v, without a codec %v", name, last(got), last(plain))
		}
	}
	c.Codec = "int8+ef"
	if err := c.Validate(); fault.KindOf(err) != fault.Usage {
		t.Errorf("error feedback: %v", err)
	}
}

// The stash of servers is reported, and bounded by the versions that s+1 epochs can use.
func TestAsyncStashIsReported(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := asynchronous(quick(t), 1, 3)
	c.Ranks, c.Servers, c.Epochs = 5, 2, 20
	r := train(t, c, data)
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	net := c.Network(meta.FeatureDim, meta.Classes)
	weights := 4 * int64(net.NumWeights())
	// Versions used by intervals of s+1 epochs, the next version, and pending gradients of 9
	// intervals in s+1 epochs.
	most := weights * (3 + 2*9)
	for _, p := range r.Summary.PerRank {
		if server := p.Role == "server"; server != (p.StashBytes > 0) || p.StashBytes > most {
			t.Errorf("rank %d, a %s, kept %d bytes, at most %d are expected", p.Rank, p.Role, p.StashBytes, most)
		}
	}
}

// hostile is a communicator that delays sent messages and hides arrived ones, as a slow
// network and a busy machine do. It preserves the order between two ranks, as MPI does.
type hostile struct {
	world.Comm
	mu  sync.Mutex
	rng *rand.Rand
}

func (h *hostile) draw(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

func (h *hostile) Isend(buf []byte, dst, tag int) (world.Request, error) {
	if h.draw(6) == 0 {
		time.Sleep(time.Duration(h.draw(400)) * time.Microsecond)
	}
	return h.Comm.Isend(buf, dst, tag)
}

func (h *hostile) TryRecv(src, tag int) (world.Message, bool, error) {
	if h.draw(2) == 0 {
		return world.Message{}, false, nil
	}
	return h.Comm.TryRecv(src, tag)
}

// Sub excludes collectives from the delays.
func (h *hostile) Sub(ranks []int) (world.Comm, error) { return h.Comm.Sub(ranks) }

// Under all kinds of delays, with ranks of different speed and uneven intervals, no run stalls
// and all ranks reach the same epochs. No gather exceeds the bound (the engine checks each),
// and the weights of all servers train: the loss falls.
func TestAsyncUnderHostileDelivery(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := asynchronous(quick(t), rng.IntN(3), 1+rng.IntN(4))
		graphRanks := 2 + rng.IntN(4)
		c.Servers = rng.IntN(min(graphRanks, 3) + 1)
		c.Model = []string{"gcn", "sage", "gin", "gat", "gatv2"}[seed%5]
		c.Epochs, c.Dropout, c.Layers, c.LR = 30, 0, 1+rng.IntN(3), 0.01
		t.Run(fmt.Sprintf("seed=%d %s s=%d intervals=%d ranks=%d servers=%d", seed, c.Model, c.Staleness, c.Intervals, graphRanks,
			c.Servers), func(t *testing.T) {
			err := launch(graphRanks+c.Servers, world.Limits{Abort: hosttest.Patience}, IO{Out: io.Discard, Err: os.Stderr},
				func(w world.Comm, kind string) error {
					h := &hostile{Comm: w, rng: rand.New(rand.NewPCG(seed, uint64(w.Rank())))}
					return trainMember(c, data, world.View{}, h, kind)
				})
			if err != nil {
				t.Fatal(err)
			}
			got := readRun(t, c.Out)
			if len(got.Epochs) != 30 || got.Epochs[29].Epoch != 30 {
				t.Fatalf("%d epochs are reported", len(got.Epochs))
			}
			// Not the last one: a step on stale weights may overshoot.
			if losses := got.losses(); !(slices.Min(losses) < losses[0]-0.02) {
				t.Errorf("the losses are %v", losses)
			}
		})
	}
}

// A run with a target accuracy stops on all ranks after the same epoch.
func TestAsyncStops(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, s := range []int{0, 2} {
		c := asynchronous(quick(t), s, 3)
		c.Ranks, c.Servers, c.Epochs, c.Dropout, c.TargetAcc = 4, 1, 500, 0, 0.5
		got := train(t, c, data)
		if n := len(got.Epochs); got.Summary.StoppedBy != "target-acc" || n == 500 || *got.Epochs[n-1].ValAcc == 0 {
			t.Errorf("s=%d: stopped by %s after %d epochs", s, got.Summary.StoppedBy, n)
		}
	}
}

// A run that switches continues with its weights and optimiser state. With one interval on one
// rank, where nothing is stale, it ends like a run that was always synchronous.
func TestSwitchToSync(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	base := quick(t)
	base.Epochs, base.Dropout, base.TargetAcc, base.LR = 40, 0, 1, 0.02
	want := train(t, base, data)
	for servers := range 2 {
		c := asynchronous(base, 1, 1)
		c.Ranks, c.Servers, c.SwitchToSync, c.Out = 1+servers, servers, 0.6, c.Out+"-switched"
		got := train(t, c, data)
		sameLosses(t, "switched", got.losses()[30:], want.losses()[30:], 1e-5)
		checkSwitched(t, got)
	}
}

// With several ranks, intervals and servers, all of them switch.
func TestSwitchToSyncOfManyRanks(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for servers := range 3 {
		c := asynchronous(quick(t), 1, 3)
		c.Ranks, c.Servers, c.Epochs, c.Dropout, c.TargetAcc, c.SwitchToSync, c.LR = 3+servers, servers, 60, 0, 1, 0.6, 0.02
		checkSwitched(t, train(t, c, data))
	}
}

// checkSwitched checks that every epoch occurs once, and that the run switched.
func checkSwitched(t *testing.T, r trained) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(r.Model), "log.txt"))
	var after int
	if at := bytes.Index(log, []byte("switch_to_sync")); err != nil || at < 0 {
		t.Fatalf("nothing was switched: %v\n%s", err, log)
	} else if _, err := fmt.Sscanf(string(log[at:]), "switch_to_sync after_epoch=%d", &after); err != nil ||
		after < 1 || after >= r.Summary.Epochs {
		t.Errorf("switched after epoch %d of %d: %v", after, r.Summary.Epochs, err)
	}
	for i, e := range r.Epochs {
		if e.Epoch != i+1 {
			t.Fatalf("line %d tells of epoch %d", i+1, e.Epoch)
		}
	}
	if !r.Summary.Switched {
		t.Error("the summary says nothing of the switch")
	}
	if n := len(r.Epochs); n != r.Summary.Epochs || r.Summary.StoppedBy != "epochs" {
		t.Errorf("%d lines, %d epochs, stopped by %s", n, r.Summary.Epochs, r.Summary.StoppedBy)
	}
	if first, last := r.Epochs[0].Loss, r.Summary.FinalLoss; !(last < first) {
		t.Errorf("the loss goes from %g to %g", first, last)
	}
}
