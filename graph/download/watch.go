package download

import (
	"context"
	"errors"
	"io"
	"time"
)

// errStalled ends an attempt that receives no bytes.
var errStalled = errors.New("no bytes for too long")

// watched is a response body that aborts when no bytes arrive and reports progress.
type watched struct {
	from      io.Reader
	fetcher   *fetcher
	url       string
	at, total int64 // bytes of the file received so far and in total (0: unknown)
	cancel    context.CancelCauseFunc
	timer     *time.Timer
	began     time.Time
	first     int64 // at when the body began
	lastLog   time.Time
}

// watch starts the stall timer and returns the function that stops it.
func (w *watched) watch() (stop func() bool) {
	w.began, w.lastLog, w.first = time.Now(), time.Now(), w.at
	w.timer = time.AfterFunc(w.fetcher.stall, func() { w.cancel(errStalled) })
	return w.timer.Stop
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.timer.Reset(w.fetcher.stall)
		w.at += int64(n)
	}
	if time.Since(w.lastLog) >= w.fetcher.every {
		w.lastLog = time.Now()
		rate := float64(w.at-w.first) / time.Since(w.began).Seconds()
		w.fetcher.log("download url=%s bytes=%d total=%d mb_per_s=%.1f", w.url, w.at, w.total, rate/1e6)
	}
	return n, err
}
