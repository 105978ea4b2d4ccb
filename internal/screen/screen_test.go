package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// Lines come by time: often at first, then seldom; the first epoch and the last always.
func TestLinesByTime(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	s := &Screen{out: &out, now: func() time.Time { return now }, began: now}
	const epochs = 36_000 // of a tenth of a second
	for e := 1; e <= epochs; e++ {
		now = now.Add(time.Second / 10)
		s.Epoch(fmt.Sprint(e), nil, e == 1 || e == epochs)
		switch e {
		case 200: // 20 seconds
			if n := strings.Count(out.String(), "\n"); n != 20 {
				t.Errorf("%d lines after 20 s, not one a second", n)
			}
		case epochs - 1:
			// Then one in a twentieth of the time, so that the n-th comes after 20·(21/20)^n s,
			// up to 30 s, which are a twentieth of 600; rounded to tenths.
			if n := strings.Count(out.String(), "\n"); n < 20+60+90 || n > 20+75+105 {
				t.Errorf("%d lines in an hour", n)
			}
		}
	}
	if lines := strings.Fields(out.String()); lines[0] != "1" || lines[len(lines)-1] != fmt.Sprint(epochs) {
		t.Errorf("from %s to %s", lines[0], lines[len(lines)-1])
	}
	out.Reset()
	s.Epoch("stopped here", nil, false)
	if s.End(); out.String() != "stopped here\n" {
		t.Errorf("a run that was stopped ends with %q", &out)
	}
}

// A terminal's line is redrawn ten times a second and cut to its width.
func TestTerminalLine(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	s := &Screen{out: &out, width: 20, now: func() time.Time { return now }, began: now}
	for e := 1; e <= 100; e++ {
		now = now.Add(time.Second / 100)
		s.Epoch("full", func(width int) string { return fmt.Sprintf("%03d %s", e, strings.Repeat("x", width)) }, e == 1 || e == 100)
	}
	s.End()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), erase)[1:]
	if len(lines) < 10 || len(lines) > 13 || !strings.HasPrefix(lines[len(lines)-1], "100 ") {
		t.Errorf("%d lines in a second, the last %q", len(lines), lines[len(lines)-1])
	}
	for _, l := range lines {
		if len(l) != 19 {
			t.Errorf("%d columns: %q", len(l), l)
		}
	}
}

// Words of either stream take the line away that may be overwritten, and only that.
func TestStreams(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if out, _ := Streams(f, f); Width(out, false) > 0 || Behind(out) != f {
		t.Error("a file is taken for a terminal")
	}
	both, one, r := &Terminal{file: f}, newTurn(), &release{requested: make(chan struct{})}
	out, errs := &stream{both, f, one, r}, &stream{both, f, one, r}
	for _, w := range []struct {
		to   *stream
		text string
	}{{out, "a\n"}, {out, erase + "1/9"}, {errs, "b\n"}, {errs, "c\n"}, {out, erase + "2/9"}, {out, erase + "3/9"}, {out, "d\n"},
		{out, erase + "4/9\n"}, {errs, "e\n"}} {
		if n, err := w.to.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatal(n, err)
		}
	}
	got, _ := os.ReadFile(f.Name())
	if want := "a\n" + erase + "1/9" + erase + "b\nc\n" + erase + "2/9" + erase + "3/9" + erase + "d\n" + erase +
		"4/9\ne\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Close()
	if _, err := errs.Write([]byte("x")); err != nil {
		t.Errorf("a terminal that is gone: %v", err)
	}
}

// After Release, a full pipe holds up no write, of either stream. Without it, and after the pipe is read, all
// lines pass.
func TestFullPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	out, errs := Streams(write, write)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 3 {
			if n, err := out.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
				t.Error(n, err)
			}
		}
		fmt.Fprint(errs, "x")
	}()
	select {
	case <-ended:
		t.Error("the pipe is not full, or a write was abandoned before the release")
	case <-time.After(10 * time.Millisecond):
	}
	Release(errs)
	select {
	case <-ended:
	case <-time.After(hosttest.Patience):
		t.Fatal("a write does not end")
	}
	go func() {
		for out.(*stream).turn.stuck() || errs.(*stream).turn.stuck() {
			time.Sleep(time.Millisecond)
		}
		fmt.Fprint(out, "the last line")
		write.Close()
	}()
	if text, err := io.ReadAll(read); err != nil || !strings.HasSuffix(string(text), "the last line") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "[>   ]", 0: "[>   ]", 0.5: "[==> ]", 1: "[====]", 2: "[====]"} {
		if got := Bar(share, 6); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
	if got := Bar(0.5, 2); got != "" {
		t.Errorf("%q", got)
	}
}
