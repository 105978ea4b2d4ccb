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

// Options has the flags of "siafu launch", and values that the command derives from other flags. If
// Ranks is 0, the launcher chooses the number of ranks.
type Options struct {
	Ranks    int           `short:"n" default:"0" help:"Number of ranks. 0: the tasks or slots of a batch job, else the slots of the hostfile, else this machine's processors."`
	Restarts int           `default:"3" help:"Maximum restarts after a crash, from the last checkpoint."`
	Backoff  time.Duration `default:"5s" help:"Wait before the first restart; it doubles with each restart."`
	Hostfile string        `placeholder:"FILE" help:"File of hosts and their slots, for mpirun."`
	Launcher string        `default:"mpirun" placeholder:"PROGRAM" help:"Launcher: mpirun, srun inside a Slurm job, or another launcher of Open MPI or MPICH, such as mpiexec.hydra."` // or InProcess

	Wrap    []string `kong:"-"` // command in front of the program, such as a container's
	Program string   `kong:"-"` // path of siafu for the ranks
	Self    string   `kong:"-"` // path of siafu for this process
	Args    []string `kong:"-"` // arguments of siafu in each attempt
	Survive bool     `kong:"-"` // ranks continue after the loss of others
	Env     []string `kong:"-"` // additional "NAME=value" for the ranks

	dialect *dialect // of the launcher, nil with InProcess
	agent   string   // path of a program that starts daemons on other hosts; empty: the launcher's default

	Linger time.Duration `kong:"-"` // time for other ranks to end after rank 0; 0: one minute

	Out io.Writer                        `kong:"-"` // receives the output of the ranks
	Err io.Writer                        `kong:"-"`
	Log func(format string, args ...any) `kong:"-"`
}

// Ended is the error of a run with another exit code than 0. The ranks have printed the reason.
type Ended struct{ Code int }

func (e *Ended) Error() string { return fmt.Sprintf("launch: ended with exit code %d", e.Code) }

// Reported reports that the error is already printed.
func (e *Ended) Reported() bool { return true }

const (
	upPoll   = 20 * time.Millisecond  // interval of checks whether a rank is ready
	calmPoll = 500 * time.Millisecond // interval of later checks whether rank 0 has ended
	upLimit  = 10 * time.Second       // time after which signals are forwarded even if no rank is ready
	killWait = 5 * time.Second        // time for a launcher to kill its ranks
	linger   = time.Minute            // time for other ranks to end after rank 0
	drain    = 2 * time.Second        // time to read the ranks' output after the launcher's end

	stopLinger  = 5 * time.Second // linger after a request to stop
	forwardTime = 2 * time.Second // time for mpirun to forward a signal

	survivorLinger = 5 * time.Second // linger of ranks that continue after the loss of others
)

// Run runs the ranks until they end, with restarts. It forwards the signals of this process:
// SIGUSR1 unchanged; SIGINT, SIGTERM and SIGHUP as a request to finish the epoch, save and end. A
// second SIGINT kills the ranks. The error is nil, a fault of this host, or *Ended.
func Run(o Options) error {
	if l, launched := world.Launched(); launched {
		return fault.New(fault.Usage, "launch", "", "it already runs as a rank of %s", l.Name).Then("start it without %s", l.Name)
	}
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, signals.Signals()...)
	defer signal.Stop(caught)
	if err := o.find(); err != nil {
		return err
	}
	if o.Survive && o.dialect == &prrte && !o.here("").local {
		o.Log("Open MPI 5 survives the loss of a rank, but not of a host: the run is then restarted from its checkpoint")
	}
	Release(func(line string) { o.Log("%s", line) })
	dir, err := scratch.Make(sessions())
	if err != nil {
		return fault.System("launch", os.TempDir(), err)
	}
	defer dir.Close()
	if err := cmp.Or(o.adopt(Allocated(os.Getenv), dir.Path), o.translate(dir.Path)); err != nil {
		return err
	}
	defer mpi.Release(func(string) {}) // removes the memory of ranks that mpirun has killed
	return o.supervise(dir, o.released(caught))
}

// released passes signals on, after output that nobody reads has been released: it must not hold up a
// signal.
func (o *Options) released(caught <-chan os.Signal) <-chan os.Signal {
	passed := make(chan os.Signal, cap(caught))
	go func() {
		for s := range caught {
			screen.Release(o.Out)
			screen.Release(o.Err)
			passed <- s
		}
	}()
	return passed
}

// sessions returns the final name of launchers' hidden folders (see package scratch). Such a folder
// has a status file for each attempt, and the session of Open MPI.
func sessions() string { return filepath.Join(os.TempDir(), "siafu") }

// Release removes the leftovers of this user's killed launchers and ranks on this host, and reports
// each in a line. It removes only files of siafu: see package scratch.
func Release(say func(line string)) {
	for _, path := range scratch.Sweep(sessions(), nil) {
		say(fmt.Sprintf("removed path=%s: the session of a launcher that was killed", path))
	}
	mpi.Release(say)
}

// supervise runs attempts until one is the last.
func (o *Options) supervise(dir *scratch.Folder, signals <-chan os.Signal) error {
	for n := 0; ; n++ {
		end, err := o.attempt(dir, n, signals)
		if err != nil {
			return err
		}
		wait, again := o.again(end, n)
		if again {
			o.Log("the ranks ended with %s; restart %d of %d in %v", end.describe(), n+1, o.Restarts, wait)
			again = pause(wait, signals)
			end.stopped = !again
		}
		if !again {
			return o.conclude(end, n)
		}
	}
}

// conclude returns the error of the run, and logs what only the launcher knows.
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

// pause waits before a restart. It returns false if a signal requests the end.
func pause(wait time.Duration, signals <-chan os.Signal) bool {
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
	dir.Share(cmd) // mpirun may outlive this process
	seen := newWitness(o.Err)
	seen.survives = o.Survive
	if o.Launcher != InProcess { // a single process prints its error last
		cmd.Stderr = seen
		cmd.WaitDelay = drain
	}
	defer Bind(cmd)()
	if err := cmd.Start(); err != nil {
		return outcome{}, fault.System("launch", cmd.Path, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		seen.flush()
		close(exited)
	}()
	w := &watcher{child: cmd.Process, path: path, stop: o.stopSignal(), survives: o.Survive, log: o.Log}
	w.linger = cmp.Or(o.Linger, o.patience())
	switch {
	case o.dialect == nil:
	case o.dialect.reports:
		w.forwarded = func() int { return int(seen.forwarded.Load()) }
	case o.dialect == &prrte: // which reports nothing, and starts the ranks of this host itself
		w.forwarded = func() int {
			if stopped(cmd.Process.Pid) {
				return 0
			}
			return w.confirmed + len(w.sent)
		}
	}
	w.until(exited, signals)
	end := outcome{code: o.dialect.shellCode(exitCode(cmd.ProcessState)), stopped: w.stopping, killed: w.ints > 1}
	s := readStatus(path)
	if seen.alien != "" && !s.ready {
		return end, fault.New(fault.Config, "launch", o.Hostfile, "the host %s is unknown", seen.alien).
			Then("correct the name, or give it an address in DNS, /etc/hosts or the configuration of ssh")
	}
	end.cameUp, end.lasts = s.ready || !p.local, s.lasts
	end.cause = seen.cause(s.err)
	switch {
	case s.code > 0 || o.Survive && s.code == 0: // lost ranks have other exit codes
		end.code = s.code
	case o.Survive && s.other >= 0: // a rank that has joined led the run to its end
		end.code = s.other
	case o.Survive && end.code == 0: // no rank is left
		end.code = 128 + int(syscall.SIGKILL)
	}
	return end, nil
}

// stopSignal returns the signal that requests ranks to stop.
func (o *Options) stopSignal() syscall.Signal {
	if o.dialect == nil {
		return syscall.SIGUSR2
	}
	return o.dialect.stop
}

// patience returns the time for other ranks to end after the run. After the loss of a host, mpirun
// would wait for it for ever.
func (o *Options) patience() time.Duration {
	if o.Survive {
		return survivorLinger
	}
	return linger
}

// process returns the command of an attempt. If this process is killed, the launcher ends its
// ranks.
func (o *Options) process(p place, status string) *exec.Cmd {
	line := o.command(p, o.Args)
	if o.Launcher != InProcess {
		shield := []string{o.Self, ShieldCommand, "--parent", strconv.Itoa(os.Getpid())}
		if !o.dialect.shielded {
			shield = append(shield, "--exposed")
		}
		line = append(shield, line...)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(o.environ(), StatusVariable+"="+status)
	if o.dialect == &hydra { // in a Slurm job, srun starts its daemons, which are not ranks
		cmd.Env = append(cmd.Env, "SLURM_MPI_TYPE=none")
	}
	if o.Launcher == InProcess { // the child uses the terminal itself
		cmd.Stdout, cmd.Stderr = screen.Behind(o.Out), screen.Behind(o.Err)
		return cmd
	}
	cmd.Stdout = screen.Behind(o.Out)
	if width := screen.Width(o.Out, false); width > 0 { // this process removes the progress line
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", screen.Variable, width))
		cmd.Stdout = o.Out
	}
	return cmd
}

// environ returns the environment of the ranks.
func (o *Options) environ() []string { return append(os.Environ(), o.Env...) }

// exitCode returns the exit code that a shell would report.
func exitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// describe describes an outcome, with its cause if known.
func (end outcome) describe() string {
	if end.cause == "" {
		return describe(end.code)
	}
	return describe(end.code) + ": " + end.cause
}

// describe describes an exit code.
func describe(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("signal %d (%v)", code-128, syscall.Signal(code-128))
	}
	return fmt.Sprintf("exit code %d", code)
}
