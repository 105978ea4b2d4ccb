package spot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"siafu/bench/trials"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/ranks/plan"
	"siafu/ranks/runfolder"
)

// PauseOptions are the options of the parts pause and pipelines.
type PauseOptions struct {
	Data   string `placeholder:"DATA" help:"Dataset folder of the parts pause and pipelines. Empty: a generated graph."`
	Losses int    `default:"5" help:"Lost ranks of each way to continue, in the parts pause and pipelines, and runs without losses."`
	Ranks  int    `default:"4" help:"Ranks of the part pause and stages of the part pipelines, each on its own host."`
	Epochs int    `default:"40" help:"Epochs of each run of the parts pause and pipelines."`
	Rate   string `default:"1gbit" help:"Link rate of the hosts of the parts pause and pipelines."`
	Local  bool   `help:"Run the ranks of the parts pause and pipelines on this host, instead of hosts with links of that rate."`
	Train  string `placeholder:"FLAGS" help:"Other flags of train in the parts pause and pipelines."`
}

// way is a way to continue after a loss.
type way struct {
	name          string
	launch, train []string
	begun         string // output when training begins again
}

// ways returns the ways that the part pause compares.
func ways() []way {
	const restarted = "\nresume epoch="
	return []way{
		{"--survive", nil, []string{"--survive"}, "\nview number=1 "},
		{"restart, checkpoint every epoch", []string{"--backoff", "100ms"}, []string{"--checkpoint-every", "1e"}, restarted},
		{"restart, defaults", nil, nil, "\nsiafu version="},
	}
}

// pauses measures the time that a run loses with a rank.
type pauses struct {
	PauseOptions
	network        []string // flags of train in all runs
	site           *trials.Site
	data, hostfile string
	rng            *rand.Rand
}

// pause is the cost of a loss.
type pause struct {
	begin, epoch, repeated float64
	update                 float64 // seconds until the epoch has ended in which the rank was lost
	others                 int     // ranks that were lost as a consequence
}

// spread returns the median, the minimum and the maximum of a time.
func spread(list []pause, of func(pause) float64) (median float64, text string) {
	var x []float64
	for _, one := range list {
		x = append(x, of(one))
	}
	median = runfolder.Median(x)
	return median, fmt.Sprintf("%.2f (%.2f to %.2f)", median, slices.Min(x), slices.Max(x))
}

// pause writes medians over the losses of random ranks at random moments, and the overhead without
// losses.
func (o Options) pause(t *trials.Sheet) {
	network := []string{"--parts", strconv.Itoa(2 * o.Ranks), "--recompute-ghosts", "none"}
	t.Fail(o.measure(o.Seed, network, func(ctx context.Context, p *pauses) error { return p.write(ctx, t) }))
}

// measure makes the dataset and the hosts for trainings with these flags, and removes them in the end.
func (o PauseOptions) measure(seed uint64, network []string, do func(context.Context, *pauses) error) error {
	if err := trials.RequireMPI(op); err != nil {
		return err
	}
	return trials.OnSite(context.Background(), op, func(ctx context.Context, site *trials.Site) error {
		p := &pauses{PauseOptions: o, network: network, site: site, rng: rand.New(rand.NewPCG(seed, 1))}
		if err := p.open(); err != nil {
			return err
		}
		return do(ctx, p)
	})
}

func (p *pauses) write(ctx context.Context, t *trials.Sheet) error {
	list := ways()
	measured := make([][]pause, len(list))
	var ratios []float64
	for range p.Losses { // interleaved, so that other load on the machine affects all alike
		for k, w := range list {
			one, err := p.lose(ctx, w)
			if err != nil {
				return err
			}
			measured[k] = append(measured[k], one)
		}
		with, err := p.epoch(ctx, "--survive")
		if err != nil {
			return err
		}
		without, err := p.epoch(ctx)
		if err != nil {
			return err
		}
		ratios = append(ratios, with/without)
	}
	for k, w := range list {
		others := 0
		for _, one := range measured[k] {
			others += one.others
		}
		column := func(of func(pause) float64) string {
			_, text := spread(measured[k], of)
			return text
		}
		t.Add(w.name, p.Losses, column(func(p pause) float64 { return p.begin }),
			column(func(p pause) float64 { return p.epoch }), column(func(p pause) float64 { return p.repeated }), others)
	}
	fmt.Fprintf(t,
		"epoch time with --survive and without losses, relative to that without --survive: %.3f, the median of %d interleaved pairs\n",
		runfolder.Median(ratios), p.Losses)
	return nil
}

func (p *pauses) open() (err error) {
	if p.Losses < 1 || p.Ranks < 3 || p.Epochs < 10 {
		return fault.New(fault.Usage, op, "", "--losses=%d --ranks=%d --epochs=%d", p.Losses, p.Ranks, p.Epochs).
			Then("set 1 loss, 3 ranks and 10 epochs or more")
	}
	rate, err := plan.Bandwidth(p.Rate)
	if err != nil {
		return err
	}
	if p.data = p.Data; p.data == "" {
		p.data = p.site.Path("data")
		o := generate.Options{Vertices: 20_000, Edges: 400_000, Features: 64, Classes: 8, Seed: 1}
		if _, err := generate.Write(p.data, o, false); err != nil {
			return err
		}
	}
	if p.Local {
		return nil
	}
	if _, err = p.site.Link(p.Ranks, rate); err == nil {
		p.hostfile, err = p.site.Hosts.Hostfile(1)
	}
	return err
}

// training is a run of "siafu launch".
type training struct {
	cmd    *exec.Cmd
	id     string // of the launch
	out    string // run folder
	ended  chan error
	output transcript
}

// transcript is output that can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

var lostRank = regexp.MustCompile(`(?m)^siafu: rank \d+ on \S+ is lost$`)

func (t *transcript) lost() int {
	lines := lostRank.FindAllString(t.String(), -1)
	slices.Sort(lines)
	return len(slices.Compact(lines))
}

func (p *pauses) start(ctx context.Context, launch, train []string) (*training, error) {
	r := &training{id: inventory.NewID(), out: p.site.Path("run"), ended: make(chan error, 1)}
	if err := os.RemoveAll(r.out); err != nil {
		return nil, fault.System(op, r.out, err)
	}
	line := append([]string{"launch", "-n", strconv.Itoa(p.Ranks)}, launch...)
	if p.site.Hosts != nil {
		line = append(line, "--hostfile", p.hostfile)
	}
	line = append(line, "train", p.data, "--parts-dir", p.site.Path("parts"),
		"--epochs", strconv.Itoa(p.Epochs), "--eval-every", "0", "--threads", "1", "--out", r.out)
	line = append(append(append(line, p.network...), strings.Fields(p.Train)...), train...)
	r.cmd = exec.CommandContext(ctx, p.site.Program, line...)
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(syscall.SIGTERM) }
	r.cmd.WaitDelay = time.Minute
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	r.cmd.Env = append(os.Environ(), runfolder.LaunchVariable+"="+r.id)
	if p.site.Hosts != nil {
		r.cmd.Env = append(r.cmd.Env, p.site.Hosts.Environment()...)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fault.System(op, p.site.Program, err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	return r, nil
}

func (r *training) finish() error {
	if err := <-r.ended; err != nil {
		return r.failed(err)
	}
	return nil
}

func (r *training) failed(err error) error {
	return fault.New(fault.Runtime, op, "", "a training failed (%v):\n%s", err, &r.output)
}

// poll is the resolution of measured times.
const poll = 2 * time.Millisecond

// until polls until done, or the end of the run.
func (r *training) until(done func() bool) error {
	for !done() {
		select {
		case err := <-r.ended:
			return r.failed(cmp.Or(err, errors.New("it has ended before the measurement")))
		case <-time.After(poll):
		}
	}
	return nil
}

// epochs returns the number of the last epoch in metrics.jsonl and the number of bytes.
func (r *training) epochs() (last, bytes int) {
	lines, last, err := runfolder.LinesUpTo(r.out, 1<<30)
	if err != nil {
		return 0, 0
	}
	return last, int(lines.Bytes)
}

// lose measures the loss of a random rank at a random moment of a random epoch in the second quarter of
// a run.
func (p *pauses) lose(ctx context.Context, w way) (one pause, err error) {
	r, err := p.start(ctx, w.launch, w.train)
	if err != nil {
		return one, err
	}
	victim, target := p.rng.IntN(p.Ranks), p.Epochs/4+p.rng.IntN(p.Epochs/4)
	var last int
	began := time.Now()
	if err := r.until(func() bool {
		was := last
		if last, _ = r.epochs(); last < target && last > was {
			began = time.Now()
		}
		return last >= target
	}); err != nil {
		return one, err
	}
	time.Sleep(time.Duration(p.rng.Float64() * float64(time.Since(began)))) // about the time of an epoch
	headers := strings.Count(r.output.String(), w.begun)
	killed := time.Now()
	if n := killRank(r.id, victim); n == 0 {
		return one, r.failed(fmt.Errorf("rank %d is not found", victim))
	}
	before, _ := r.epochs()
	if err := r.until(func() bool { return strings.Count(r.output.String(), w.begun) > headers }); err != nil {
		return one, err
	}
	one.begin = time.Since(killed).Seconds()
	first, size := r.epochs()
	if err := r.until(func() bool {
		now, bytes := r.epochs()
		size = min(size, bytes) // the file is truncated to the epoch that the run continues from
		first = now
		return bytes > size
	}); err != nil {
		return one, err
	}
	one.epoch, one.repeated = time.Since(killed).Seconds(), float64(before-first+1)
	if err := r.until(func() bool {
		now, _ := r.epochs()
		return now > before
	}); err != nil {
		return one, err
	}
	one.update = time.Since(killed).Seconds()
	err = r.finish()
	one.others = max(r.output.lost()-1, 0)
	return one, err
}

// killRank kills a rank of a launch, and returns the number of killed processes.
func killRank(id string, rank int) (killed int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte(runfolder.LaunchVariable+"="+id+"\x00")) ||
			!bytes.Contains(environ, fmt.Appendf(nil, "OMPI_COMM_WORLD_RANK=%d\x00", rank)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// epoch returns the median epoch time of a run without losses, in seconds.
func (p *pauses) epoch(ctx context.Context, train ...string) (float64, error) {
	r, err := p.start(ctx, nil, train)
	if err == nil {
		err = r.finish()
	}
	if err != nil {
		return 0, err
	}
	run, err := runfolder.Read(r.out)
	if err != nil {
		return 0, err
	}
	return run.Summary.EpochSecondsMedian, nil
}
