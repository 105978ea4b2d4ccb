package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"siafu/lambda"
)

// sandbox is a process of the function.
type sandbox struct {
	token   string
	process *os.Process
	work    chan *invocation // what the next call of the Runtime API is to bring; room for one
	took    chan struct{}    // it has taken an invocation; room for one
	ended   chan struct{}    // the process has
	said    *log
	began   time.Time
	delay   time.Duration // of its cold start
	in, out *bucket       // its network; nil without a limit, as the relay
	relay   *http.Server

	relayAddress string // HOST:PORT

	// With the service's lock:
	current *invocation   // handed to the sandbox and not finished; nil of a warm one
	why     string        // it was ended by the service: the type of the error
	ready   bool          // it has asked for work
	still   bool          // it has been told to stand still
	init    time.Duration // from its beginning until it was ready, until an invocation is charged for it
	peak    int64         // bytes of memory, as far as anybody has looked
}

// invocation is one that has been taken on.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	fault    lambda.Fault
	done     chan answer // room for one, and for another of a duplicate

	// With the service's lock:
	on    *sandbox // that it was given to
	taken bool     // by that sandbox
	since time.Time
}

// start starts a sandbox, with the lock.
func (s *Service) start() (*sandbox, error) {
	b := &sandbox{
		token: rand.Text(), work: make(chan *invocation, 1), took: make(chan struct{}, 1), ended: make(chan struct{}), said: &log{},
		began: time.Now(), delay: s.o.Limits.cold(s.o.Faults.Seed, s.stats.Started),
	}
	if s.o.Limits.Bandwidth {
		if err := s.openRelay(b); err != nil {
			return nil, err
		}
		b.in, b.out = s.newBucket(b), s.newBucket(b)
	}
	cmd := s.command(b)
	if err := s.startOnThread(cmd); err != nil {
		b.closeRelay()
		return nil, err
	}
	b.process = cmd.Process
	s.sandboxes[b.token] = b
	s.stats.Started++
	if s.governed() {
		s.processes.Go(func() { s.govern(b) })
	}
	s.processes.Go(func() {
		err := cmd.Wait()
		close(b.ended)
		b.closeRelay()
		//lint:ignore ST1005 these are the service's words
		s.bury(b, fmt.Errorf("Runtime exited with error: %w", orNone(err)))
	})
	return b, nil
}

// command is that of a sandbox.
func (s *Service) command(b *sandbox) *exec.Cmd {
	cmd := exec.Command(s.o.Function)
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), b.said, b.said
	cmd.Env = []string{ // and nothing of ours
		"AWS_LAMBDA_RUNTIME_API=" + s.runtimeAddress(b), "AWS_LAMBDA_FUNCTION_NAME=" + s.o.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_REGION=" + Region, "_HANDLER=bootstrap", "TMPDIR=" + os.TempDir(),
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(s.o.Memory),
	}
	if b.relay != nil {
		cmd.Env = append(cmd.Env, RelayVariable+"="+b.relayAddress)
	}
	// A group of its own: Ctrl-C at the terminal is the run's to answer.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// What a killed process has started must not keep its output open for ever.
	cmd.WaitDelay = time.Second
	return cmd
}

// startOnThread has the thread of sandboxes start one.
func (s *Service) startOnThread(cmd *exec.Cmd) error {
	s.commands <- cmd
	return <-s.begun
}

// thread starts all sandboxes. Should this program be killed, the kernel ends them with
// the thread that has started them: one that stands still could not do so by itself.
func (s *Service) thread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for cmd := range s.commands {
		s.begun <- cmd.Start()
	}
}

// orNone returns the error of a process that ended, though none was asked to.
func orNone(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (b *sandbox) kill() { _ = b.process.Kill() } // it may have ended

// end ends a sandbox for a reason, with the lock.
func (b *sandbox) end(why string) {
	b.why = cmp.Or(b.why, why)
	b.kill()
}

// stand has a sandbox stand still, or go on, with the lock.
func (b *sandbox) stand(still bool) {
	if still == b.still {
		return
	}
	signal := syscall.SIGCONT
	if still {
		signal = syscall.SIGSTOP
	}
	b.still = still
	_ = b.process.Signal(signal) // it may have ended
}

// taken returns the invocation that a sandbox has taken and not finished, with the lock.
func (b *sandbox) taken() *invocation {
	if b.current == nil || !b.current.taken {
		return nil
	}
	return b.current
}

// outOfMemory is the type of the error of an invocation whose sandbox has had too much.
const outOfMemory = "Runtime.OutOfMemory"

// verdict returns the type of the error of an invocation whose sandbox has ended.
func (b *sandbox) verdict() string { return cmp.Or(b.why, "Runtime.ExitError") }

// log keeps the end of what a process says.
type log struct {
	mu   sync.Mutex
	text []byte
}

const logBytes = 2 << 10

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - logBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// tail is what was said, in brackets, if anything was.
func (l *log) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return ""
	}
	return fmt.Sprintf(" (it said %q)", l.text)
}
