package endpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/graph/fault"
	"siafu/kernels/task"
	"siafu/lambda"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// grace is how long those who are to be cut off get.
const grace = 2 * time.Second

// message is one with a name, as tasks and results have it, of n bytes in all.
func message(name task.Name, n int) []byte {
	const front = 8 // the number of bytes behind it, without the checksum
	b := make([]byte, front, n)
	for _, x := range []int{name.Part, name.Interval, name.Epoch, name.Layer, int(name.Stage), name.Attempt, 0} {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	b = b[:max(n-crc32.Size, len(b))]
	binary.LittleEndian.PutUint64(b, uint64(len(b)-front))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func attempt(n int) task.Name { return task.Name{Part: 1, Interval: 2, Epoch: 3, Attempt: n} }

// bench is an endpoint with a client that keeps its connection.
type bench struct {
	*Endpoint
	t       testing.TB
	client  *http.Client
	results chan []byte // that were taken
}

// take takes a result when the test does, or the endpoint ends.
func (b bench) take(result []byte) {
	select {
	case b.results <- result:
	case <-b.context.Done():
	}
}

func newBench(t testing.TB, o Options) bench {
	t.Helper()
	e, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = e.Close() })
	return bench{e, t, &http.Client{Transport: transport, Timeout: patience}, make(chan []byte)}
}

// open opens a ticket and delivers its task, unless that is nil.
func (b bench) open(name task.Name, most int64, m []byte) lambda.Pull {
	b.t.Helper()
	p, err := b.Expect(name, most, b.take)
	if err == nil && m != nil {
		err = b.Deliver(context.Background(), name, m)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// do sends a request, whose token may be empty, and returns the status and the body.
func (b bench) do(method, path, token string, body io.Reader) (int, []byte, error) {
	r, err := http.NewRequest(method, "https://"+b.Address()+path, body)
	if err != nil {
		b.t.Error(err)
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := b.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

func (b bench) fetch(token string) (int, []byte) {
	b.t.Helper()
	status, text, err := b.do("GET", lambda.TaskPath, token, nil)
	if err != nil {
		b.t.Error(err)
	}
	return status, text
}

func (b bench) answer(token string, result []byte) int {
	b.t.Helper()
	status, _, err := b.do("POST", lambda.ResultPath, token, bytes.NewReader(result))
	if err != nil {
		b.t.Error(err)
	}
	return status
}

// result is the next one that comes.
func (b bench) result() []byte {
	b.t.Helper()
	select {
	case r := <-b.results:
		return r
	case <-time.After(patience):
		b.t.Fatal("no result comes")
		return nil
	}
}

// until waits for a condition of the endpoint's statistics.
func (b bench) until(what string, ok func(Stats) bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !ok(b.Stats()); {
		if time.Now().After(end) {
			b.t.Fatalf("%s: %+v", what, b.Stats())
		}
		time.Sleep(time.Millisecond)
	}
}

// refusedOnly checks that these are all refusals.
func (b bench) refusedOnly(want map[Refusal]int) {
	b.t.Helper()
	got := b.Stats().Refused
	for why := range refusals {
		if got[why] != want[why] {
			b.t.Errorf("%v: %d times, want %d", why, got[why], want[why])
		}
	}
}

// A function fetches its task, whether it or the task is there first, and its result
// comes; it needs one connection for all that it does.
func TestTask(t *testing.T) {
	b := newBench(t, Options{})
	first, second := attempt(1), attempt(2)
	m, r := message(first, 200_000), message(first, 100_000)
	p := b.open(first, 0, m)
	if err := p.Check(); err != nil || p.Address != b.Address() || len(p.Token) < 26 {
		t.Errorf("%+v: %v", p, err)
	}
	if status, got := b.fetch(p.Token); status != 200 || !bytes.Equal(got, m) {
		t.Errorf("status %d, %d bytes", status, len(got))
	}
	b.until("a task that was fetched is held", func(s Stats) bool { return s.Held == 0 })
	if status := b.answer(p.Token, r); status != 204 || !bytes.Equal(b.result(), r) {
		t.Errorf("status %d, or another result", status)
	}
	if !b.Withdraw(first) || b.Withdraw(first) {
		t.Error("the result has not come, or comes twice")
	}

	p = b.open(second, 0, nil)
	got := make(chan []byte)
	go func() {
		_, text := b.fetch(p.Token)
		got <- text
	}()
	b.until("nobody waits", func(Stats) bool { b.mu.Lock(); defer b.mu.Unlock(); return b.byName[second].stage == fetched })
	m = message(second, 50)
	if err := b.Deliver(t.Context(), second, m); err != nil || !bytes.Equal(<-got, m) {
		t.Errorf("another task comes, or %v", err)
	}
	if b.Withdraw(second) {
		t.Error("a result has come that nobody has made")
	}
	b.until("something is left", func(s Stats) bool {
		return s.Fetched == 2 && s.Held == 0 && s.Open == 0
	})
	if s := b.Stats(); s.Answered != 1 || s.BytesOut != int64(200_000+len(m)) || s.BytesIn != 100_000 || s.AtMost != 1 || s.Refusals() > 0 {
		t.Errorf("%+v", s)
	}
}

// The certificate is the one whose fingerprint a ticket tells, and differs from
// endpoint to endpoint; nothing below TLS 1.3 is spoken, and no HTTP/2.
func TestCertificate(t *testing.T) {
	a, b := newBench(t, Options{}), newBench(t, Options{})
	p := a.open(attempt(1), 0, nil)
	c, err := tls.Dial("tcp", p.Address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if sum := sha256.Sum256(c.ConnectionState().PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != p.Fingerprint {
		t.Errorf("%x, want %s", sum, p.Fingerprint)
	}
	if q := b.open(attempt(1), 0, nil); q.Fingerprint == p.Fingerprint || q.Token == p.Token {
		t.Error("two endpoints have one secret")
	}
	for what, config := range map[string]*tls.Config{
		"TLS 1.2": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
		"HTTP/2":  {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
	} {
		if c, err := tls.Dial("tcp", p.Address, config); err == nil {
			_ = c.Close()
			t.Errorf("%s is spoken", what)
		}
	}
}

// Whoever asks for what is not his, or not in his turn, is refused, and counted by the
// reason; the ticket that he has tried to misuse is as good as before where he has not
// shown its token.
func TestRefused(t *testing.T) {
	const most = 1000
	good, other := attempt(1), attempt(2)
	result := message(good, 100)
	damaged := slices.Clone(result)
	damaged[20]++
	type request struct {
		method, path string
		body         []byte // nil: none
	}
	get, post := request{"GET", lambda.TaskPath, nil}, request{"POST", lambda.ResultPath, result}
	for name, c := range map[string]struct {
		prepare func(b bench, p *lambda.Pull)
		request
		status int
		why    Refusal
	}{
		"fetch without token":     {func(_ bench, p *lambda.Pull) { p.Token = "" }, get, 401, NoToken},
		"answer without token":    {func(_ bench, p *lambda.Pull) { p.Token = "" }, post, 401, NoToken},
		"fetch with wrong token":  {func(_ bench, p *lambda.Pull) { p.Token = "A" + p.Token[1:] + "A" }, get, 401, Wrong},
		"answer with wrong token": {func(_ bench, p *lambda.Pull) { p.Token = p.Token[1:] }, post, 401, Wrong},
		"fetch twice":             {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, get, 409, Reused},
		"answer twice":            {func(b bench, p *lambda.Pull) { b.fetch(p.Token); b.answer(p.Token, result); b.result() }, post, 409, Reused},
		"replay after the end": {func(b bench, p *lambda.Pull) {
			b.fetch(p.Token)
			b.answer(p.Token, result)
			b.result()
			b.Withdraw(good)
		}, post, 409, Reused},
		"replayed fetch": {func(b bench, p *lambda.Pull) {
			b.fetch(p.Token)
			b.answer(p.Token, result)
			b.result()
			b.Withdraw(good)
		}, get, 409, Reused},
		"answer before fetch":     {func(bench, *lambda.Pull) {}, post, 409, Early},
		"fetch after withdrawal":  {func(b bench, _ *lambda.Pull) { b.Withdraw(good) }, get, 410, Withdrawn},
		"answer after withdrawal": {func(b bench, p *lambda.Pull) { b.fetch(p.Token); b.Withdraw(good) }, post, 410, Withdrawn},
		"fetch too late":          {func(b bench, _ *lambda.Pull) { b.end(b.byName[good], Expired) }, get, 410, Expired},
		"answer too late":         {func(b bench, p *lambda.Pull) { b.fetch(p.Token); b.end(b.byName[good], Expired) }, post, 410, Expired},
		"result of another task": {func(b bench, p *lambda.Pull) {
			*p = b.open(other, most, message(other, 100))
			b.fetch(p.Token)
		}, post, 403, OtherTask},
		"large result":        {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, request{"POST", lambda.ResultPath, message(good, most+1)}, 413, Oversized},
		"result of no length": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, request{"POST", lambda.ResultPath, result}, 400, Malformed},
		"empty result":        {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, request{"POST", lambda.ResultPath, nil}, 400, Malformed},
		"damaged result":      {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, request{"POST", lambda.ResultPath, damaged}, 400, Malformed},
		"no result":           {func(b bench, p *lambda.Pull) { b.fetch(p.Token) }, request{"POST", lambda.ResultPath, []byte("no result")}, 400, Malformed},
		"fetch with body":     {func(bench, *lambda.Pull) {}, request{"GET", lambda.TaskPath, result}, 400, Malformed},
		"other path":          {func(bench, *lambda.Pull) {}, request{"GET", "/", nil}, 400, Malformed},
		"other method":        {func(bench, *lambda.Pull) {}, request{"PUT", lambda.ResultPath, result}, 400, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			p := b.open(good, most, message(good, 100))
			c.prepare(b, &p)
			var body io.Reader
			if c.body != nil {
				body = bytes.NewReader(c.body)
			}
			if name == "result of no length" {
				body = io.MultiReader(body)
			}
			status, text, err := b.do(c.method, c.path, p.Token, body)
			if status != c.status || err != nil || strings.TrimSpace(string(text)) != hints[c.why].text {
				t.Errorf("status %d, want %d: %s %v", status, c.status, text, err)
			}
			b.refusedOnly(map[Refusal]int{c.why: 1})
			select {
			case <-b.results:
				t.Error("a refused result comes")
			default:
			}
			b.Withdraw(good)
			b.Withdraw(other)
			b.until("something is left", func(s Stats) bool { return s.Held == 0 && s.Open == 0 })
		})
	}
}

// A function that waits for its task is told when the ticket ends.
func TestWaiting(t *testing.T) {
	b := newBench(t, Options{Life: time.Hour})
	for why, end := range map[Refusal]func(){
		Withdrawn: func() { b.Withdraw(attempt(1)) },
		Expired:   func() { b.mu.Lock(); x := b.byName[attempt(1)]; b.mu.Unlock(); b.end(x, Expired) },
	} {
		p := b.open(attempt(1), 0, nil)
		status := make(chan int)
		go func() {
			s, _ := b.fetch(p.Token)
			status <- s
		}()
		b.until("nobody waits", func(Stats) bool { b.mu.Lock(); defer b.mu.Unlock(); return b.byName[attempt(1)].stage == fetched })
		end()
		if s := <-status; s != 410 {
			t.Errorf("%v: status %d", why, s)
		}
	}
	b.refusedOnly(map[Refusal]int{Withdrawn: 1, Expired: 1})
	if err := b.Deliver(t.Context(), attempt(1), message(attempt(1), 100)); err != ErrNoTicket || b.Stats().Held > 0 {
		t.Errorf("a task without a ticket: %v, %+v", err, b.Stats())
	}
}

// Each refusal has a name of its own, and those that a request gets to hear a status.
func TestTold(t *testing.T) {
	var s Stats
	names := map[string]bool{}
	for why := range refusals {
		s.Refused[why]++
		names[why.String()] = true
		if silent := why == Crowded || why == Silent; (hints[why].status < 400) != silent {
			t.Errorf("%v: %+v", why, hints[why])
		}
	}
	if told := s.Told(); len(names) != int(refusals) || strings.Count(told, ",") != len(names)-1 || names[""] || !strings.HasPrefix(told, "1 without token, 1 wrong token") {
		t.Errorf("%d names: %s", len(names), told)
	}
}

// A ticket ends by itself, and its memory is free.
func TestLife(t *testing.T) {
	b := newBench(t, Options{Life: 20 * time.Millisecond})
	p := b.open(attempt(1), 0, message(attempt(1), 100))
	b.until("the ticket lives", func(s Stats) bool { return s.Open == 0 })
	if status, _ := b.fetch(p.Token); status != 410 || b.Stats().Held > 0 || b.Withdraw(attempt(1)) {
		t.Errorf("status %d, %+v", status, b.Stats())
	}
	b.refusedOnly(map[Refusal]int{Expired: 1})
}

// An attempt has one ticket at a time, whose task comes once.
func TestTwice(t *testing.T) {
	b := newBench(t, Options{})
	m := message(attempt(1), 100)
	b.open(attempt(1), 0, m)
	if _, err := b.Expect(attempt(1), 0, b.take); err != ErrOpen {
		t.Error(err)
	}
	if err := b.Deliver(t.Context(), attempt(1), m); err != ErrNoTicket || b.Stats().Held != int64(len(m)) {
		t.Errorf("a second task: %v", err)
	}
	b.Withdraw(attempt(1))
	b.open(attempt(1), 0, m)
}

// Reasons of old tickets are forgotten, not kept for ever.
func TestGraves(t *testing.T) {
	g := graves{why: map[string]Refusal{}}
	for i := range 3 * len(g.ring) {
		g.add(fmt.Sprint(i), Withdrawn)
	}
	if len(g.why) != len(g.ring) || g.of(fmt.Sprint(3*len(g.ring)-1)) != Withdrawn || g.of("0") != Wrong {
		t.Errorf("%d reasons", len(g.why))
	}
}

// Tasks that find no memory wait for it, in their order; a task that is larger than all
// of it is refused at once.
func TestMemoryOfTasks(t *testing.T) {
	b := newBench(t, Options{Memory: 2000})
	var tokens []string
	for i := range 4 {
		tokens = append(tokens, b.open(attempt(i), 0, nil).Token)
	}
	deliver := func(ctx context.Context, i int) error {
		return b.Deliver(ctx, attempt(i), message(attempt(i), 400))
	}
	if err := errors.Join(deliver(t.Context(), 0), deliver(t.Context(), 1)); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	end := make(chan error)
	go func() { end <- deliver(gone, 2) }()
	b.until("the third does not wait", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return len(b.tasks.row) == 1 })
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("a task that was given up: %v", err)
	}
	go func() { end <- deliver(t.Context(), 2) }()
	b.until("the third does not wait again", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return len(b.tasks.row) == 1 })
	b.Withdraw(attempt(2))
	if err := <-end; err != ErrNoTicket {
		t.Errorf("a task whose ticket has ended: %v", err)
	}
	go func() { end <- deliver(t.Context(), 3) }()
	b.until("the fourth does not wait", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return len(b.tasks.row) == 1 })
	if status, _ := b.fetch(tokens[0]); status != 200 {
		t.Error(status)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	if s := b.Stats(); s.Held != 800 || s.MostHeld != 800 {
		t.Errorf("%+v", s)
	}
	if err := b.Deliver(t.Context(), attempt(2), message(attempt(2), 1001)); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "--intervals") {
		t.Errorf("a large task: %v", err)
	}
}

// Results that nobody reads are as many as there is memory for; others are refused
// when they have waited.
func TestMemoryOfResults(t *testing.T) {
	t.Parallel() // most of it is waiting
	b := newBench(t, Options{Memory: 2000, Grace: grace})
	statuses := map[int]int{}
	for i := range 3 {
		m := message(attempt(i), 400)
		p := b.open(attempt(i), 0, m)
		b.fetch(p.Token)
		statuses[b.answer(p.Token, m)]++
	}
	if s := b.Stats(); statuses[204] != 2 || statuses[503] != 1 || s.Answered != 2 || s.Held != 800 || b.answers.most != 800 {
		t.Errorf("%v, %+v", statuses, s)
	}
	b.refusedOnly(map[Refusal]int{Full: 1})
	b.result()
	b.result()
	b.until("results are held that were taken", func(s Stats) bool { return s.Held == 0 })
	if !b.Withdraw(attempt(0)) || b.Withdraw(attempt(2)) {
		t.Error("a refused result has come, or another one has not")
	}
}

// raw is a connection with TLS of one's own.
func (b bench) raw() net.Conn {
	b.t.Helper()
	c, err := tls.Dial("tcp", b.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Who reads or writes too slowly is cut off, and what he has held is free; so is who
// goes away in the middle.
func TestSlow(t *testing.T) {
	o := Options{Grace: grace, Rate: 1 << 40}
	const large = 32 << 20 // more than buffers between two sockets hold
	for name, c := range map[string]struct {
		do  func(t *testing.T, b bench, token string)
		why Refusal
	}{
		"reader": {func(t *testing.T, b bench, token string) {
			fmt.Fprintf(b.raw(), "GET /task HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
		}, Slow},
		"writer": {func(t *testing.T, b bench, token string) {
			b.fetch(token)
			fmt.Fprintf(b.raw(), "POST /result HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nAuthorization: Bearer %s\r\n\r\nhalf", token)
		}, Slow},
		"reader that goes": {func(t *testing.T, b bench, token string) {
			c := b.raw()
			fmt.Fprintf(c, "GET /task HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
			_, _ = io.ReadFull(c, make([]byte, 1000))
			_ = c.Close()
		}, Broken},
		"writer that goes": {func(t *testing.T, b bench, token string) {
			b.fetch(token)
			c := b.raw()
			fmt.Fprintf(c, "POST /result HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nAuthorization: Bearer %s\r\n\r\nhalf", token)
			_ = c.Close()
		}, Broken},
		"header": {func(t *testing.T, b bench, token string) { fmt.Fprint(b.raw(), "GET /task HT") }, Silent},
		"handshake": {func(t *testing.T, b bench, token string) {
			c, err := net.Dial("tcp", b.Address())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
		}, Silent},
		"long header": {func(t *testing.T, b bench, token string) {
			fmt.Fprintf(b.raw(), "GET /task HTTP/1.1\r\nX: %s\r\n\r\n", strings.Repeat("x", 4*headerBytes))
		}, Silent},
		"no TLS": {func(t *testing.T, b bench, token string) {
			if answer, err := http.Get("http://" + b.Address() + "/task"); err == nil {
				_ = answer.Body.Close()
			}
		}, Silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			o := o
			if strings.HasSuffix(name, "goes") {
				o.Grace = patience
			}
			size := 100
			if strings.HasPrefix(name, "reader") {
				size = large
			}
			b := newBench(t, o)
			p := b.open(attempt(1), 0, message(attempt(1), size))
			c.do(t, b, p.Token)
			b.until("nobody is cut off", func(s Stats) bool { return s.Refusals() > 0 })
			b.refusedOnly(map[Refusal]int{c.why: 1})
			b.client.CloseIdleConnections()
			b.until("a connection is left", func(s Stats) bool { return s.Connections == 0 })
			b.Withdraw(attempt(1))
			if s := b.Stats(); s.Held > 0 {
				t.Errorf("%+v: memory is left", s)
			}
		})
	}
}

// A thousand connections of strangers cost no more than the bound allows, and those
// above it are turned away; when they have gone, functions are served as before.
func TestThousandConnections(t *testing.T) {
	const bound, strangers = 40, 1000
	b := newBench(t, Options{Connections: bound, Grace: patience})
	before := runtime.NumGoroutine()
	for range strangers {
		c, err := net.Dial("tcp", b.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	b.until("not all are turned away", func(s Stats) bool { return s.Refused[Crowded] == strangers-bound })
	if s := b.Stats(); s.Connections != bound || s.AtMost != bound || runtime.NumGoroutine()-before > 2*bound {
		t.Errorf("%+v, %d goroutines more", s, runtime.NumGoroutine()-before)
	}
}

// A thousand functions at once, each with a connection, are all served.
func TestThousandFunctions(t *testing.T) {
	functions := 1000
	if testing.Short() {
		functions = 50
	}
	b := newBench(t, Options{Connections: functions, Grace: time.Minute})
	done := make(chan error)
	for i := range functions {
		m := message(attempt(i), 1000)
		p := b.open(attempt(i), 0, m)
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		f := bench{b.Endpoint, t, &http.Client{Transport: transport}, b.results}
		go func() {
			status, got, err := f.do("GET", lambda.TaskPath, p.Token, nil)
			if status != 200 || !bytes.Equal(got, m) {
				done <- fmt.Errorf("fetch: %d %v", status, err)
				return
			}
			if status, _, err = f.do("POST", lambda.ResultPath, p.Token, bytes.NewReader(m)); status != 204 {
				err = fmt.Errorf("answer: %d %w", status, err)
			}
			done <- err
		}()
	}
	seen := map[int]bool{}
	for ends := 0; ends < functions || len(seen) < functions; {
		select {
		case err := <-done:
			ends++
			if err != nil {
				t.Fatal(err)
			}
		case r := <-b.results:
			name, err := task.NameOf(r)
			if err != nil || seen[name.Attempt] {
				t.Fatalf("%v comes twice: %v", name, err)
			}
			seen[name.Attempt] = true
		case <-time.After(patience):
			t.Fatalf("%d ends, %d results: %+v", ends, len(seen), b.Stats())
		}
	}
	if s := b.Stats(); s.Refusals() > 0 || s.Answered != functions || s.Fetched != functions || s.AtMost != functions {
		t.Errorf("%+v", s)
	}
}

// Close ends a function that waits, one that is bringing its result, a task that waits
// for memory, a result that waits for a reader and a connection that says nothing; no
// goroutine is left.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	b := newBench(t, Options{Memory: 2000, Grace: time.Hour})
	m := message(attempt(1), 900)
	ends := make(chan error)

	p := b.open(attempt(1), 0, m)
	b.fetch(p.Token)
	b.answer(p.Token, m) // nobody reads it
	waits := b.open(attempt(2), 0, nil)
	go func() {
		_, _, err := b.do("GET", lambda.TaskPath, waits.Token, nil)
		ends <- err
	}()
	p = b.open(attempt(3), 0, message(attempt(3), 100))
	b.fetch(p.Token)
	half := b.raw()
	fmt.Fprintf(half, "POST /result HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer %s\r\n\r\nhalf", p.Token)
	b.until("half a result has no room", func(Stats) bool { held, _ := b.answers.now(); return held == 900+100 })
	p = b.open(attempt(4), 0, message(attempt(4), 600))
	b.fetch(p.Token)
	go func() {
		_, _, err := b.do("POST", lambda.ResultPath, p.Token, bytes.NewReader(message(attempt(4), 600)))
		ends <- err
	}()
	b.open(attempt(5), 0, message(attempt(5), 900))
	b.open(attempt(6), 0, nil)
	go func() { ends <- b.Deliver(context.Background(), attempt(6), message(attempt(6), 900)) }()
	silent, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	b.until("not all of them wait", func(s Stats) bool {
		b.mu.Lock()
		stages := b.byName[attempt(2)].stage == fetched && b.byName[attempt(3)].stage == answering
		b.mu.Unlock()
		rows := 0
		for _, r := range []*room{b.tasks, b.answers} {
			r.mu.Lock()
			rows += len(r.row)
			r.mu.Unlock()
		}
		return stages && rows == 2 && s.Connections >= 4
	})

	closed := make(chan error)
	go func() { closed <- b.Close() }()
	for range 3 {
		select {
		case err := <-ends: // a refusal, an error of the connection, or ErrClosed
			if err != nil && strings.Contains(err.Error(), "Timeout") {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("somebody still waits")
		}
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Close waits")
	}
	if s := b.Stats(); s.Held > 0 || s.Open > 0 || s.Connections > 0 {
		t.Errorf("%+v is left", s)
	}
	if err := b.Deliver(t.Context(), attempt(6), m); err != ErrClosed {
		t.Error(err)
	}
	if _, err := b.Expect(attempt(7), 0, b.take); err != ErrClosed {
		t.Error(err)
	}
	if b.Close() != nil {
		t.Error("a second Close fails")
	}
	b.client.CloseIdleConnections()
	_ = half.Close()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			all := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", all[:runtime.Stack(all, true)])
		}
	}
}

// An endpoint that listens on all addresses tells functions the machine's own, unless
// it was told another one, or says that it finds none.
func TestAdvertised(t *testing.T) {
	own := func() (string, error) { return "192.0.2.7", nil }
	for _, c := range [][3]string{
		{"127.0.0.1:8", "", "127.0.0.1:8"},
		{"[::]:8", "", "192.0.2.7:8"},
		{"0.0.0.0:8", "", "192.0.2.7:8"},
		{"0.0.0.0:8", ":9", "192.0.2.7:9"},
		{"[::]:8", "example.org:0", "example.org:8"},
	} {
		if got, err := advertised(c[0], c[1], own); got != c[2] || err != nil {
			t.Errorf("%s,%s: %s %v", c[0], c[1], got, err)
		}
	}
	none := func() (string, error) { return "", errors.New("no network") }
	if got, err := advertised("[::]:8", "", none); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "LISTEN,ADVERTISED") {
		t.Errorf("%s %v", got, err)
	}
	if host, err := outward(); err == nil && net.ParseIP(host) == nil {
		t.Errorf("the machine's address is %q", host)
	}
}

// An endpoint listens where it was told to, tells functions what it was told to tell,
// and says what it cannot do.
func TestAddress(t *testing.T) {
	b := newBench(t, Options{Listen: "127.0.0.1:0"})
	_, port, _ := net.SplitHostPort(b.Address())
	for _, c := range []struct{ listen, advertise, want string }{
		{"", "", "127.0.0.1:"},
		{"127.0.0.1:0", "example.org:443", "example.org:443"},
		{"127.0.0.1:0", "example.org:0", "example.org:"},
		{"[::]:0", "[2001:db8::1]:7", "[2001:db8::1]:7"},
		{"127.0.0.1:0", "here", "!host:port"},
		{"203.0.113.1:0", "", "!203.0.113.1:0"},
		{"127.0.0.1:" + port, "", "!port 0"},
	} {
		e, err := Start(Options{Listen: c.listen, Advertise: c.advertise})
		want, fails := strings.CutPrefix(c.want, "!")
		switch {
		case fails && (fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), want)):
			t.Errorf("%+v: %v", c, err)
		case !fails && (err != nil || !strings.HasPrefix(e.Address(), want) || strings.HasSuffix(e.Address(), ":0")):
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			_ = e.Close()
		}
	}
}
