//go:build mpi

#include <signal.h>
#include <stddef.h>

// UCX, which Open MPI 5 and MPICH load, sets a handler of SIGHUP in its constructor, even if the signal
// is ignored (nohup). Therefore the state before all constructors of libraries is restored after
// them, before Go's runtime looks at it.

static int ignored;

static void look(void) {
	struct sigaction hangup;
	ignored = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = look;

__attribute__((constructor)) static void restore(void) {
	if (ignored) signal(SIGHUP, SIG_IGN);
}
