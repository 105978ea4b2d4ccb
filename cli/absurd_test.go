package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/config"
)

// child runs the program by way of a command that takes another one's name and
// arguments as its last.
func child(t *testing.T, by []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, by[0], append(append(by[1:], os.Args[0]), args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "GOGC=100") // make test has a rarer collector
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	failure := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("siafu %s: it hangs", strings.Join(args, " "))
	}
	if failure != nil && cmd.ProcessState == nil {
		t.Fatal(failure)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), err.String()}
}

// cage is a control group that allows its processes little memory.
type cage struct {
	dir   string
	limit int64
	peak  string // the file that tells the most that was taken
}

// newCage makes a group below this process's own, as root can where groups are
// not taken away.
func newCage(t *testing.T, limit int64) *cage {
	t.Helper()
	for _, v := range []struct{ mount, limit, peak string }{
		{"/sys/fs/cgroup/memory" + ownGroup("memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup" + ownGroup(""), "memory.max", "memory.peak"},
		{"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		if _, err := os.Stat(filepath.Join(v.mount, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(v.mount, fmt.Sprint("siafu-test-", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, v.limit), []byte(fmt.Sprint(limit)), 0o644) == nil {
			return &cage{dir, limit, filepath.Join(dir, v.peak)}
		}
	}
	t.Skip("no control group can be made here that limits memory")
	return nil
}

// ownGroup returns this process's control group in the hierarchy of a controller, or in that of
// version 2 if controller is empty.
func ownGroup(controller string) string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && f[1] == controller {
			return f[2]
		}
	}
	return ""
}

// run returns the program in the cage.
func (c *cage) run(t *testing.T, args ...string) result {
	t.Helper()
	return child(t, []string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, c.dir}, args...)
}

// refuses runs a command with an impossible request: it must end on its own, with an error and
// a remedy, and use almost no resources.
func (c *cage) refuses(t *testing.T, args ...string) {
	t.Helper()
	_ = os.WriteFile(c.peak, []byte("0"), 0o644) // resets the peak if the kernel allows it
	r := c.run(t, args...)
	c.civil(t, r, args)
	if r.code == 0 {
		t.Errorf("siafu %s: it was let in", strings.Join(args, " "))
	}
	text, _ := os.ReadFile(c.peak)
	if taken, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && taken > c.limit/2 {
		t.Errorf("siafu %s: it took %d bytes and was refused", strings.Join(args, " "), taken)
	}
}

// civil checks that a command ended properly.
func (c *cage) civil(t *testing.T, r result, args []string) {
	t.Helper()
	known := map[int]bool{0: true, 1: true, 64: true, 78: true}
	if !known[r.code] || r.code != 0 && !strings.Contains(r.err, "; ") ||
		strings.Contains(r.err, "panic") || strings.Contains(r.err, "goroutine") || strings.Contains(r.err, "internal error") {
		t.Errorf("siafu %s: exit %d\n%.2000s", strings.Join(args, " "), r.code, r.err)
	}
}

// Impossible requests are refused before allocation, in every mode and role: a control group
// would kill the process that allocates first.
func TestMemoryIsAskedForFirst(t *testing.T) {
	c, data, wide := newCage(t, 300<<20), small(t), manyClasses(t)
	run := filepath.Join(t.TempDir(), "run")
	must(t, "train", data, "--epochs", "1", "--out", run)
	for name, tc := range map[string]struct{ data, flags string }{
		"wide":                     {data, "--hidden 2000000000"},
		"wide and deep":            {data, "--hidden 2000000000 --layers 3"},
		"wraps to nothing":         {data, "--hidden 4294967296 --layers 4"},
		"weights alone":            {data, "--hidden 9000 --layers 3"},
		"activations alone":        {data, "--hidden 300000 --epochs 1"},
		"weights of many classes":  {wide, "--model gin"},
		"many classes, sage":       {wide, "--model sage --hidden 9000"},
		"on servers":               {data, "--ranks 2 --servers 1 --hidden 9000 --layers 3"},
		"one rank could":           {data, "--ranks 4 --servers 0 --hidden 2500 --layers 3"},
		"stage after stage":        {data, "--mode nopipe --hidden 9000 --layers 3"},
		"asynchronous":             {data, "--ranks 2 --mode async --hidden 9000 --layers 3"},
		"asynchronous, no server":  {data, "--ranks 2 --servers 0 --mode async --hidden 9000 --layers 3"},
		"heads":                    {data, "--model gat --heads 1000000000"},
		"heads beyond numbers":     {data, "--model gat --heads 9223372036854775807 --hidden 3"},
		"output heads":             {data, "--model gat --heads output=1000000000"},
		"layers":                   {data, "--layers 1000000"},
		"as many layers as can be": {data, "--layers 10000 --hidden 5000"},
		"threads":                  {data, "--threads 1000000000"},
		"ranks":                    {data, "--ranks 1000000000 --servers 0"},
		"to start from a file":     {data, "--hidden 2000000000 --init " + filepath.Join(run, "model.safetensors")},
		"to go on":                 {data, "--hidden 2000000000 --resume " + run},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			c.refuses(t, append([]string{"train", tc.data, "--out", out}, strings.Fields(tc.flags)...)...)
		})
	}
	for _, flags := range []string{"--ranks 1000000000", "--threads 1000000000"} {
		c.refuses(t, append([]string{"predict", run, data}, strings.Fields(flags)...)...)
	}
	for _, flags := range []string{"--hidden 2000000000", "--hidden 2000000000 --layers 3", "--model gat --heads 9223372036854775807",
		"--ranks 1000000000 --servers 0", "--layers 1000000"} {
		c.refuses(t, append([]string{"plan", data, "--partitioner", "hash", "--codec", "int4"}, strings.Fields(flags)...)...)
	}
	// A plan for a larger machine is made on a small one.
	args := []string{"plan", data, "--partitioner", "hash", "--codec", "int4", "--hidden", "2000000", "--memory", "900GB"}
	if r := c.run(t, args...); r.code != 0 || !strings.Contains(r.out, "not timed") {
		t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.err)
	}
}

// A plan counts arrays that its own process has no addresses for.
func TestPlanBeyondAddresses(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil || mapped.UnderRace {
		t.Skip(err)
	}
	r := child(t, []string{"prlimit", "--as=6000000000"}, "plan", small(t), "--partitioner", "hash", "--codec", "int4", "--hidden",
		"20000000", "--memory", "900TB")
	if r.code != 0 || !strings.Contains(r.out, "not timed") || strings.Contains(r.out, "9223372036") {
		t.Errorf("exit %d\n%s\n%s", r.code, r.out, r.err)
	}
}

// manyClasses returns a dataset of 70000 classes, most of them without a vertex.
func manyClasses(t *testing.T) string {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir()}
	s.data, s.raw = s.path("data"), s.path("raw")
	s.writeRaw()
	s.replace(s.path("raw", "meta.json"), `"classes":2`, `"classes":70000`)
	must(t, "import", s.raw, s.data, "--from", "raw")
	return s.data
}

// Every number that a run can be told may be absurd.
func TestAbsurdNumbers(t *testing.T) {
	c, data := newCage(t, 300<<20), small(t)
	i := -1
	for f := range new(config.Config).Options() {
		i++
		name, kind := f.Tag.Get("toml"), f.Type.Kind()
		flag, number := "--"+name, kind == reflect.Int || kind == reflect.Uint64 || kind == reflect.Float64
		if !number || name == "lr" { // which diverges, as it should
			continue
		}
		t.Run(flag, func(t *testing.T) {
			for v, value := range []string{"1000000007", "9223372036854775807"} {
				for m, mode := range []string{"", "--mode=async --ranks=3 --force --model=gat"} {
					if !hosttest.Sampled(2, v, m, i) {
						continue
					}
					out := filepath.Join(t.TempDir(), "run")
					args := []string{"train", data, "--out", out, "--target-acc", "1e-9", "--quiet", flag + "=" + value}
					args = append(args, strings.Fields(mode)...)
					c.civil(t, c.run(t, args...), args)
				}
			}
		})
	}
}

// A run whose allocation fails although memory is available ends on all ranks with the
// requested size.
func TestSystemGivesNoMemory(t *testing.T) {
	data := small(t)
	if _, err := exec.LookPath("prlimit"); err != nil || mapped.UnderRace {
		t.Skip("there is no prlimit here")
	}
	run := filepath.Join(t.TempDir(), "run")
	for _, flags := range []string{"--ranks 1", "--ranks 4 --servers 0", "--ranks 4 --servers 2",
		"--ranks 3 --mode async", "--ranks 2 --model gat"} {
		t.Run(flags, func(t *testing.T) {
			args := append([]string{"train", data, "--force-memory", "--epochs", "2", "--hidden", "1200000", "--force", "--out", run},
				strings.Fields(flags)...)
			// Servers keep messages on Go's heap, which may be the first to find no address.
			// That ends the process, and happens by chance; arrays come first as a rule.
			r := child(t, []string{"prlimit", "--as=3000000000"}, args...)
			for range 11 {
				if strings.Contains(r.err, "runtime: out of memory") && strings.Contains(flags, "--servers 2") {
					r = child(t, []string{"prlimit", "--as=3000000000"}, args...)
				}
			}
			if r.code != 78 || !strings.Contains(r.err, "cannot allocate an array of") || strings.Contains(r.err, "goroutine") {
				t.Errorf("exit %d\n%.2000s", r.code, r.err)
			}
		})
	}
}
