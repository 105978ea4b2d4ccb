package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"
)

// Payloads have the available bandwidth.
func TestBandwidthOfPayloads(t *testing.T) {
	b := newBench(t, Options{Concurrency: 2 * manyFunctions, Limits: Limits{Bandwidth: true}})
	b.pid(t, job{})
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
	if f := back.failed(t, job{Do: "large"}); f.Type != "Function.ResponseSizeTooLarge" || time.Since(began) < 250*time.Millisecond {
		t.Errorf("an answer of 6 MiB takes %v: %+v", time.Since(began), f)
	}
	back.count(func(*Stats) { back.running -= manyFunctions })
}

// The relay accepts only this user's processes, and only allowed targets.
func TestRelayRefuses(t *testing.T) {
	b := newBench(t, Options{Limits: Limits{Bandwidth: true}, Targets: []string{"192.0.2.1:443"}})
	b.pid(t, job{})
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
	if out, err := off.invoke(job{Do: "environment"}); err != nil || bytes.Contains(out.Payload, []byte(RelayVariable)) {
		t.Errorf("%q %v", out.Payload, err)
	}
}

// Another user of the machine is rejected.
func TestRelayIsNotForStrangers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	b := newBench(t, Options{Limits: Limits{Bandwidth: true}})
	b.pid(t, job{})
	var relay string
	for _, box := range b.sandboxes {
		relay = box.relayAddress
	}
	host, port, _ := net.SplitHostPort(relay)
	target := source(t)
	for uid, want := range map[uint32]string{0: "200", 65534: "403"} {
		ask := exec.Command("bash", "-c",
			`exec 3<>/dev/tcp/$1/$2; printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' $3 $3 >&3; head -n 1 <&3`, "-", host, port, target)
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
	if f := b.failed(t, job{Do: "fetch", Target: l.Addr().String()}); f.Type != "Sandbox.Timedout" {
		t.Errorf("%+v", f)
	}
	if err := <-ended; err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v", err)
	}
}
