package invoke

import (
	"encoding/base64"
	"testing"
	"time"

	"siafu/kernels/task"
)

// A report is parsed in AWS's format, with tabs or blanks, cold or warm, after other lines and
// with further fields. Other text is ignored.
func TestReport(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }
	for _, c := range []struct {
		log        string
		init, work time.Duration
		ok         bool
	}{
		{"START RequestId: a Version: $LATEST\nREPORT RequestId: a\tDuration: 12.34 ms\tBilled Duration: 113 " +
			"ms\tMemory Size: 192 MB\tMax " +
			"Memory Used: 23 MB\tInit Duration: 100.12 ms\t\n", ms(100.12), ms(12.34), true},
		{"REPORT RequestId: a Duration: 7 ms Billed Duration: 7 ms Memory Size: 192 MB Max Memory Used: 23 MB", 0, ms(7), true},
		{"REPORT RequestId: a\tDuration: 1.00 ms\nREPORT RequestId: b\tDuration: 2.00 ms\tStatus: timeout\n\n", 0, ms(2), true},
		{"it said: REPORT RequestId: a\tDuration: 12.34 ms\n", 0, 0, false},
		{"REPORT RequestId: a\tBilled Duration: 113 ms\tInit Duration: 100.12 ms\n", ms(100.12), 0, false},
		{"REPORT RequestId: a\tDuration: -3 ms\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		init, work, ok := reported(c.log)
		if init != c.init || work != c.work || ok != c.ok {
			t.Errorf("%q: %v %v %t", c.log, init, work, ok)
		}
	}
}

// Without a report, the wall time of an invocation is used as an estimate.
func TestSpentIsGuessed(t *testing.T) {
	name, wrong := task.Name{Layer: 1, Attempt: 2}, "%"
	good := base64.StdEncoding.EncodeToString([]byte("REPORT RequestId: a Duration: 3.00 ms"))
	for tail, want := range map[*string]task.Spent{
		nil:    {Name: name, Work: time.Second, Guessed: true},
		&wrong: {Name: name, Work: time.Second, Guessed: true},
		&good:  {Name: name, Work: 3 * time.Millisecond},
	} {
		if got := spent(name, tail, time.Second); *got != want {
			t.Errorf("init %v, work %v, guessed %t, want %v %v %t", got.Init, got.Work, got.Guessed, want.Init, want.Work, want.Guessed)
		}
	}
}
