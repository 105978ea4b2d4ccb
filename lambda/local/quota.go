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

// A sandbox is held to its share of a processor as the kernel's CFS bandwidth control
// does it: time on processors comes in at the share, a little is kept, and a process
// that has used up more stands still (SIGSTOP) until it has paid (SIGCONT). A sandbox
// that has had more memory than it may is ended.
//
// Design note: a control group would do both, but only root, or whom root has left a
// part of the hierarchy to, can make one, and batch systems rarely do. Limits of the
// process (RLIMIT_AS, RLIMIT_DATA) count what the Go runtime reserves, not what is
// resident. So processes are looked at: CPU time through the clock of the process, to
// the nanosecond, and the high-water mark of resident memory in /proc/PID/status,
// which misses no peak between two looks; it is looked at once more before an answer
// counts.
const (
	period     = 20 * time.Millisecond // CPU time of one of these is kept
	leastLook  = time.Millisecond      // between two looks at a process
	memoryLook = 5 * time.Millisecond
)

// quota is a share of a processor. It holds nothing of the system: credit is CPU time
// that may be used at once, used what the process had used when it was looked at.
type quota struct {
	credit, used time.Duration
	at           time.Time
	stopped      bool
	of           *invocation // that it was last looked at for
}

// begin is the first look at a process, which has a credit.
func (q *quota) begin(now time.Time, used time.Duration, share float64) {
	q.at, q.used, q.credit = now, used, most(share)
}

// most returns the most that is kept of a share.
func most(share float64) time.Duration { return time.Duration(share * float64(period)) }

// look returns a look at a process that has used so much CPU time. It says when the next one
// is due; q.stopped then says whether the process is to stand still until there.
func (q *quota) look(now time.Time, used time.Duration, share float64) time.Duration {
	q.credit += time.Duration(share*float64(now.Sub(q.at))) - (used - q.used)
	if !q.stopped { // who looks late at what stands still takes nothing from it
		q.credit = min(q.credit, most(share))
	}
	q.at, q.used = now, used
	if wanted := most(share) / 2; q.stopped && q.credit < wanted || q.credit <= 0 {
		q.stopped = true
		return max(time.Duration(float64(wanted-q.credit)/share), leastLook)
	}
	q.stopped = false
	return max(time.Duration(float64(q.credit)/max(share, 1)), leastLook)
}

// cpuTime is what all threads of a process have had of processors.
func cpuTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED; the pid is in the bits above the lowest three, inverted
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// peakMemory returns the most memory that a process has had, in bytes; 0 once it has ended.
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

// governed reports whether sandboxes must be looked at.
func (s *Service) governed() bool {
	return s.o.Limits.Memory || s.o.Limits.Processor || s.o.Faults.Straggle > 0
}

// govern holds a sandbox to its limits while it has invocations, until it ends.
func (s *Service) govern(b *sandbox) {
	var q quota
	for s.await(b) {
		if s.o.Limits.Memory && s.tooMuch(b) {
			return
		}
		sleep(s.ration(b, &q), b.ended)
	}
}

// await waits until a sandbox has an invocation, or one to pay for. It says whether the
// sandbox is there.
func (s *Service) await(b *sandbox) bool {
	if s.idle(b) {
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

// idle reports whether nothing is to be held to a limit.
func (s *Service) idle(b *sandbox) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !b.still && b.taken() == nil
}

// tooMuch notes how much memory a sandbox has had, and ends it if that is more than it
// may have.
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

// ration has a sandbox stand still, or go on, and says when to look at it again. All of
// it is with the lock: no invocation comes or ends between the look and what follows.
func (s *Service) ration(b *sandbox, q *quota) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv := b.taken()
	slow := inv != nil && inv.fault == lambda.Straggle
	share := s.share(slow)
	used, err := cpuTime(b.process.Pid)
	if err != nil { // it has ended
		return memoryLook
	}
	now, wait := time.Now(), memoryLook
	q.stopped = b.still
	switch {
	case share == 0:
		*q = quota{}
	case q.at.IsZero():
		q.begin(now, used, share)
		fallthrough
	default:
		if slow && inv != q.of { // or a short one would be done from what is kept
			q.credit = min(q.credit, 0)
		}
		q.of = inv
		wait = q.look(now, used, share)
	}
	b.stand(q.stopped)
	if s.o.Limits.Memory && !q.stopped {
		wait = min(wait, memoryLook)
	}
	return wait
}

// share is how many processors a sandbox gets; 0: as many as there are.
func (s *Service) share(slow bool) float64 {
	share := 0.0
	if s.o.Limits.Processor {
		share = VCPU(s.o.Memory)
	}
	if slow { // of one processor, where nothing bounds it: it computes on one
		share = cmp.Or(share, 1) / lambda.Slowness
	}
	return share
}
