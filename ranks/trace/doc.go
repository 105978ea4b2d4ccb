// Package trace records a timeline of the tasks of all ranks. It writes and reads files in the
// trace event format of Chrome.
//
// Each worker of a rank has a Recorder: a ring buffer of the newest tasks, allocated once, so that
// recording allocates nothing. Watch returns a communicator that measures how long it blocks its
// caller, which gives the waiting time of each task. Measure compares the clocks of hosts. Save
// gathers all rings on rank 0, which writes the file:
//
//	{"otherData":{"program":"siafu 0.1.0","dataset":"cora",…},"displayTimeUnit":"ms","traceEvents":[
//	{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 graph on n1","role":"graph","host":"n1","dropped":0,"clock_error_us":0,"outline":{…}}},
//	{"ph":"X","name":"GA","pid":0,"tid":0,"ts":12.345,"dur":6.789,"args":{"epoch":1,"layer":0,"wait_us":0.000,"kernels":[[4,6.0,1.7,2]]}},
//	…
//	]}
//
// pid is the rank and tid the worker. Times are microseconds since the start of training on rank
// 0's clock. layer and interval are absent if a task has none. Epoch 0 has the tasks before the
// first epoch. dropped is the number of older tasks of a rank that the ring has overwritten. outline
// is the engine.Outline of a graph rank, from which package simulate gets the dependencies of tasks. kernels
// lists the calls of kernels with several chunks: number of chunks, microseconds of all chunks, microseconds and index of the
// longest one. It is absent if there are none, and on ranks with several workers.
//
// Save and Measure are collective over the world. All other functions are local. A nil Recorder
// records nothing.
package trace
