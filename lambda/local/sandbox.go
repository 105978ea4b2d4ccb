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
	"strings"
	"sync"
	"syscall"
	"time"

	"siafu/lambda"
)

type sandbox struct {
	token   string
	process *os.Process
	work    chan *invocation // the response to the next call of the Runtime API; capacity 1
	took    chan struct{}    // signals that it has received an invocation; capacity 1
	ended   chan struct{}    // closed when the process has ended
	output  *log
	began   time.Time
	delay   time.Duration // of its cold start
	in, out *bucket       // its network; nil, like relay, without a limit
	relay   *http.Server

	relayAddress string // HOST:PORT

	// Guarded by the service's lock:
	current *invocation   // sent to the sandbox and not finished; nil if the sandbox is warm
	why     string        // type of the error for which the service ended it, or ""
	ready   bool          // it has requested work
	stopped bool          // by SIGSTOP
	init    time.Duration // from its start until it was ready; 0 once an invocation is charged for it
	peak    int64         // bytes of memory, at the last measurement
}

type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	fault    lambda.Fault
	done     chan answer // capacity 2: a duplicate has a response too

	// Guarded by the service's lock:
	on    *sandbox // to which it was sent
	taken bool     // received by the sandbox
	since time.Time
}

// start starts a sandbox, under the lock.
func (s *Service) start() (*sandbox, error) {
	b := &sandbox{
		token: rand.Text(), work: make(chan *invocation, 1), took: make(chan struct{}, 1), ended: make(chan struct{}), output: &log{},
		began: time.Now(), delay: s.o.Limits.cold(s.o.Faults.Seed, s.stats.Started),
	}
	if s.o.Limits.Bandwidth {
		if err := s.openRelay(b); err != nil {
			return nil, err
		}
		b.in, b.out = s.newBucket(b), s.newBucket(b)
	}
	cmd := s.command(b)
	s.commands <- cmd
	if err := <-s.begun; err != nil {
		b.closeRelay()
		return nil, err
	}
	b.process = cmd.Process
	s.sandboxes[b.token] = b
	s.stats.Started++
	if s.o.Limits.Memory || s.o.Limits.Processor || s.o.Faults.Straggle > 0 {
		s.processes.Go(func() { s.enforce(b) })
	}
	s.processes.Go(func() {
		err := cmd.Wait()
		close(b.ended)
		b.closeRelay()
		// No process should end by itself: exit status 0 is an error too.
		//lint:ignore ST1005 these are the service's words
		s.remove(b, fmt.Errorf("Runtime exited with error: %w", cmp.Or(err, errors.New("exit status 0"))))
	})
	return b, nil
}

func (s *Service) command(b *sandbox) *exec.Cmd {
	cmd := exec.Command(s.o.Function)
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), b.output, b.output
	cmd.Env = []string{ // none of this process's variables
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(s.url, "http://") + "/" + b.token, "AWS_LAMBDA_FUNCTION_NAME=" + s.o.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_REGION=" + Region, "_HANDLER=bootstrap", "TMPDIR=" + os.TempDir(),
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(s.o.Memory),
	}
	if b.relay != nil {
		cmd.Env = append(cmd.Env, RelayVariable+"="+b.relayAddress)
	}
	// Use a separate process group: the run handles Ctrl-C at the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Child processes of a killed process must not keep its output open forever.
	cmd.WaitDelay = time.Second
	return cmd
}

// startSandboxes starts all sandboxes on one thread. If this program is killed, the kernel kills
// all processes that the thread has started, also stopped ones.
func (s *Service) startSandboxes() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for cmd := range s.commands {
		s.begun <- cmd.Start()
	}
}

func (b *sandbox) kill() { _ = b.process.Kill() } // it may have ended

// end ends a sandbox for a reason, under the lock.
func (b *sandbox) end(why string) {
	b.why = cmp.Or(b.why, why)
	b.kill()
}

// setStopped stops or continues a sandbox, under the lock.
func (b *sandbox) setStopped(stop bool) {
	if stop == b.stopped {
		return
	}
	signal := syscall.SIGCONT
	if stop {
		signal = syscall.SIGSTOP
	}
	b.stopped = stop
	_ = b.process.Signal(signal) // it may have ended
}

// taken returns the invocation that a sandbox has received and not finished, or nil. Called under
// the lock.
func (b *sandbox) taken() *invocation {
	if b.current == nil || !b.current.taken {
		return nil
	}
	return b.current
}

// outOfMemory is the error type of an invocation whose sandbox exceeded its memory.
const outOfMemory = "Runtime.OutOfMemory"

// log stores the end of a process's output.
type log struct {
	mu   sync.Mutex
	text []byte
}

const logBytes = 2 << 10

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - logBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// tail returns the output in brackets, or "" if there is none.
func (l *log) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return ""
	}
	return fmt.Sprintf(" (output: %q)", l.text)
}
