package local

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// A sandbox that exceeds its memory, even briefly, is killed, and its invocation reports that.
func TestMemoryLimit(t *testing.T) {
	b := newBench(t, Options{Memory: 128, Limits: Limits{Memory: true}})
	before := b.pid(t, job{})
	f := b.failed(t, job{Do: "hoard", N: 200})
	if f.Type != "Runtime.OutOfMemory" || !strings.Contains(f.Message, "signal: killed: it used") ||
		!strings.Contains(f.Message, "limit is 128 MB") {
		t.Errorf("it fails with %+v", f)
	}
	if after := b.pid(t, job{Do: "", N: 1}); after == before || b.Stats().Failed != 1 {
		t.Errorf("process %d does the next one too, %+v", after, b.Stats())
	}
	free := newBench(t, Options{Memory: 128})
	if out, err := free.invoke(job{Do: "hoard", N: 200}); err != nil || out.FunctionError != nil {
		t.Errorf("without a limit: %v %q", err, out.Payload)
	}
}

// line is a line of the service's log.
var line = regexp.MustCompile(`REPORT RequestId: (\S+)\tDuration: ([0-9.]+) ms\tBilled Duration: (\d+) ms\tMemory Size: (\d+) MB\tMax ` +
	`Memory Used: (\d+) MB\t(?:Init Duration: ([0-9.]+) ms\t)?\n$`)

// reported returns the numbers of the line of an answer: duration, billed, size, used, init.
func reported(t *testing.T, out *service.InvokeOutput) (n [5]float64) {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult))
	m := line.FindStringSubmatch(string(text))
	if err != nil || m == nil {
		t.Fatalf("the log says %q: %v", text, err)
	}
	for k := range n {
		if m[k+2] != "" {
			n[k], err = strconv.ParseFloat(m[k+2], 64)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// The log has the charged values of an invocation: the start of a sandbox once, its time, and
// its peak memory.
func TestReport(t *testing.T) {
	const cold = 150 * time.Millisecond
	b := newBench(t, Options{Memory: 256, Limits: Limits{Cold: [2]time.Duration{cold, cold}}})
	began := time.Now()
	out, err := b.invoke(job{Sleep: 50 * time.Millisecond, Do: "hoard", N: 60})
	wall := float64(time.Since(began).Milliseconds())
	if err != nil {
		t.Fatal(err)
	}
	n := reported(t, out)
	if n[0] < 50 || n[4] < 150 || n[0]+n[4] > wall+1 || n[2] != 256 || n[3] < 60 || n[3] > 200 {
		t.Errorf("the log says %v, and it took %v ms", n, wall)
	}
	if over := n[1] - n[0] - n[4]; over < -0.02 || over > 1.02 {
		t.Errorf("billed are %v ms for %v and %v", n[1], n[0], n[4])
	}
	if out, err = b.invoke(job{}); err != nil {
		t.Fatal(err)
	}
	if n := reported(t, out); n[4] != 0 || n[0] == 0 || n[3] < 60 || n[1] > 150 {
		t.Errorf("a warm sandbox's log says %v", n)
	}
	if out, err = b.invoke(job{Do: "exit"}); err != nil || out.FunctionError == nil {
		t.Fatal(err)
	}
	if n := reported(t, out); n[0] == 0 || n[3] < 60 {
		t.Errorf("the log of one that ended says %v", n)
	}
	silent, err := b.client.Invoke(context.Background(), &service.InvokeInput{FunctionName: aws.String("f"), Payload: []byte("{}")})
	if err != nil || silent.LogResult != nil {
		t.Errorf("a log that nobody has asked for: %v %v", aws.ToString(silent.LogResult), err)
	}
}

// New sandboxes wait for a time that depends on the seed, within bounds.
func TestColdStart(t *testing.T) {
	l, most, least := LikeAWS(), time.Duration(0), time.Hour
	for n := range 1000 {
		d := l.cold(1, n)
		most, least = max(most, d), min(least, d)
		if d != l.cold(1, n) {
			t.Fatal("two runs with one seed differ")
		}
	}
	if least < 100*time.Millisecond || least > 105*time.Millisecond || most >= 300*time.Millisecond || most < 295*time.Millisecond {
		t.Errorf("cold starts take %v to %v", least, most)
	}
}

// The number of sandboxes that start at the same time is limited. Further invocations are
// throttled.
func TestBurst(t *testing.T) {
	b := newBench(t, Options{Concurrency: 5, Limits: Limits{Burst: 1}})
	ended := make(chan int)
	go func() { ended <- b.pid(t, job{Sleep: 300 * time.Millisecond}) }()
	eventually(t, "the first one does not begin", func() bool { return b.Stats().Started == 1 })
	_, err := b.invoke(job{})
	if throttled := (*types.TooManyRequestsException)(nil); !errors.As(err, &throttled) {
		t.Errorf("the second one ends with %v", err)
	}
	if first := <-ended; b.pid(t, job{}) != first || b.Stats().Throttled != 1 || b.Stats().Invocations != 2 {
		t.Errorf("a warm sandbox is none of them: %+v", b.Stats())
	}
	now := time.Now()
	three := Limits{Burst: 3}.newBurst()
	for k, want := range []bool{true, true, true, false, false} {
		if three.has(now) != want {
			t.Errorf("start %d of 3", k)
		}
	}
	if !three.has(now.Add(BurstTime/3)) || three.has(now.Add(BurstTime/3)) {
		t.Error("after a third of the time there is not one more")
	}
}

// A quota gives a busy process its share, whatever the delay between checks.
func TestQuota(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
		for _, share := range []float64{0.01, 0.11, 0.9} {
			var q quota
			now, used := time.Unix(0, 0), time.Second
			began, had := now, used
			q.begin(now, used, share)
			for now.Sub(began) < 20*time.Second {
				wait := q.poll(now, used, share)
				if wait < leastPoll {
					t.Fatalf("the next look is in %v", wait)
				}
				if now = now.Add(wait + late); !q.stopped {
					used += wait + late
				}
			}
			if got := float64(used-had) / float64(now.Sub(began)); got > share*1.02+0.002 || got < share*0.95 {
				t.Errorf("looked at %v late a share of %v is %v", late, share, got)
			}
		}
	}
}

// A bucket provides its rate and the rest of a pause, but no more.
func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := &bucket{rate: func() float64 { return 1000 }, depth: 10 * time.Millisecond}
	b.take(now, 10) // what it holds
	var waited time.Duration
	for range 100 {
		d := b.take(now, 50)
		waited, now = waited+d, now.Add(d)
	}
	if waited != 5*time.Second {
		t.Errorf("5000 take %v", waited)
	}
	if d := b.take(now.Add(time.Hour), 50); d != 40*time.Millisecond {
		t.Errorf("50 after a pause take %v", d)
	}
}
