//go:build mpi

// The runtime of Go reserves addresses before any code in Go runs, and without them it ends the
// process with a stack trace. This function runs earlier.

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { least = 2000 }; // MB of addresses with which a run starts: 1500 do not always suffice

__attribute__((constructor)) static void check_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur / 1000000 >= least)
		return;
	fprintf(stderr, "siafu: start: a process may use %llu MB of addresses here, and siafu needs %d: set a larger limit, such as ulimit -v unlimited\n",
	        (unsigned long long)(limit.rlim_cur / 1000000), least);
	_exit(78); // fault.Config
}
