package screen

import (
	"fmt"
	"io"
	"time"
)

// Repeat writes line's result to w every 5 seconds, during work that takes long, until the caller stops
// it. line is called on another goroutine. A nil w receives nothing.
func Repeat(w io.Writer, line func() string) (stop func()) {
	if w == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	ticks := time.NewTicker(5 * time.Second)
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
