package launch

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
)

// The first failure is found among its consequences and what launchers say.
func TestWitness(t *testing.T) {
	const (
		warning = "siafu: Ialltoallv: rank 1 has waited 1s for rank 0 on a (SC of layer 0 in epoch 10), still waiting\n"
		stalled = "siafu: rank 1 on a: Ialltoallv: rank 1 has waited 3s for rank 0 on a\nsiafu: rank 2 on b: Recv: rank 2 " +
			"has waited 3s for rank 1 on a\n"
		abort  = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n"
		killed = "mpirun noticed that process rank 2 with PID 0 on node b exited on signal 9 (Killed).\n"
		left   = "mpirun detected that one or more processes exited with non-zero status\n\n  Process name: " +
			"[[19322,1],3]\n  Exit code:    74\n"
	)
	for _, tc := range []struct {
		name, text, told, want string
	}{
		{"nothing", warning, "", ""},
		{"stalled", warning + stalled + abort, "", "rank 1 on a: Ialltoallv: rank 1 has waited 3s for rank 0 on a"},
		{"stalled in a chain", "siafu: Recv: rank 3 has waited 1.251s for rank 2 on b (gradients of epoch 6), still waiting\n" +
			"siafu: rank 1 on a: Recv: rank 1 has waited 3s for rank 3 on b (epoch 6)\n", "",
			"rank 1 on a: Recv: rank 1 has waited 3s for rank 3 on b (epoch 6), which waits for rank 2 on b"},
		{"stalled, and woken", "siafu: Recv: rank 3 has waited 1.251s for rank 2 on b, still waiting\n" +
			"siafu: rank 1 on a: Recv: rank 1 has waited 3s for rank 3 on b\nsiafu: Recv: rank 2 has waited 1s for " +
			"rank 3 on b, still waiting\n", "",
			"rank 1 on a: Recv: rank 1 has waited 3s for rank 3 on b, which waits for rank 2 on b"},
		{"stalled in a circle", "siafu: Recv: rank 3 has waited 1s for rank 1 on a, still waiting\nsiafu: rank 1 on a: Recv: rank 1 has " +
			"waited 3s for rank 3 on b\n", "",
			"rank 1 on a: Recv: rank 1 has waited 3s for rank 3 on b"},
		{"killed", killed, "", "rank 2 on b was ended by signal 9 (Killed)"},
		{"killed, and the others have noticed", stalled + killed, "", "rank 2 on b was ended by signal 9 (Killed)"},
		{"all agree", "siafu: read: x: bad\n" + left, "read: x: bad", "read: x: bad"},
		{"without a word", left, "", "rank 3 ended with exit code 74"},
		{"with a word", stalled + left, "", "rank 1 on a: Ialltoallv: rank 1 has waited 3s for rank 0 on a"},
		{"a panic", "siafu: internal error: kernels: short dst\n" + left, "", "internal error: kernels: short dst"},
		{"srun", "srun: error: b: task 3: Killed\nsrun: error: a: tasks 0-2: Killed\n", "", "rank 3 on b: Killed"},
		{"PRRTE, killed", strings.ReplaceAll(prrteKilled, "-", ""), "", ""}, // no paragraph
		{"PRRTE, without a word", "  Process name: [prterun-vm-7@1,3]\n  Exit code:    74\n", "", "rank 3 ended with exit code 74"},
		{"a long line", "siafu: rank 1 on a: " + strings.Repeat("x", longest) + "\n" + killed, "",
			"rank 2 on b was ended by signal 9 (Killed)"},
		{"joined", "siafu: rank 1 on a has joined\n", "", ""},
		{"no end of the line", "siafu: rank 1 on a: x", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			w := newWitness(&out)
			for part := range strings.SplitAfterSeq(tc.text, "a") { // lines come in pieces
				if _, err := w.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			w.flush()
			if got := w.cause(tc.told); got != tc.want || out.String() != tc.text {
				t.Errorf("%q, want %q; passed on %q", got, tc.want, out.String())
			}
		})
	}
}

// A terminal that is gone ends neither the pipe nor what is heard.
func TestWitnessWithoutListener(t *testing.T) {
	w := newWitness(gone{})
	for _, line := range []string{"siafu: signal=TERM\n", "siafu: rank 1 on a: x\n"} {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(line), err)
		}
	}
	if got := w.cause(""); got != "rank 1 on a: x" {
		t.Errorf("heard %q", got)
	}
}

// gone is a terminal that has been closed.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EIO }

// prrteKilled is what PRRTE reports of a killed rank: a sentence on two lines.
const prrteKilled = "--------------------------------------------------------------------------\n" +
	"prterun noticed that process rank 2 with PID 18697 on node vm exited on\nsignal 9 (Killed).\n" +
	"--------------------------------------------------------------------------\n"

func TestSentenceOnTwoLines(t *testing.T) {
	var out bytes.Buffer
	w := newWitness(&out)
	_, _ = w.Write([]byte("\x00siafu: rank 1 on a: x\n" + prrteKilled))
	if got := w.cause(""); got != "rank 2 on vm was ended by signal 9 (Killed)" || w.said != "rank 1 on a: x" ||
		out.String() != "siafu: rank 1 on a: x\n" {
		t.Errorf("heard %q, passed on %q", got, out.String())
	}
}

// Paragraphs of Open MPI that repeat messages of launch, and its line on each signal, are
// suppressed. Other paragraphs and incomplete ones are not.
func TestParagraphs(t *testing.T) {
	line := strings.Repeat("-", 74) + "\n"
	killed := line + "mpirun noticed that process rank 2 with PID 7 on node b exited on signal 9 (Killed).\n" + line
	slots := line + "There are not enough slots available in the system to satisfy the 9\nslots\n" + line
	open := line + "Primary job  terminated normally, but"
	for _, tc := range []struct{ text, want string }{
		{"a\n" + killed + "b\n", "a\nb\n"},
		{"a\nmpirun: Forwarding signal 12 to job\nmpirun: b\n", "a\nmpirun: b\n"},
		{"a\n" + strings.Replace(killed, "mpirun noticed", "prterun noticed", 1) + "b\n", "a\nb\n"},
		{slots + killed, slots},
		{killed + open, open},
		{line + strings.Repeat("x\n", longestBlock), line + strings.Repeat("x\n", longestBlock)},
	} {
		var out bytes.Buffer
		w := newWitness(&out)
		for part := range strings.SplitAfterSeq(tc.text, "e") {
			_, _ = w.Write([]byte(part))
		}
		w.flush()
		if out.String() != tc.want {
			t.Errorf("%.200q became %.200q, %d bytes", tc.text, out.String(), out.Len())
		}
	}
}

// After a loss that a run survives, one line replaces all errors of Open MPI. Another run shows them.
func TestLossNoise(t *testing.T) {
	noise := "[vm:7] PMIX ERROR: BAD-PARAM in file ../../../src/event/pmix_event_notification.c at line 1033\n"
	text := "a\n" + noise + "siafu: rank 1 on vm is lost\n" + noise + "[vm:7] b\n"
	for survives, want := range map[bool]string{true: "a\n" + explanation + "siafu: rank 1 on vm is lost\n[vm:7] b\n", false: text} {
		var out bytes.Buffer
		w := newWitness(&out)
		w.survives = survives
		_, _ = w.Write([]byte(text))
		if out.String() != want {
			t.Errorf("--survive %t: %q", survives, out.String())
		}
	}
}
