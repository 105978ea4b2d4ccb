package local

import (
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits give sandboxes the resource limits of the service. The zero value has none.
type Limits struct {
	Memory    bool             // end a sandbox that exceeds Options.Memory
	Processor bool             // limit a sandbox to VCPU(Options.Memory) processors
	Bandwidth bool             // limit a sandbox to Bandwidth(running invocations) in each direction
	Cold      [2]time.Duration // bounds of the delay before a new sandbox takes work
	Burst     int              // new sandboxes within BurstTime; 0: any number
}

// BurstTime is the time until the service again allows Limits.Burst new sandboxes.
const BurstTime = 10 * time.Second

// LikeAWS returns limits such as the service's: 1,000 new sandboxes in ten seconds, and cold starts
// of 100 to 300 ms, which are typical of a small static executable.
func LikeAWS() Limits {
	return Limits{
		Memory: true, Processor: true, Bandwidth: true, Burst: 1000,
		Cold: [2]time.Duration{100 * time.Millisecond, 300 * time.Millisecond},
	}
}

// cold returns the cold-start delay of the n-th new sandbox.
func (l Limits) cold(seed uint64, n int) time.Duration {
	least, most := l.Cold[0], l.Cold[1]
	if most <= least {
		return least
	}
	return least + time.Duration(rand.New(rand.NewPCG(seed, ^uint64(n))).Int64N(int64(most-least)))
}

// VCPU returns the number of processors of a function with N MB.
func VCPU(memory int) float64 { return float64(memory) / 1769 }

// The bandwidth of a function, in bit/s, alone and where many run (Dorylus, §6).
const (
	peakBandwidth  = 800e6
	leastBandwidth = 200e6
	manyFunctions  = 100
)

// Overhead is the assumed time of an invocation in seconds, in addition to its work and transfers.
const Overhead = 0.01

// Bandwidth returns the bandwidth of each of N functions in bit/s. Dorylus (§6) gives both
// ends; it is interpolated linearly between them.
func Bandwidth(functions int) float64 {
	n := min(max(functions, 1), manyFunctions)
	return peakBandwidth - (peakBandwidth-leastBandwidth)*float64(n-1)/(manyFunctions-1)
}

// bucket is a token bucket, whose unused tokens expire after a bounded time.
type bucket struct {
	rate  func() float64 // tokens a second
	depth time.Duration  // the bucket holds at most the tokens of this time

	mu   sync.Mutex
	paid time.Time // when all taken tokens will have arrived
}

// after returns when n more tokens will have arrived. Called under the lock.
func (b *bucket) after(now time.Time, n float64) time.Time {
	if full := now.Add(-b.depth); b.paid.Before(full) {
		b.paid = full
	}
	return b.paid.Add(time.Duration(n / b.rate() * float64(time.Second)))
}

// take takes n tokens, and returns how long the caller must wait for them.
func (b *bucket) take(now time.Time, n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = b.after(now, n)
	return max(b.paid.Sub(now), 0)
}

// has takes one token if it is available.
func (b *bucket) has(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.after(now, 1)
	if at.After(now) {
		return false
	}
	b.paid = at
	return true
}

// newBurst returns the bucket of new sandboxes, or nil if their number is unlimited.
func (l Limits) newBurst() *bucket {
	if l.Burst <= 0 {
		return nil
	}
	each := float64(l.Burst) / BurstTime.Seconds()
	return &bucket{rate: func() float64 { return each }, depth: BurstTime}
}

// A paced stream transfers pieceBytes at once. A waiter may wake up late by lateness without loss of
// bandwidth.
const (
	pieceBytes = 32 << 10
	lateness   = 5 * time.Millisecond
)

// paced is a stream that is limited to the rate of a bucket; without a bucket it is unlimited.
type paced struct {
	io.Reader
	io.Writer
	bucket  *bucket
	ended   <-chan struct{} // closed when the wait ends
	written *atomic.Int64   // counts the bytes that the bucket let through; may be nil
}

func (p paced) Read(data []byte) (int, error) {
	if p.bucket == nil {
		return p.Reader.Read(data)
	}
	n, err := p.Reader.Read(data[:min(len(data), pieceBytes)])
	p.wait(n)
	return n, err
}

func (p paced) Write(data []byte) (written int, err error) {
	if p.bucket == nil {
		return p.Writer.Write(data)
	}
	for piece := range slices.Chunk(data, pieceBytes) {
		p.wait(len(piece))
		n, err := p.Writer.Write(piece)
		if p.written != nil {
			p.written.Add(int64(n))
		}
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

func (p paced) wait(n int) {
	if d := p.bucket.take(time.Now(), float64(n)); d > 0 {
		sleep(d, p.ended)
	}
}

// sleep waits for a time, or until ended is closed.
func sleep(d time.Duration, ended <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ended:
	}
}
