package local

import (
	"math"
	"testing"
	"time"
)

// "Each Lambda is a container with 0.11 vCPUs and 192 MB memory." (§7) The service gives
// one vCPU at 1,769 MB; a busy sandbox gets its share, and not a tenth more.
func TestProcessorShareOfThePaper(t *testing.T) {
	share := VCPU(192)
	if math.Abs(share-0.11) > 0.005 || VCPU(1769) != 1 {
		t.Errorf("192 MB are %v processors", share)
	}
	b := newBench(t, Options{Memory: 192, Limits: Limits{Processor: true}})
	const cpu = 150 * time.Millisecond
	want := time.Duration(float64(cpu-most(share)) / share)
	b.pid(t, job{})
	within(t, want*90/100, want*110/100, func() burnt { return b.burns(t, cpu) })
	free := newBench(t, Options{Memory: 192})
	within(t, cpu/2, want/2, func() burnt { return free.burns(t, cpu) })
}

// "the per-Lambda bandwidth goes down as the number of Lambdas increases. For example,
// for each GS, when the number of Lambdas it launches reaches 100, the per-Lambda
// bandwidth drops to ~200Mbps, which is more than 3x lower than the peak bandwidth we
// have observed (~800Mbps)." (§6)
func TestBandwidthOfThePaper(t *testing.T) {
	if Bandwidth(1) != 800e6 || Bandwidth(100) != 200e6 || Bandwidth(1000) != 200e6 {
		t.Errorf("%v, %v, %v bit/s", Bandwidth(1), Bandwidth(100), Bandwidth(1000))
	}
	for n := 2; n <= 100; n++ {
		if Bandwidth(n) >= Bandwidth(n-1) {
			t.Errorf("%d functions have no less than %d", n, n-1)
		}
	}
	target := source(t)
	b := newBench(t, Options{Concurrency: 100, Limits: Limits{Bandwidth: true}})
	for _, others := range []int{0, 99} {
		b.count(func(*Stats) { b.running += others })
		const n = 16 << 20
		want := time.Duration(n * 8 / Bandwidth(1+others) * float64(time.Second))
		d := result[time.Duration](t, b, job{Do: "fetch", Target: target, N: n})
		t.Logf("beside %d others %.0f Mbit/s, want %.0f", others, n*8/d.Seconds()/1e6, Bandwidth(1+others)/1e6)
		if d < want-lateness {
			t.Errorf("beside %d others it takes %v, want %v", others, d, want)
		}
		// A busy machine may be slower than the limit. The limit itself is not.
		b.count(func(*Stats) { b.running++ })
		if d := waits(b.newBucket(&sandbox{}), n); d < want-lateness || d > want {
			t.Errorf("beside %d others the waits of %d bytes are %v, want %v", others, n, d, want)
		}
		b.count(func(*Stats) { b.running -= others + 1 })
	}
	eventually(t, "the relay has counted less", func() bool { return b.Stats().Relayed >= 2*16<<20 })
}

// waits returns how long the bucket delays n bytes of a stream that takes no time itself.
func waits(b *bucket, n int) time.Duration {
	start := time.Now()
	now := start
	for ; n > 0; n -= pieceBytes {
		now = now.Add(b.take(now, float64(min(n, pieceBytes))))
	}
	return now.Sub(start)
}
