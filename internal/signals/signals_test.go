package signals

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// A script of signals, with the milliseconds at which they come, and what a
// training loop then finds.
func TestRequests(t *testing.T) {
	type event struct {
		ms     int
		signal syscall.Signal // 0: the loop says that it has served
	}
	const served = syscall.Signal(0)
	for _, tc := range []struct {
		name   string
		events []event
		want   Request
		exits  bool
	}{
		{"nothing", nil, None, false},
		{"checkpoint", []event{{0, syscall.SIGUSR1}}, Checkpoint, false},
		{"checkpoint served", []event{{0, syscall.SIGUSR1}, {1, served}}, None, false},
		{"asked again", []event{{0, syscall.SIGUSR1}, {1, served}, {2, syscall.SIGUSR1}}, Checkpoint, false},
		{"stop", []event{{0, syscall.SIGTERM}}, Stop, false},
		{"stop is not forgotten", []event{{0, syscall.SIGINT}, {1, served}, {2, syscall.SIGUSR1}}, Stop, false},
		{"stop after checkpoint", []event{{0, syscall.SIGUSR1}, {1, syscall.SIGTERM}}, Stop, false},
		{"repeated SIGTERM", []event{{0, syscall.SIGTERM}, {5000, syscall.SIGTERM}}, Stop, false},
		{"SIGTERM, then a first SIGINT", []event{{0, syscall.SIGTERM}, {5000, syscall.SIGINT}}, Stop, false},
		{"a closed terminal", []event{{0, syscall.SIGHUP}}, Stop, false},
		{"a closed terminal, twice", []event{{0, syscall.SIGHUP}, {5000, syscall.SIGHUP}}, Stop, false},
		{"SIGINT passed on twice", []event{{0, syscall.SIGINT}, {20, syscall.SIGINT}}, Stop, false},
		{"second SIGINT", []event{{0, syscall.SIGINT}, {20, syscall.SIGINT}, {900, syscall.SIGINT}}, Stop, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := time.Unix(1000, 0)
			w := &Watcher{now: func() time.Time { return clock }}
			exits := false
			for _, e := range tc.events {
				clock = time.Unix(1000, 0).Add(time.Duration(e.ms) * time.Millisecond)
				if e.signal == served {
					w.Served()
					continue
				}
				_, exit := w.take(e.signal)
				exits = exits || exit
			}
			if w.Pending() != tc.want || exits != tc.exits {
				t.Errorf("%v, exits %t; want %v, %t", w.Pending(), exits, tc.want, tc.exits)
			}
		})
	}
}

// A message warns immediately that the checkpoint will be too late.
func TestGracePeriod(t *testing.T) {
	for _, tc := range []struct {
		name         string
		signal       os.Signal
		grace, epoch time.Duration
		says         string
		ranks        bool
	}{
		{"too short", syscall.SIGTERM, 30 * time.Second, 95 * time.Second,
			"an epoch takes 1m35s, longer than the grace period of 30s", false},
		{"long enough", syscall.SIGTERM, 30 * time.Second, 2 * time.Second, "checkpoint", false},
		{"not known", syscall.SIGTERM, 0, 95 * time.Second, "checkpoint", false},
		{"closed terminal", syscall.SIGHUP, 30 * time.Second, 95 * time.Second, "signal=HUP", false},
		{"by hand", syscall.SIGINT, 30 * time.Second, 95 * time.Second, "a second SIGINT", false},
		{"launcher", syscall.SIGTERM, 0, 0, "with a checkpoint, unless a rank was killed", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := time.Unix(1000, 0)
			w := &Watcher{options: Options{Grace: tc.grace, Ranks: tc.ranks}, now: func() time.Time { return clock }}
			w.Took(tc.epoch)
			say, _ := w.take(tc.signal)
			if !strings.Contains(say, tc.says) || strings.Contains(say, "longer") != strings.Contains(tc.says, "longer") {
				t.Errorf("%q; want %q", say, tc.says)
			}
			if s, at := w.Stopping(); s != tc.signal || !at.Equal(time.Unix(1000, 0)) {
				t.Errorf("stopped by %v at %v", s, at)
			}
		})
	}
}

func TestGrace(t *testing.T) {
	for _, tc := range []struct {
		flag time.Duration
		env  map[string]string
		want time.Duration
	}{
		{0, nil, 0},
		{0, map[string]string{"SLURM_JOB_ID": "7"}, 30 * time.Second},
		{0, map[string]string{"SLURM_JOB_ID": "7", "SIAFU_GRACE": "120"}, 2 * time.Minute},
		{0, map[string]string{"SIAFU_GRACE": "soon"}, 0},
		{time.Minute, map[string]string{"SLURM_JOB_ID": "7", "SIAFU_GRACE": "120"}, time.Minute},
	} {
		if got := Grace(tc.flag, func(key string) string { return tc.env[key] }); got != tc.want {
			t.Errorf("%v %v: %v, want %v", tc.flag, tc.env, got, tc.want)
		}
	}
}

// Real signals reach the watcher, and a second SIGINT ends the process.
func TestWatch(t *testing.T) {
	lines, codes := make(chan string, 8), make(chan int, 1)
	taken := 0
	w := Watch(Options{Take: func() { taken++ }, Log: func(s string) { lines <- fmt.Sprintf("%s (signal %d)", s, taken) },
		Exit: func(code int) { codes <- code }})
	defer w.Close()
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	for k, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGINT} {
		send(s)
		want, end := "signal="+[]string{"USR1", "INT"}[k], fmt.Sprintf("(signal %d)", k+1)
		if line := <-lines; !strings.HasPrefix(line, want) || !strings.HasSuffix(line, end) { // Take comes first
			t.Errorf("%q; want %q … %q", line, want, end)
		}
	}
	if w.Pending() != Stop {
		t.Errorf("%v is pending", w.Pending())
	}
	time.Sleep(echo)
	send(syscall.SIGINT)
	select {
	case code := <-codes:
		if code != CodeNow {
			t.Errorf("exit %d", code)
		}
	case <-time.After(hosttest.Patience):
		t.Error("a second SIGINT is not heard")
	}
}
