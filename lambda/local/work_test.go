package local

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// burnt has the wall time of some CPU time, and how long the process waited for a processor.
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

// waited returns how long this process was ready to run but did not.
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

// hoard makes that many MB resident for a moment.
func hoard(mb int) []byte {
	all := make([]byte, mb<<20)
	for i := 0; i < len(all); i += 4096 {
		all[i] = 1
	}
	return all
}

// fetch reads n bytes from an address through the relay, with the client of net/http, and
// returns the time.
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

// source sends the number of bytes in the path, over TLS.
func source(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		_, _ = w.Write(make([]byte, n))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// note writes the number of the process to a file.
func note(path string) (any, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, os.Getpid())
	return os.Getpid(), err
}

// result returns the answer to a job.
func result[T any](t *testing.T, b bench, w job) (r T) {
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

// burns returns the wall time of some CPU time.
func (b bench) burns(t *testing.T, cpu time.Duration) (d burnt) {
	t.Helper()
	d = result[burnt](t, b, job{Do: "burn", N: int(cpu.Milliseconds())})
	t.Logf("%v of CPU time take %v, and %v of it other programs had the processors", cpu, d.Wall, d.Waited)
	return d
}

// within repeats a measurement until it is in the range, because other programs use the
// processors too.
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
