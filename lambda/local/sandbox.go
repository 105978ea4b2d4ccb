package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// sandbox is a process of the function.
type sandbox struct {
	token   string
	process *os.Process
	work    chan *invocation // what the next call of the Runtime API is to bring; room for one
	ended   chan struct{}    // the process has
	said    *log

	// With the service's lock:
	current  *invocation // handed to the sandbox and not finished; nil of a warm one
	timedOut bool
	ready    bool // it has asked for work
}

// invocation is one that has been taken on.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	crash    bool        // the sandbox is to end instead of doing it
	done     chan answer // room for one

	// With the service's lock:
	on    *sandbox // that it was given to
	taken bool     // by that sandbox
}

// start starts a sandbox, with the lock.
func (s *Service) start() (*sandbox, error) {
	b := &sandbox{token: rand.Text(), work: make(chan *invocation, 1), ended: make(chan struct{}), said: &log{}}
	cmd := exec.Command(s.o.Function)
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), b.said, b.said
	cmd.Env = []string{ // and nothing of ours
		"AWS_LAMBDA_RUNTIME_API=" + s.runtimeAddress(b), "AWS_LAMBDA_FUNCTION_NAME=" + s.o.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_REGION=" + Region, "_HANDLER=bootstrap", "TMPDIR=" + os.TempDir(),
	}
	// A group of its own: Ctrl-C at the terminal is the run's to answer.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What a killed process has started must not keep its output open for ever.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.process = cmd.Process
	s.sandboxes[b.token] = b
	s.stats.Started++
	s.processes.Add(1)
	go func() {
		defer s.processes.Done()
		err := cmd.Wait()
		close(b.ended)
		s.bury(b, fmt.Errorf("Runtime exited with error: %w", orNone(err)))
	}()
	return b, nil
}

// orNone is the error of a process that ended, though none was asked to.
func orNone(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (b *sandbox) kill() { _ = b.process.Kill() } // it may have ended

// verdict is the type of the error of an invocation whose sandbox has ended.
func (b *sandbox) verdict() string {
	if b.timedOut {
		return "Sandbox.Timedout"
	}
	return "Runtime.ExitError"
}

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
