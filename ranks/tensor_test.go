package ranks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/lambda/pool"
	"siafu/ranks/tensor"
)

// chaos is a transport of tasks and results: late, out of order, and sometimes duplicated,
// damaged, or lost.
type chaos struct {
	work    func(message []byte) []byte
	calm    bool // gives each result once
	answers chan task.Answer
	ended   chan struct{}

	mu   sync.Mutex
	rng  *rand.Rand
	sent int
}

func newChaos(seed uint64, work func([]byte) []byte) *chaos {
	return &chaos{work: work, answers: make(chan task.Answer), ended: make(chan struct{}), rng: rand.New(rand.NewPCG(seed, 1))}
}

// Send implements tensor.Transport.
func (c *chaos) Send(message []byte) error {
	c.mu.Lock()
	pause := time.Duration(c.rng.IntN(300)) * time.Microsecond
	c.sent++
	n := c.sent
	c.mu.Unlock()
	go func() {
		time.Sleep(pause)
		result := c.work(message)
		switch {
		case c.calm:
		case n%29 == 0:
			return
		case n%23 == 0:
			result[len(result)/2] ^= 1
		case n%11 == 0:
			c.give(bytes.Clone(result))
			time.Sleep(pause)
		}
		c.give(result)
	}()
	return nil
}

func (c *chaos) give(result []byte) {
	select {
	case c.answers <- task.Answer{Result: result}:
	case <-c.ended:
	}
}

// Answers implements tensor.Transport.
func (c *chaos) Answers() <-chan task.Answer { return c.answers }

// Close implements tensor.Transport.
func (c *chaos) Close() error {
	close(c.ended)
	return nil
}

// process is another process that runs tasks.
type process struct {
	mu       sync.Mutex
	requests io.WriteCloser
	replies  io.Reader
}

// doesTasks, set, makes TestDoesTasks the body of such a process.
const doesTasks = "SIAFU_TEST_DOES_TASKS"

// TestDoesTasks runs in the other process. It reads tasks from its standard input, and writes
// results to file descriptor 3.
func TestDoesTasks(t *testing.T) {
	t.Parallel()
	if os.Getenv(doesTasks) == "" {
		t.Skip("this is the process that other tests start")
	}
	in, out := os.Stdin, os.NewFile(3, "results")
	spec, err := readFrame(in)
	var net *model.Network
	if err == nil {
		var s sent
		err = json.Unmarshal(spec, &s)
		net = model.New(s.Spec, s.Sparse)
	}
	ops := kernels.NewTeam(1)
	defer ops.Close()
	for err == nil {
		var message, result []byte
		if message, err = readFrame(in); err != nil {
			break
		}
		if result, err = task.Work(net, message, nil, ops); err == nil {
			err = writeFrame(out, result)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
}

// sent is the wire format of a network.
type sent struct {
	Spec   model.Spec
	Sparse bool
}

func startProcess(t testing.TB, s sent) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDoesTasks$")
	cmd.Env, cmd.Stderr = append(os.Environ(), doesTasks+"=1"), os.Stderr
	replies, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	p := &process{replies: replies}
	if p.requests, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() {
		_ = p.requests.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		_ = replies.Close()
	})
	//lint:ignore SA1026 Custom is nil in what is sent
	spec, err := json.Marshal(s)
	if err == nil {
		err = writeFrame(p.requests, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// work runs a task in the process.
func (p *process) work(message []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if writeFrame(p.requests, message) != nil {
		return make([]byte, 8) // the run is over
	}
	result, err := readFrame(p.replies)
	if err != nil {
		return make([]byte, 8)
	}
	return result
}

func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...))
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint64(n[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// trainOn trains with the tensor tasks of each rank on a backend.
func trainOn(t testing.TB, c Config, data string, backend func(*joined) tensor.Backend) trained {
	t.Helper()
	inWorld(t, c, data, func(r *member) { r.backend = backend }, (*member).train)
	return readRun(t, c.Out)
}

// sentOf returns the network of a run, as configured for remote tasks.
func sentOf(r *joined) sent {
	net := r.net
	net.InPlace, net.Listed = false, false
	return sent{net, r.shard.Features.Sparse != nil}
}

// elsewhere trains with every tensor task in another process.
func elsewhere(t testing.TB, c Config, data string, w tensor.RequestOptions,
	do func(*joined) func([]byte) []byte) (trained, tensor.Counts) {
	t.Helper()
	var all []*tensor.Remote
	var mu sync.Mutex
	c.Out += "-elsewhere"
	got := trainOn(t, c, data, func(r *joined) tensor.Backend {
		mu.Lock()
		defer mu.Unlock()
		b := tensor.NewRemote(newChaos(uint64(len(all)), do(r)), w, patient(patience, 100), silence)
		all = append(all, b)
		return b
	})
	var sum tensor.Counts
	for _, b := range all {
		n := b.Counts()
		sum = tensor.Counts{Sent: sum.Sent + n.Sent, Again: sum.Again + n.Again, Dropped: sum.Dropped + n.Dropped,
			Damaged: sum.Damaged + n.Damaged, Bytes: sum.Bytes + n.Bytes}
	}
	return got, sum
}

// parted returns a dataset partitioned for one rank and for two, so that concurrent runs need
// not partition it.
func parted(t testing.TB, data string) string {
	t.Helper()
	for ranks := 1; ranks <= 2; ranks++ {
		c := quick(t)
		c.Epochs, c.Ranks, c.Servers = 1, ranks, 0
		train(t, c, data)
	}
	return data
}

// patience is the timeout of an attempt: short, so that a lost one costs little. Attempts that
// a busy machine delays longer are duplicated.
const patience = 60 * time.Millisecond

// patient returns settings for attempts of about that time, without a breaker. Invocations
// outlast the delay of a busy machine before the task that they were begun for.
func patient(d time.Duration, attempts int) pool.Settings {
	return pool.Settings{
		Limit: 1000, Attempts: attempts, InvocationLimit: max(2*time.Minute, 4*d),
		Timeout: pool.Timeout{Floor: d, Ceiling: 4 * d, Quantile: 0.75, Factor: 3, Window: 64, Few: 1},
		Backoff: pool.Pause{First: time.Millisecond, Most: d}, Seed: 1,
	}
}

func silence(string) {}

// wishes returns all request options of a backend.
func wishes() []tensor.RequestOptions {
	halves := task.Form{Halves: true}
	return []tensor.RequestOptions{{Fused: true, Recompute: true, Form: halves}, {}, {Fused: true}, {Recompute: true, Form: halves}}
}

// Tasks are self-contained: another process runs them with only the tasks' data. Its results
// arrive late, out of order, sometimes twice, damaged or never, and are repeated. All networks
// have the same bits: synchronous with and without overlap, and in bounded asynchrony without
// staleness; with stages fused or not, saved values sent or recomputed, in any number of
// parts.
func TestTasksInAnotherProcess(t *testing.T) {
	t.Parallel()
	data := parted(t, generated(t, true))
	all := networks(t)
	var mu sync.Mutex
	var seen tensor.Counts
	t.Cleanup(func() {
		if t.Log(seen); seen.Again == 0 || seen.Dropped == 0 || seen.Damaged == 0 {
			t.Error("the test shows nothing")
		}
	})
	for turn, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 4, all))) {
		c := all[name]
		one, opposite := wishes()[turn/2%4], wishes()[(turn/2+2)%4]
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits more than it computes
			c.Ranks, c.Servers, c.Intervals, c.EvalEvery = 2, 0, 3, 2
			var start sync.Once
			var other *process
			do := func(r *joined) func([]byte) []byte {
				return func(message []byte) []byte {
					start.Do(func() { other = startProcess(t, sentOf(r)) })
					return other.work(message)
				}
			}
			alike := func(what string, c Config, list ...tensor.RequestOptions) {
				want := train(t, c, data)
				for _, w := range list {
					got, n := elsewhere(t, c, data, w, do)
					if !bytes.Equal(got.model, want.model) {
						t.Errorf("%s, %+v: the model is another one", what, w)
					}
					sameLosses(t, what, got.losses(), want.losses(), 0)
					mu.Lock()
					seen = tensor.Counts{Sent: seen.Sent + n.Sent, Again: seen.Again + n.Again, Dropped: seen.Dropped + n.Dropped,
						Damaged: seen.Damaged + n.Damaged}
					mu.Unlock()
				}
			}
			alike("pipe", c, one)
			if hosttest.Sampled(2, turn) {
				alike("pipe", c, opposite)
				c.Mode = "nopipe"
				alike("nopipe", c, one)
				c.Mode = "pipe"
			}
			if hosttest.Sampled(2, turn+1) {
				c.Recompute = true
				alike("recompute", c, wishes()[0])
				c.Recompute = false
				alone := asynchronous(c, 0, 1)
				alone.Ranks, alone.Servers, alone.Epochs = 1, 0, 8
				alike("async", alone, one)
			}
		})
	}
}

// Runs with staleness also end.
func TestStaleTasksElsewhere(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 4, 2, 1, 3, 2
	c = asynchronous(c, 1, 3)
	var start sync.Once
	var other *process
	got, _ := elsewhere(t, c, generated(t, true), wishes()[0], func(r *joined) func([]byte) []byte {
		return func(message []byte) []byte {
			start.Do(func() { other = startProcess(t, sentOf(r)) })
			return other.work(message)
		}
	})
	for e, loss := range got.losses() {
		if math.IsNaN(loss) {
			t.Errorf("the loss of epoch %d is NaN", e+1)
		}
	}
}

// A task that never gets a result ends the run with an error that names it.
func TestTaskWithoutResult(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Epochs = 2
	silent := func([]byte) []byte { return nil }
	backend := func(*joined) tensor.Backend {
		return tensor.NewRemote(newChaos(1, silent), tensor.RequestOptions{}, patient(10*time.Millisecond, 3), silence)
	}
	err := runMembers(c, generated(t, true), IO{Out: io.Discard, Err: io.Discard}, func(r *member) { r.backend = backend }, (*member).train)
	if err == nil || !strings.Contains(err.Error(), "attempt 3") || !strings.Contains(err.Error(), "no result") {
		t.Errorf("error %v", err)
	}
}
