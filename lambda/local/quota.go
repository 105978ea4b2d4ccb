package local

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"siafu/lambda"
)

// The CPU fraction of a sandbox is limited as by the kernel's CFS bandwidth control. The process earns
// CPU time at the rate of its fraction, up to a small maximum. A process that has used more is stopped
// (SIGSTOP) until it has earned that time (SIGCONT). A sandbox that exceeds its memory is ended.
//
// Design note: a control group would limit both. But only root, or a user to whom root delegated a
// part of the hierarchy, can create one, and batch systems rarely delegate. Process limits
// (RLIMIT_AS, RLIMIT_DATA) count the memory that the Go runtime reserves, not resident memory.
// Therefore processes are polled: CPU time through the clock of the process, to the nanosecond, and
// the high-water mark of resident memory in /proc/PID/status, which misses no peak between two polls.
// Memory is polled once more before a response counts.
const (
	period     = 20 * time.Millisecond // the maximum of saved CPU time is the fraction of this
	leastPoll  = time.Millisecond      // shortest time between two polls of a process
	memoryPoll = 5 * time.Millisecond
)

// quota is the CPU budget of a process. credit is CPU time that may be used at once. used is the
// CPU time that the process had used at the last poll.
type quota struct {
	credit, used time.Duration
	at           time.Time
	stopped      bool
	of           *invocation // of the last poll
}

// begin records the first poll of a process, which has a full credit.
func (q *quota) begin(now time.Time, used time.Duration, share float64) {
	q.at, q.used, q.credit = now, used, most(share)
}

// most returns the maximum of saved CPU time.
func most(share float64) time.Duration { return time.Duration(share * float64(period)) }

// poll updates the budget of a process that has used the given CPU time. It returns the time until
// the next poll. q.stopped tells whether the process must be stopped until then.
func (q *quota) poll(now time.Time, used time.Duration, share float64) time.Duration {
	q.credit += time.Duration(share*float64(now.Sub(q.at))) - (used - q.used)
	if !q.stopped { // a late poll of a stopped process must not reduce its credit
		q.credit = min(q.credit, most(share))
	}
	q.at, q.used = now, used
	if wanted := most(share) / 2; q.stopped && q.credit < wanted || q.credit <= 0 {
		q.stopped = true
		return max(time.Duration(float64(wanted-q.credit)/share), leastPoll)
	}
	q.stopped = false
	return max(time.Duration(float64(q.credit)/max(share, 1)), leastPoll)
}

func cpuTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED; the pid is in the bits above the lowest three, inverted
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// peakMemory returns the peak resident memory of a process in bytes; 0 once it has ended.
func peakMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// enforce enforces the limits of a sandbox while it has invocations, until it ends.
func (s *Service) enforce(b *sandbox) {
	var q quota
	for s.await(b) {
		if s.o.Limits.Memory && s.tooMuch(b) {
			return
		}
		sleep(s.schedule(b, &q), b.ended)
	}
}

// await waits until a sandbox has an invocation, or is stopped. It reports false once the sandbox
// has ended.
func (s *Service) await(b *sandbox) bool {
	s.mu.Lock()
	idle := !b.stopped && b.taken() == nil // no limit to enforce
	s.mu.Unlock()
	if idle {
		select {
		case <-b.took:
		case <-b.ended:
		}
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// tooMuch measures the peak memory of a sandbox, and ends the sandbox if the peak exceeds the
// limit.
func (s *Service) tooMuch(b *sandbox) bool {
	had := peakMemory(b.process.Pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	b.peak = max(b.peak, had)
	if !s.o.Limits.Memory || b.peak <= int64(s.o.Memory)<<20 {
		return false
	}
	b.end(outOfMemory)
	return true
}

// schedule stops or continues a sandbox, and returns the time until its next poll. It holds the
// lock, so that no invocation begins or ends between the poll and its consequence.
func (s *Service) schedule(b *sandbox, q *quota) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv := b.taken()
	slow := inv != nil && inv.fault == lambda.Straggle
	share := s.share(slow)
	used, err := cpuTime(b.process.Pid)
	if err != nil { // it has ended
		return memoryPoll
	}
	now, wait := time.Now(), memoryPoll
	q.stopped = b.stopped
	switch {
	case share == 0:
		*q = quota{}
	case q.at.IsZero():
		q.begin(now, used, share)
		fallthrough
	default:
		if slow && inv != q.of { // else the saved time would be enough for a short invocation
			q.credit = min(q.credit, 0)
		}
		q.of = inv
		wait = q.poll(now, used, share)
	}
	b.setStopped(q.stopped)
	if s.o.Limits.Memory && !q.stopped {
		wait = min(wait, memoryPoll)
	}
	return wait
}

// share returns the number of processors of a sandbox; 0: no limit.
func (s *Service) share(slow bool) float64 {
	share := 0.0
	if s.o.Limits.Processor {
		share = VCPU(s.o.Memory)
	}
	if slow { // without a limit: a fraction of the one processor that it computes on
		share = cmp.Or(share, 1) / lambda.Slowness
	}
	return share
}
