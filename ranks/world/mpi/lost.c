//go:build mpi

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim.h"

// Open MPI 4.1 and 5.0 do not survive a lost TCP connection (opal/mca/btl/tcp, which is a library of its own in 4.1):
//
//   - mca_btl_tcp_frag_send closes the socket, and mca_btl_tcp_endpoint_send then adds an event for its
//     descriptor. The next send connects again, with the same event and often the same descriptor.
//     The list of events becomes circular, and libevent never returns.
//   - mca_btl_tcp_endpoint_close fails the queued sends, and pml/ob1 ends the process.
//
// Therefore a lost connection is replaced by one to a peer that never responds. Open MPI does not close
// it, receives nothing, and queues what it sends. The component calls readv and writev, and the dynamic
// linker finds the functions of this file before those of the C library.

static int outlives;             // whether lost connections are replaced
static int silent[2] = {-1, -1}; // the replacement and its other end, which stays open

int siafu_outlive(void) {
	if (silent[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, silent) != 0) return errno;
	outlives = 1;
	return 0;
}

// replace replaces the lost connection fd, and reports whether it has. caller is an address in the
// calling function. Callers other than this component handle lost connections themselves.
static int replace(int fd, void *caller) {
	Dl_info from;
	int tcp = outlives && dladdr(caller, &from) &&
		  (from.dli_fname && strstr(from.dli_fname, "mca_btl_tcp") || from.dli_sname && strstr(from.dli_sname, "mca_btl_tcp"));
	return tcp && dup3(silent[0], fd, O_CLOEXEC) == fd;
}

// ended reports whether an error means that the connection has ended.
static int ended(int error) {
	return error == EPIPE || error == ECONNRESET || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

ssize_t readv(int fd, const struct iovec *to, int n) {
	ssize_t done = syscall(SYS_readv, fd, to, n);
	int error = errno;
	if (done == 0 || done < 0 && ended(error)) {
		if (replace(fd, __builtin_return_address(0))) {
			done = -1;
			error = EAGAIN;
		}
		errno = error;
	}
	return done;
}

ssize_t writev(int fd, const struct iovec *from, int n) {
	ssize_t done = syscall(SYS_writev, fd, from, n);
	if (done < 0 && ended(errno)) {
		int error = errno;
		errno = replace(fd, __builtin_return_address(0)) ? EAGAIN : error;
	}
	return done;
}
