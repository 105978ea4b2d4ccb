package schedule_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"siafu/ranks/schedule"
)

// deaf is a flow without messages.
type deaf struct{ *flow }

func (deaf) Listens() bool { return false }

// A worker without a task assists the task of another worker, with and without messages, and its time of assistance is
// not idle time. Without messages and a free processor it sleeps.
func TestIdleWorkersAssist(t *testing.T) {
	for _, tc := range []struct {
		processors int
		listens    bool
	}{{2, true}, {2, false}, {1, false}} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(tc.processors))
			const took = 1000 * time.Hour
			var helped atomic.Bool
			assisted := make(chan struct{})
			pool := schedule.NewPool(2, func(int) time.Duration {
				if helped.Swap(true) {
					return 0
				}
				close(assisted)
				return took
			})
			defer pool.Close()
			g := &schedule.Graph{}
			g.Task(schedule.Task{Interval: 1})
			f := &flow{Walk: schedule.NewWalk(g), ran: map[int]int{}, every: 1, before: func(schedule.Task) {
				patience := time.Minute
				if tc.processors == 1 {
					patience = 50 * time.Millisecond
				}
				select {
				case <-assisted:
				case <-time.After(patience):
				}
			}}
			f.Start(1)
			var err error
			if tc.listens {
				err = pool.Run(f)
			} else {
				err = pool.Run(deaf{f})
			}
			if err != nil {
				t.Fatal(err)
			}
			if helps, waited := tc.processors == 2, pool.TakeWaited(); helped.Load() != helps || helps != (waited < -took/3) {
				t.Errorf("a worker assists: %t, %v waited", helped.Load(), waited)
			}
		})
	}
}
