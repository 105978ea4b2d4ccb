package launch

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/internal/screen"
	"siafu/internal/signals"
	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
)

// Options say what to run and how: the flags of "siafu launch", and what the
// command makes of others. Run takes 0 ranks as a matter of the launcher.
type Options struct {
	Ranks    int           `short:"n" default:"0" help:"Number of ranks. 0: Slurm's tasks in a batch job, else the slots of the hostfile, else this machine's processors."`
	Restarts int           `default:"3" help:"Maximum restarts after a crash, from the last checkpoint."`
	Backoff  time.Duration `default:"5s" help:"Wait before the first restart; it doubles with each restart."`
	Hostfile string        `placeholder:"FILE" help:"File of hosts and their slots, for mpirun."`
	Launcher string        `default:"mpirun" enum:"mpirun,srun" help:"Launcher: mpirun, or srun inside a Slurm job."` // or InProcess

	Wrap    []string `kong:"-"` // command in front of the program, as a container's
	Program string   `kong:"-"` // siafu, as the ranks find it
	Self    string   `kong:"-"` // siafu, as this process finds it
	Args    []string `kong:"-"` // of siafu, for each attempt
	Env     []string `kong:"-"` // "NAME=value" for the ranks, beside what this process has

	Linger time.Duration `kong:"-"` // for other ranks to end after rank 0; 0 is a minute

	Out io.Writer                        `kong:"-"` // of the ranks, passed on as they come
	Err io.Writer                        `kong:"-"`
	Log func(format string, args ...any) `kong:"-"`
}

// Ended is the error of a run that did not end with 0. The ranks have said why.
type Ended struct{ Code int }

func (e *Ended) Error() string { return fmt.Sprintf("launch: ended with exit code %d", e.Code) }

// Reported tells that nothing is left to say.
func (e *Ended) Reported() bool { return true }

const (
	upPoll   = 20 * time.Millisecond  // between two looks for a rank that came up
	calmPoll = 500 * time.Millisecond // then, for the end of rank 0
	upLimit  = 10 * time.Second       // then signals are handed on all the same
	killWait = 5 * time.Second        // for a launcher to kill its ranks
	linger   = time.Minute            // for other ranks to end after rank 0
	drain    = 2 * time.Second        // for what ranks have said, after their launcher
)

// Run runs the ranks to their end, with restarts. Signals of this process go
// to them: SIGUSR1 as it is; SIGINT, SIGTERM and SIGHUP as the request to
// finish the epoch, save and end; a second SIGINT kills. The error is nil, a
// fault of this host, or *Ended.
func Run(o Options) error {
	if l, launched := world.Launched(); launched {
		return fault.New(fault.Usage, "launch", "", "it already runs as a rank of %s", l.Name).Then("start it without %s", l.Name)
	}
	if err := o.find(); err != nil {
		return err
	}
	Release(func(line string) { o.Log("%s", line) })
	dir, err := scratch.Make(sessions())
	if err != nil {
		return fault.System("launch", os.TempDir(), err)
	}
	defer dir.Close()
	defer mpi.Release(func(string) {}) // of our own ranks, where mpirun has killed them
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, signals.Signals()...)
	defer signal.Stop(caught)
	return o.supervise(dir, caught)
}

// sessions returns the name beside which launchers keep their hidden folders (see
// package scratch), each with a status file an attempt and the session of Open
// MPI.
func sessions() string { return filepath.Join(os.TempDir(), "siafu") }

// Release removes what launchers and ranks of this user on this host have left
// when they were killed, and says so, in a line each. It touches nothing that it
// can't prove to be theirs: see package scratch.
func Release(say func(line string)) {
	for _, path := range scratch.Sweep(sessions(), nil) {
		say(fmt.Sprintf("removed path=%s: the session of a launcher that was killed", path))
	}
	mpi.Release(say)
}

// supervise is the loop over attempts.
func (o *Options) supervise(dir *scratch.Folder, signals <-chan os.Signal) error {
	for n := 0; ; n++ {
		end, err := o.attempt(dir, n, signals)
		if err != nil {
			return err
		}
		wait, again := o.again(end, n)
		if again {
			o.Log("the ranks ended with %s; restart %d of %d in %v", end.describe(), n+1, o.Restarts, wait)
			again = o.pause(wait, signals)
			end.stopped = !again
		}
		if !again {
			return o.conclude(end, n)
		}
	}
}

// conclude says what only the launcher knows, and makes the error.
func (o *Options) conclude(end outcome, restarts int) error {
	code := end.exitCode()
	switch {
	case code == 0:
		return nil
	case code == fault.Stopped.ExitCode() && code != end.code:
		o.Log("the ranks were ended by %s before they could save: run again to continue from the last checkpoint", describe(end.code))
	case restarts > 0 && !end.stopped && restarts == o.Restarts:
		o.Log("giving up after %d restarts: the ranks ended with %s", restarts, end.describe())
	case end.cause != "" && !end.killed:
		o.Log("the ranks ended with %s", end.describe())
	}
	return &Ended{code}
}

// pause waits before a restart; false if a signal asked for the end.
func (o *Options) pause(wait time.Duration, signals <-chan os.Signal) bool {
	over := time.After(wait)
	for {
		select {
		case <-over:
			return true
		case s := <-signals:
			if s != syscall.SIGUSR1 {
				return false
			}
		}
	}
}

// attempt runs the ranks once.
func (o *Options) attempt(dir *scratch.Folder, n int, signals <-chan os.Signal) (outcome, error) {
	path := filepath.Join(dir.Path, fmt.Sprintf("status-%d", n))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return outcome{}, fault.System("launch", path, err)
	}
	p := o.here(dir.Path)
	cmd := o.process(p, path)
	dir.Share(cmd) // mpirun may outlive us
	seen := newWitness(o.Err)
	if o.Launcher != InProcess { // one process has its error last anyway
		cmd.Stderr = seen
		cmd.WaitDelay = drain
	}
	defer Bind(cmd)()
	if err := cmd.Start(); err != nil {
		return outcome{}, fault.System("launch", cmd.Path, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says it all
		seen.flush()
		close(exited)
	}()
	w := &watcher{child: cmd.Process, path: path, linger: cmp.Or(o.Linger, linger), log: o.Log}
	w.until(exited, signals)
	end := outcome{code: exitCode(cmd.ProcessState), stopped: w.stopping, killed: w.ints > 1}
	s := readStatus(path)
	end.cameUp, end.lasts = s.ready || !p.local, s.lasts
	end.cause = seen.cause(s.err)
	if s.code > 0 {
		end.code = s.code
	}
	return end, nil
}

// process returns the command of an attempt. If this process is killed the launcher
// ends its ranks.
func (o *Options) process(p place, status string) *exec.Cmd {
	line := o.command(p, o.Args)
	if o.Launcher != InProcess {
		line = append([]string{o.Self, ShieldCommand, "--parent", strconv.Itoa(os.Getpid())}, line...)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(o.environ(), StatusVariable+"="+status)
	if o.Launcher == InProcess { // it sees the terminal itself
		cmd.Stdout, cmd.Stderr = screen.Behind(o.Out), screen.Behind(o.Err)
		return cmd
	}
	if width := screen.Width(o.Out, false); width > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", screen.Variable, width))
	}
	cmd.Stdout, cmd.Stderr = o.Out, o.Err
	return cmd
}

// environ returns the environment of the ranks.
func (o *Options) environ() []string { return append(os.Environ(), o.Env...) }

// exitCode is what a shell would say.
func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// describe returns an end in words, with what is known of its cause.
func (end outcome) describe() string {
	if end.cause == "" {
		return describe(end.code)
	}
	return describe(end.code) + ": " + end.cause
}

// describe returns a code in words.
func describe(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("signal %d (%v)", code-128, syscall.Signal(code-128))
	}
	return fmt.Sprintf("exit code %d", code)
}
