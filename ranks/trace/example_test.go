package trace_test

import (
	"fmt"
	"time"

	"siafu/ranks/trace"
)

// A timeline of one task.
func ExampleDecode() {
	f, err := trace.Decode([]byte(`{"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 graph on n1","role":"graph","host":"n1"}},
{"ph":"X","name":"GA","pid":0,"tid":0,"ts":12.5,"dur":750,"args":{"epoch":1,"layer":0}}
]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var busy time.Duration
	for _, e := range f.Events {
		busy += e.Dur - e.Wait
	}
	fmt.Println(f.Processes[0].Host, "worked", busy)
	// Output: n1 worked 750µs
}
