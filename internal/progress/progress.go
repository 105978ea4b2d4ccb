// Package progress writes a line every few seconds during work that takes long.
package progress

import (
	"fmt"
	"io"
	"time"
)

// Every is the time between lines.
const Every = 5 * time.Second

// Start writes line's result to w after each Every, until the caller stops it. line is called on
// another goroutine. A nil w receives nothing.
func Start(w io.Writer, line func() string) (stop func()) {
	if w == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	ticks := time.NewTicker(Every)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				fmt.Fprintln(w, line())
			}
		}
	}()
	return func() {
		ticks.Stop()
		close(done)
		<-ended
	}
}
