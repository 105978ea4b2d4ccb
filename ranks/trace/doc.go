// Package trace keeps a timeline of the tasks of all ranks, writes it as a
// file in the trace event format of Chrome, and reads such a file again.
//
// Each worker of a rank has a Recorder: a ring of the newest tasks, made once,
// so that recording allocates nothing. Watch makes a communicator count the
// time that it blocks its caller; a task knows from it how much of its time
// was spent waiting. Measure compares the clocks of hosts. Save brings all
// rings to rank 0, which writes the file:
//
//	{"otherData":{"program":"siafu 0.1.0","dataset":"cora",…},"displayTimeUnit":"ms","traceEvents":[
//	{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 graph on n1","role":"graph","host":"n1","dropped":0,"clock_error_us":0}},
//	{"ph":"X","name":"GA","pid":0,"tid":0,"ts":12.345,"dur":6.789,"args":{"epoch":1,"layer":0,"wait_us":0.000}},
//	…
//	]}
//
// pid is the rank, tid the worker; times are microseconds since training
// began, on rank 0's clock. layer and interval are absent where a task has
// none. Epoch 0 is what is computed once before the first epoch. dropped says
// how many older tasks of a rank the ring has overwritten.
//
// Save and Measure are collective over the world; the rest is local. A nil
// Recorder records nothing.
package trace
