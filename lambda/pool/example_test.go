package pool_test

import (
	"fmt"
	"time"

	"siafu/lambda/pool"
)

// The first attempt of a task does not answer in time, but still answers first.
func Example() {
	s := pool.Defaults()
	s.Timeout.Ceiling = time.Second
	p := pool.New[string](s)
	fmt.Println(p.Submit(0, "AV of interval 7", 1)[0].Attempt)
	at, _ := p.Next()
	fmt.Println(at, p.Tick(at)[0].Attempt)
	first, _ := p.Result(at+time.Millisecond, "AV of interval 7", 1)
	again, _ := p.Result(at+2*time.Millisecond, "AV of interval 7", 2)
	fmt.Println(first, again)
	fmt.Println(p.Counts())
	// Output:
	// 1
	// 1s 2
	// true false
	// 2 invocations, 1 results used, 0 of them of later attempts, 1 wasted, 0 throttled, 0 tasks left to the CPU
}
