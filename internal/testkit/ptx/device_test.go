package ptx

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"siafu/cuda/device"
)

// TestMemory: allocations beyond the memory fail, and freed memory is available again.
func TestMemory(t *testing.T) {
	d := New(Settings{Memory: 1000})
	defer d.Close()
	p, err := d.Alloc(600)
	if err != nil || p%256 != 0 {
		t.Fatalf("%#x, %v", p, err)
	}
	if _, err := d.Alloc(600); !errors.Is(err, device.ErrMemory) {
		t.Errorf("600 bytes of 400: %v", err)
	}
	if err := d.Free(p + 4); err == nil {
		t.Error("the middle of an allocation was freed")
	}
	if err := d.Free(p); err != nil {
		t.Error(err)
	}
	if err := d.Free(p); err == nil {
		t.Error("an allocation was freed twice")
	}
	if free, total, err := d.Memory(); free != 1000 || total != 1000 || err != nil {
		t.Errorf("%d of %d free, %v", free, total, err)
	}
	q, err := d.Alloc(600)
	if err != nil || q == p {
		t.Errorf("%#x again, %v", q, err)
	}
	d.Close()
	if _, err := d.Alloc(1); err == nil || d.Close() != nil {
		t.Error("an allocation on a closed device")
	}
}

// TestCopies: copies move bytes, and whether each was written.
func TestCopies(t *testing.T) {
	l := newLab(t, Settings{})
	p, q := l.empty(64), l.empty(64)
	want := make([]byte, 64)
	for i := range want {
		want[i] = byte(i)
	}
	l.ok(l.s.CopyIn(p, want[:13]))
	l.ok(l.s.CopyIn(p+13, want[13:50]))
	l.ok(l.s.Set(p+50, 9, 13))
	copy(want[50:], bytes.Repeat([]byte{9}, 13))
	l.ok(l.s.Copy(q+1, p, 63))
	got := make([]byte, 63)
	l.ok(l.s.CopyOut(got, q+1))
	if !bytes.Equal(got, want[:63]) {
		t.Errorf("%v, want %v", got, want[:63])
	}
	var f *Finding
	if err := l.s.CopyOut(got[:1], q); !errors.As(err, &f) || f.Kind != Uninitialised {
		t.Errorf("a copy of a byte before those written: %v", err)
	}
	l.ok(l.s.Copy(q, p+60, 4))
	if err := l.s.CopyOut(got[:4], q); !errors.As(err, &f) || f.Kind != Uninitialised || !strings.Contains(err.Error(), "byte 3") {
		t.Errorf("a copy of a byte that was not written where it came from: %v", err)
	}
	for name, err := range map[string]error{
		"in":    l.s.CopyIn(p+60, want[:5]),
		"out":   l.s.CopyOut(got[:5], p+60),
		"fill":  l.s.Set(p+64, 0, 1),
		"from":  l.s.Copy(q, p+1, 64),
		"to":    l.s.Copy(q+1, p, 64),
		"early": l.s.CopyIn(p-1, want[:1]),
		"none":  l.s.CopyIn(0, want[:1]),
		"large": l.s.Set(p, 0, -1),
	} {
		if !errors.As(err, &f) || f.Kind != OutOfBounds {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.s.Copy(p+8, p, 16); err == nil {
		t.Error("a copy onto itself")
	}
	l.ok(l.s.Copy(p+16, p, 16))
	l.ok(l.s.CopyIn(p+64, nil))
	l.ok(l.s.Synchronize())
}

// TestCopyInHasReadItsSource changes the source before the stream has run.
func TestCopyInHasReadItsSource(t *testing.T) {
	l := newLab(t, Settings{})
	p, b := l.empty(1), []byte{1}
	l.ok(l.s.CopyIn(p, b))
	b[0] = 2
	l.ok(l.s.CopyOut(b, p))
	if b[0] != 1 {
		t.Errorf("%d, want 1", b[0])
	}
}

// TestStreams: a stream waits for another by an event; without the event, reads that are too
// early are found.
func TestStreams(t *testing.T) {
	for _, waits := range []bool{true, false} {
		l := newLab(t, Settings{})
		other, err := l.d.NewStream()
		l.ok(err)
		e, err := l.d.NewEvent()
		l.ok(err)
		l.ok(other.Wait(e)) // the event was never recorded
		p, q := l.empty(4), l.empty(4)
		l.ok(l.s.CopyIn(p, []byte{1, 2, 3, 4}))
		l.ok(l.s.Record(e))
		if waits {
			l.ok(other.Wait(e))
		}
		l.ok(other.Copy(q, p, 4))
		b := make([]byte, 4)
		err = other.CopyOut(b, q)
		if waits && (err != nil || b[3] != 4) {
			t.Errorf("%v, %v", b, err)
		}
		if !waits && err == nil {
			t.Error("nothing was found where a stream does not wait for another")
		}
		if waits {
			done, err := e.Done()
			ms, err2 := e.Since(e)
			if !done || ms != 0 || err != nil || err2 != nil {
				t.Error(done, ms, err, err2)
			}
		}
		l.ok(l.d.Synchronize())
		l.ok(other.Close())
		if err := other.Set(p, 0, 4); err == nil {
			t.Error("a fill on a closed stream")
		}
	}
}

// TestErrorsStay: after a failed launch every call on the device fails, but not on another
// one.
func TestErrorsStay(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(frameOf("ld.global.u32 %r1, [%rd1];"), "k")
	p := l.empty(256)
	l.ok(l.s.Launch(f, device.Launch{}, args().Ptr(p).Ptr(p).Int32(0)))
	e, err := l.d.NewEvent()
	l.ok(err)
	l.ok(l.s.Record(e))
	want := e.Synchronize()
	var found *Finding
	if !errors.As(want, &found) || found.Kind != Uninitialised {
		t.Fatal(want)
	}
	_, err1 := l.d.Alloc(1)
	_, err2 := l.d.Load("m", "")
	_, err3 := l.d.NewStream()
	for i, err := range []error{err1, err2, err3, l.s.Synchronize(), l.s.Set(p, 0, 1), l.d.Synchronize(), l.d.Free(p)} {
		if !errors.Is(err, want) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	newLab(t, Settings{}).empty(1)
}

// TestSameFinding: the same kernel fails at the same place each time.
func TestSameFinding(t *testing.T) {
	texts := map[string]bool{}
	for range 5 {
		f := faults[0]
		texts[f.run(t, f.broken).Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d different findings: %v", len(texts), texts)
	}
}

// TestGoroutines: several goroutines use one device, each with its own stream.
func TestGoroutines(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.file("saxpy.ptx", "saxpy")
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			own := &lab{t: t, d: l.d}
			s, err := l.d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			own.s = s
			y := make([]byte, 256)
			p, err := l.d.Alloc(256)
			if err == nil {
				err = s.Set(p, 0, 256)
			}
			for range 5 {
				if err == nil {
					err = s.Launch(f, device.Launch{Block: [3]int{64}}, args().Int32(64).Float32(1).Ptr(p).Ptr(p))
				}
				if err == nil {
					err = s.CopyOut(y, p)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

// TestLaunchesDoNotAllocatePerInstruction compares the allocations of a launch with one of a
// hundred times as many instructions.
func TestLaunchesDoNotAllocatePerInstruction(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(frameOf("ld.param.u32 %r2, [n]; A: add.s32 %r2, %r2, -1; ld.global.u32 %r1, [%rd2]; st.shared.u32 [%rd3], %r1; "+
		"bar.sync 0; setp.gt.s32 %p1, %r2, 0; @%p1 bra A;"), "k")
	p := upload(l, make([]uint32, 64))
	count := func(n int32) float64 {
		a := args().Ptr(p).Ptr(p).Int32(n)
		return testing.AllocsPerRun(5, func() { l.ok(l.launch(f, 1, 32, 0, a)) })
	}
	if few, lots := count(10), count(1000); lots > few {
		t.Errorf("%v allocations of 10 rounds, and %v of 1000", few, lots)
	}
}

// TestTextsAreThoseOfTheirSources generates the PTX again if clang is installed.
func TestTextsAreThoseOfTheirSources(t *testing.T) {
	if _, err := exec.LookPath("clang-16"); err != nil {
		t.Skip("no clang-16, which makes PTX of the sources: ", err)
	}
	to := t.TempDir()
	if out, err := exec.Command("testdata/regenerate", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sources, err := filepath.Glob("testdata/*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	for _, s := range sources {
		name := strings.TrimSuffix(filepath.Base(s), ".cu") + ".ptx"
		want, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile("testdata/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("testdata/%s is not what its source gives (%v); run testdata/regenerate", name, err)
		}
	}
}

// TestBackwards: the order of blocks and warps affects only the values that atomics return.
func TestBackwards(t *testing.T) {
	const n = 256
	first := func(backwards bool) (order []uint32, finding string) {
		l := newLab(t, Settings{Backwards: backwards})
		x, counter := upload(l, make([]uint32, 4*n)), upload(l, make([]uint32, 2*n+2))
		text := warpKernel("mul.wide.u32 %rd2, %r0, 8; sub.s64 %rd3, %rd4, %rd2; atom.global.add.u32 %r5, [%rd3+2048], 1;")
		l.ok(l.launch(l.function(text, "k"), 4, 64, 0, args().Ptr(x).Ptr(counter)))
		order = read(l, make([]uint32, 2*n), counter)
		l.ok(l.launch(l.file("language.ptx", "collatz"), 4, 64, 0, args().Int32(n).Ptr(counter)))
		order = append(order, read(l, make([]uint32, 2*n), counter)...)
		return order, l.launch(l.function(warpKernel("mul.wide.u32 %rd2, %r0, 8; sub.s64 %rd4, %rd4, %rd2; mov.u32 %r5, 1;"), "k"), 2, 32,
			0, args().Ptr(x).Ptr(counter)).Error()
	}
	forward, race := first(false)
	back, _ := first(true)
	for i := range n {
		// The last warp of the last block counts first, its lanes from the lowest on.
		if int(forward[2*i]) != i || int(back[2*i]) != n-32-i&^31+i&31 {
			t.Fatalf("thread %d was %d and %d", i, forward[2*i], back[2*i])
		}
		if forward[2*n+i] != back[2*n+i] {
			t.Fatalf("result %d is %d and %d", i, forward[2*n+i], back[2*n+i])
		}
	}
	if !strings.Contains(race, "race") {
		t.Error(race)
	}
}
