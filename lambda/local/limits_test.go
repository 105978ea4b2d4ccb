package local

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"golang.org/x/sys/unix"
)

// burnt is how long so much CPU time has taken, and for how much of it other programs had
// the processors.
type burnt struct{ Wall, Waited time.Duration }

// burn uses CPU time.
func burn(cpu time.Duration) burnt {
	began, starved := time.Now(), waited()
	for from, _ := cpuTime(os.Getpid()); ; {
		if now, _ := cpuTime(os.Getpid()); now-from >= cpu {
			return burnt{time.Since(began), waited() - starved}
		}
	}
}

// waited is for how long this process has been ready to run and did not.
func waited() (sum time.Duration) {
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, path := range threads {
		var ran, wait time.Duration
		if text, err := os.ReadFile(path); err == nil {
			_, _ = fmt.Sscan(string(text), &ran, &wait)
		}
		sum += wait
	}
	return sum
}

// hoard has so many MB resident for a moment.
func hoard(mb int) []byte {
	all := make([]byte, mb<<20)
	for i := 0; i < len(all); i += 4096 {
		all[i] = 1
	}
	return all
}

// fetch gets n bytes from an address through the relay, as the client of net/http takes
// it, and tells how long they took.
func fetch(target string, n int) (time.Duration, error) {
	c := http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: os.Getenv(RelayVariable)}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // of a server that the test has made

		DisableKeepAlives: true,
	}}
	began := time.Now()
	r, err := c.Get(fmt.Sprintf("https://%s/%d", target, n))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	got, err := io.Copy(io.Discard, r.Body)
	if err == nil && got != int64(n) {
		err = fmt.Errorf("%d bytes", got)
	}
	return time.Since(began), err
}

// source sends as many bytes as the path says, over TLS.
func source(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		_, _ = w.Write(make([]byte, n))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// note leaves the number of the process in a file.
func note(path string) (any, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, os.Getpid())
	return os.Getpid(), err
}

// result is what a wish is answered with.
func result[T any](t *testing.T, b bench, w wish) (r T) {
	t.Helper()
	out, err := b.invoke(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Payload, &r); err != nil || out.FunctionError != nil {
		t.Fatalf("answer %q: %v", out.Payload, err)
	}
	return r
}

// burns is how long CPU time takes.
func (b bench) burns(t *testing.T, cpu time.Duration) (d burnt) {
	t.Helper()
	d = result[burnt](t, b, wish{Do: "burn", N: int(cpu.Milliseconds())})
	t.Logf("%v of CPU time take %v, and %v of it other programs had the processors", cpu, d.Wall, d.Waited)
	return d
}

// within tries for a while, as other programs have processors too, that something takes
// as long as it should.
func within(t *testing.T, least, most time.Duration, measure func() burnt) {
	t.Helper()
	var took []burnt
	for end := time.Now().Add(15 * time.Second); len(took) < 5 || time.Now().Before(end); {
		d := measure()
		if d.Wall >= least && d.Wall-d.Waited <= most {
			return
		}
		took = append(took, d)
	}
	t.Errorf("it takes %v, and should take %v to %v", took, least, most)
}

// A sandbox that has more memory than it may ends, however short the moment, and its
// invocation says so.
func TestMemoryLimit(t *testing.T) {
	b := newBench(t, Options{Memory: 128, Limits: Limits{Memory: true}})
	before := b.pid(t, wish{})
	f := b.failed(t, wish{Do: "hoard", N: 200})
	if f.Type != "Runtime.OutOfMemory" || !strings.Contains(f.Message, "signal: killed: it has had") || !strings.Contains(f.Message, "may have 128") {
		t.Errorf("it fails with %+v", f)
	}
	if after := b.pid(t, wish{Do: "", N: 1}); after == before || b.Stats().Failed != 1 {
		t.Errorf("process %d does the next one too, %+v", after, b.Stats())
	}
	free := newBench(t, Options{Memory: 128})
	if out, err := free.invoke(wish{Do: "hoard", N: 200}); err != nil || out.FunctionError != nil {
		t.Errorf("without a limit: %v %q", err, out.Payload)
	}
}

// line is a line of the log as the service words it.
var line = regexp.MustCompile(`REPORT RequestId: (\S+)\tDuration: ([0-9.]+) ms\tBilled Duration: (\d+) ms\tMemory Size: (\d+) MB\tMax Memory Used: (\d+) MB\t(?:Init Duration: ([0-9.]+) ms\t)?\n$`)

// reported are the numbers of the line of an answer: duration, billed, size, used, init.
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

// The log says what an invocation is charged for: the beginning of a sandbox once, its
// time, and how much memory it has had.
func TestReport(t *testing.T) {
	const cold = 150 * time.Millisecond
	b := newBench(t, Options{Memory: 256, Limits: Limits{Cold: [2]time.Duration{cold, cold}}})
	began := time.Now()
	out, err := b.invoke(wish{Sleep: 50 * time.Millisecond, Do: "hoard", N: 60})
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
	if out, err = b.invoke(wish{}); err != nil {
		t.Fatal(err)
	}
	if n := reported(t, out); n[4] != 0 || n[0] == 0 || n[3] < 60 || n[1] > 150 {
		t.Errorf("a warm sandbox's log says %v", n)
	}
	if out, err = b.invoke(wish{Do: "exit"}); err != nil || out.FunctionError == nil {
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

// New sandboxes wait, each for a time of its own that the seed says, within bounds.
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

// No more sandboxes start at a time than may, and who would need one is turned away.
func TestBurst(t *testing.T) {
	b := newBench(t, Options{Concurrency: 5, Limits: Limits{Burst: 1}})
	ended := make(chan int)
	go func() { ended <- b.pid(t, wish{Sleep: 300 * time.Millisecond}) }()
	eventually(t, "the first one does not begin", func() bool { return b.Stats().Started == 1 })
	_, err := b.invoke(wish{})
	if throttled := (*types.TooManyRequestsException)(nil); !errors.As(err, &throttled) {
		t.Errorf("the second one ends with %v", err)
	}
	if first := <-ended; b.pid(t, wish{}) != first || b.Stats().Throttled != 1 || b.Stats().Invocations != 2 {
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

// A quota lets a process that is always busy have its share, whatever the delay with
// which it is looked at.
func TestQuota(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond} {
		for _, share := range []float64{0.01, 0.11, 0.9} {
			var q quota
			now, used := time.Unix(0, 0), time.Second
			began, had := now, used
			q.begin(now, used, share)
			for now.Sub(began) < 20*time.Second {
				wait := q.look(now, used, share)
				if wait < leastLook {
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

// A bucket gives what comes into it, and what a pause has left, but not more.
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

// Payloads have the bandwidth that there is.
func TestBandwidthOfPayloads(t *testing.T) {
	b := newBench(t, Options{Concurrency: 2 * manyFunctions, Limits: Limits{Bandwidth: true}})
	b.pid(t, wish{})
	b.count(func(*Stats) { b.running += manyFunctions }) // others
	const n = 4 << 20
	body := []byte(fmt.Sprintf(`{"Do":"%s"}`, strings.Repeat("x", n)))
	began := time.Now()
	out, err := b.client.Invoke(context.Background(), &service.InvokeInput{FunctionName: aws.String("f"), Payload: body})
	took, least := time.Since(began), time.Duration(n*8/leastBandwidth*1e9)-lateness
	if err != nil || out.FunctionError != nil || took < least {
		t.Errorf("%v: it takes %v, and not %v", err, took, least)
	}
	b.count(func(*Stats) { b.running -= manyFunctions })
	back := newBench(t, Options{Concurrency: 2 * manyFunctions, Limits: Limits{Bandwidth: true}, Timeout: 20 * time.Second})
	back.count(func(*Stats) { back.running += manyFunctions })
	began = time.Now()
	if f := back.failed(t, wish{Do: "large"}); f.Type != "Function.ResponseSizeTooLarge" || time.Since(began) < 250*time.Millisecond {
		t.Errorf("an answer of 6 MiB takes %v: %+v", time.Since(began), f)
	}
	back.count(func(*Stats) { back.running -= manyFunctions })
}

// The relay is for this user's processes, and for targets that sandboxes may have.
func TestRelayRefuses(t *testing.T) {
	b := newBench(t, Options{Limits: Limits{Bandwidth: true}, Targets: []string{"192.0.2.1:443"}})
	b.pid(t, wish{})
	var relay string
	for _, box := range b.sandboxes {
		relay = box.relayAddress
	}
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	nobody := closed.Addr().String()
	_ = closed.Close()
	for _, c := range []struct {
		name, method, target string
		status               int
	}{
		{"another address", "CONNECT", "192.0.2.2:443", 403},
		{"another port", "CONNECT", "192.0.2.1:444", 403},
		{"a name", "CONNECT", "localhost:80", 403},
		{"no port", "CONNECT", "127.0.0.1", 403},
		{"another method", "GET", "/", 403},
		{"nobody there", "CONNECT", nobody, 502},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", relay)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\n\r\n", c.method, c.target)
			r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: c.method})
			if err != nil || r.StatusCode != c.status {
				t.Errorf("%v %v, want %d", r, err, c.status)
			}
		})
	}
	off := newBench(t, Options{})
	if out, err := off.invoke(wish{Do: "environment"}); err != nil || bytes.Contains(out.Payload, []byte(RelayVariable)) {
		t.Errorf("%q %v", out.Payload, err)
	}
}

// Another user of the machine is refused.
func TestRelayIsNotForStrangers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	b := newBench(t, Options{Limits: Limits{Bandwidth: true}})
	b.pid(t, wish{})
	var relay string
	for _, box := range b.sandboxes {
		relay = box.relayAddress
	}
	host, port, _ := net.SplitHostPort(relay)
	target := source(t)
	for uid, want := range map[uint32]string{0: "200", 65534: "403"} {
		ask := exec.Command("bash", "-c", `exec 3<>/dev/tcp/$1/$2; printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' $3 $3 >&3; head -n 1 <&3`, "-", host, port, target)
		ask.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		ask.Dir = "/"
		if said, err := ask.CombinedOutput(); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 "+want) {
			t.Errorf("user %d is told %q, want %s: %v", uid, said, want, err)
		}
	}
}

// A relayed connection ends with its sandbox.
func TestRelayEnds(t *testing.T) {
	b := newBench(t, Options{Concurrency: 1, Timeout: 200 * time.Millisecond, Limits: Limits{Bandwidth: true}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, c) // and never answers
		}
		ended <- err
	}()
	if f := b.failed(t, wish{Do: "fetch", Target: l.Addr().String()}); f.Type != "Sandbox.Timedout" {
		t.Errorf("%+v", f)
	}
	if err := <-ended; err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v", err)
	}
}

// Two sandboxes do a duplicate, and one answer comes.
func TestDuplicate(t *testing.T) {
	b := newBench(t, Options{Concurrency: 1, Faults: Faults{Duplicate: 1}})
	path := filepath.Join(t.TempDir(), "notes")
	answered := b.pid(t, wish{Do: "note", Target: path})
	eventually(t, "only one has done it", func() bool {
		text, _ := os.ReadFile(path)
		return bytes.Count(text, []byte("\n")) == 2 && bytes.Contains(text, strconv.AppendInt(nil, int64(answered), 10))
	})
	if s := b.Stats(); s.Invocations != 2 || s.Started != 2 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	eventually(t, "one of them is not there for the next", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.warm) == 2
	})
	b.pid(t, wish{})
	if s := b.Stats(); s.Started != 2 {
		t.Errorf("%+v", s)
	}
}

// One letter of a corrupt answer is another one.
func TestCorrupt(t *testing.T) {
	good, bad := newBench(t, Options{}), newBench(t, Options{Faults: Faults{Corrupt: 1}})
	want, err := good.invoke(wish{Do: "fail"})
	got, err2 := bad.invoke(wish{Do: "fail"})
	if err != nil || err2 != nil || len(want.Payload) != len(got.Payload) {
		t.Fatal(err, err2)
	}
	differ := 0
	for i := range want.Payload {
		if want.Payload[i] != got.Payload[i] {
			differ++
		}
	}
	if differ != 1 || !json.Valid(got.Payload) {
		t.Errorf("%d bytes differ: %q", differ, got.Payload)
	}
}

// A sandbox that straggles takes ten times as long, for a short task and with a share.
func TestStraggle(t *testing.T) {
	b := newBench(t, Options{Faults: Faults{Straggle: 1}})
	const cpu = 60 * time.Millisecond
	for range 2 {
		within(t, 8*cpu, 13*cpu, func() burnt { return b.burns(t, cpu) })
	}
	for range 20 {
		began := time.Now()
		if b.pid(t, wish{}); time.Since(began) < 5*time.Millisecond {
			t.Errorf("a task of nothing takes %v", time.Since(began))
		}
	}
}

// Some invocations are turned away, and some get a sandbox that does not come up.
func TestThrottleAndStart(t *testing.T) {
	b := newBench(t, Options{Concurrency: 3, Faults: Faults{Throttle: 1}})
	_, err := b.invoke(wish{})
	if throttled := (*types.TooManyRequestsException)(nil); !errors.As(err, &throttled) || b.Stats().Throttled != 1 || b.Stats().Started != 0 {
		t.Errorf("%v %+v", err, b.Stats())
	}
	b = newBench(t, Options{Faults: Faults{Start: 1}})
	for range 2 {
		if f := b.failed(t, wish{}); f.Type != "Runtime.ExitError" {
			t.Errorf("%+v", f)
		}
	}
	if s := b.Stats(); s.Started != 2 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
}

// hostVariable is set where this executable is to have a service.
const hostVariable = "SIAFU_TEST_HOST"

// host has a service whose one sandbox stands still nearly always, and tells which
// process that is.
func host() {
	s, err := Start(Options{Function: os.Args[0], Name: "f", Memory: 2, Limits: Limits{Processor: true}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	payload, _ := json.Marshal(wish{Do: "burn", N: 1000_000})
	go func() { _, _ = s.run(&invocation{id: "i", payload: payload, done: make(chan answer, 2)}) }()
	for told := false; ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for _, b := range s.sandboxes {
			if !told {
				fmt.Println(b.process.Pid)
			}
			told = true
		}
		s.mu.Unlock()
	}
}

// state is the letter of a process's state, X of none.
func state(pid int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(text, []byte(") "))
	if err != nil || len(rest) == 0 {
		return 'X'
	}
	return rest[0]
}

// A sandbox that stands still ends with a program that is killed, also where whoever
// inherits it is of the same session, as in many containers: the kernel then does not
// end what stands still by itself.
func TestStoppedSandboxEnds(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sandbox does not stand still", func() bool { return state(pid) == 'T' })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "it stands still for ever", func() bool { return strings.IndexByte("XZ", state(pid)) >= 0 })
	_, _ = unix.Wait4(pid, nil, 0, nil) // it is ours now
}
