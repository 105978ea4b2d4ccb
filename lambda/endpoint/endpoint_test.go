package endpoint

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/lambda"
)

// A function fetches its task, whichever of them is first, and its result arrives. One
// connection is enough.
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
	if s := b.Stats(); s.Answered != 1 || s.BytesOut != int64(200_000+len(m)) || s.BytesIn != 100_000 ||
		s.PeakConnections != 1 || s.Refusals() > 0 {
		t.Errorf("%+v", s)
	}
}

// The certificate has the fingerprint in the ticket, and differs between endpoints. Only TLS 1.3
// is accepted, and no HTTP/2.
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

// Requests for the wrong resource or in the wrong order are refused, and counted by reason.
// Without its token such a request does not affect a ticket.
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
		"answer twice": {func(b bench,
			p *lambda.Pull) {
			b.fetch(p.Token)
			b.answer(p.Token, result)
			b.result()
		}, post, 409, Reused},
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
		"large result": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) },
			request{"POST", lambda.ResultPath, message(good, most+1)}, 413, Oversized},
		"result of no length": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) },
			request{"POST", lambda.ResultPath, result}, 400, Malformed},
		"empty result": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) },
			request{"POST", lambda.ResultPath, nil}, 400, Malformed},
		"damaged result": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) },
			request{"POST", lambda.ResultPath, damaged}, 400, Malformed},
		"no result": {func(b bench, p *lambda.Pull) { b.fetch(p.Token) },
			request{"POST", lambda.ResultPath, []byte("no result")}, 400, Malformed},
		"fetch with body": {func(bench, *lambda.Pull) {}, request{"GET", lambda.TaskPath, result}, 400, Malformed},
		"other path":      {func(bench, *lambda.Pull) {}, request{"GET", "/", nil}, 400, Malformed},
		"other method":    {func(bench, *lambda.Pull) {}, request{"PUT", lambda.ResultPath, result}, 400, Malformed},
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
			if status != c.status || err != nil || strings.TrimSpace(string(text)) != refusalInfos[c.why].text {
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

// A waiting function gets a response when the ticket ends.
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

// Each refusal has a distinct name, and each refusal of a request has a status.
func TestTold(t *testing.T) {
	var s Stats
	names := map[string]bool{}
	for why := range refusals {
		s.Refused[why]++
		names[why.String()] = true
		if silent := why == Crowded || why == Silent; (refusalInfos[why].status < 400) != silent {
			t.Errorf("%v: %+v", why, refusalInfos[why])
		}
	}
	if told := s.RefusalSummary(); len(names) != int(refusals) || strings.Count(told, ",") != len(names)-1 || names[""] ||
		!strings.HasPrefix(told, "1 without token, 1 wrong token") {
		t.Errorf("%d names: %s", len(names), told)
	}
}

// An endpoint that listens on all addresses advertises the address of the machine, unless
// another one is given, or fails if it finds none.
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
	if got, err := advertised("[::]:8", "", none); fault.KindOf(err) != fault.Config ||
		!strings.Contains(err.Error(), "LISTEN,ADVERTISED") {
		t.Errorf("%s %v", got, err)
	}
	if host, err := outward(); err == nil && net.ParseIP(host) == nil {
		t.Errorf("the machine's address is %q", host)
	}
}

// An endpoint listens on the given address, advertises the given address, and reports impossible
// ones.
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
