package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels/task"
	"siafu/lambda"
)

// raw returns a separate TLS connection.
func (b bench) raw() net.Conn {
	b.t.Helper()
	c, err := tls.Dial("tcp", b.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// A client that reads or writes too slowly is cut off, and its memory is freed. The same happens
// to a client that disconnects in the middle.
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
				o.Grace = hosttest.Patience
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

// A thousand connections of strangers cost no more than the limit allows, and further ones are
// rejected. After they close, functions are served again.
func TestThousandConnections(t *testing.T) {
	const bound, strangers = 40, 1000
	b := newBench(t, Options{Connections: bound, Grace: hosttest.Patience})
	before := runtime.NumGoroutine()
	for range strangers {
		c, err := net.Dial("tcp", b.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	b.until("not all are turned away", func(s Stats) bool { return s.Refused[Crowded] == strangers-bound })
	if s := b.Stats(); s.Connections != bound || s.PeakConnections != bound || runtime.NumGoroutine()-before > 2*bound {
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
		case <-time.After(hosttest.Patience):
			t.Fatalf("%d ends, %d results: %+v", ends, len(seen), b.Stats())
		}
	}
	if s := b.Stats(); s.Refusals() > 0 || s.Answered != functions || s.Fetched != functions || s.PeakConnections != functions {
		t.Errorf("%+v", s)
	}
}

// Close ends a waiting function, a function that is sending its result, a task that waits for
// memory, a result that waits for a reader and an idle connection. No goroutine is left.
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
	b.until("no memory is reserved for half a result", func(Stats) bool { held, _ := b.answers.now(); return held == 900+100 })
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
		for _, r := range []*memory{b.tasks, b.answers} {
			r.mu.Lock()
			rows += r.waiting
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
		case <-time.After(hosttest.Patience):
			t.Fatal("somebody still waits")
		}
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hosttest.Patience):
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
	for end := time.Now().Add(hosttest.Patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			all := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", all[:runtime.Stack(all, true)])
		}
	}
}
