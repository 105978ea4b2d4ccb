package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels/task"
	"siafu/lambda"
)

// grace is the time until connections are cut off.
const grace = 2 * time.Second

// message returns a message of n bytes with a name, like tasks and results.
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

// take receives a result at the end of the test or of the endpoint.
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
	return bench{e, t, &http.Client{Transport: transport, Timeout: hosttest.Patience}, make(chan []byte)}
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

// result returns the next result.
func (b bench) result() []byte {
	b.t.Helper()
	select {
	case r := <-b.results:
		return r
	case <-time.After(hosttest.Patience):
		b.t.Fatal("no result comes")
		return nil
	}
}

// until waits for a condition of the endpoint's statistics.
func (b bench) until(what string, ok func(Stats) bool) {
	b.t.Helper()
	for end := time.Now().Add(hosttest.Patience); !ok(b.Stats()); {
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
