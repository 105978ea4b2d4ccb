// What siafu calls of MPI. The functions add nothing to MPI's but its handles
// as values that cgo can name: in Open MPI, MPI_BYTE and its like are macros
// that cgo cannot read. All return MPI's code unless they say otherwise.

#ifndef SIAFU_SHIM_H
#define SIAFU_SHIM_H

#include <mpi.h>

// A message found by siafu_improbe.
typedef struct {
	int found, source, tag, count;
	MPI_Message message;
} siafu_probe;

// The communicators below return codes instead of ending the process.
int siafu_world(MPI_Comm *out);
int siafu_dup(MPI_Comm comm, MPI_Comm *out);
int siafu_subset(MPI_Comm comm, int n, const int *ranks, MPI_Comm *out);

// siafu_symbol is where a function lies that some library of this process has, or NULL;
// siafu_ask what int (*)(void) answers.
void *siafu_symbol(const char *name);
int siafu_ask(void *question);
// siafu_file is the path of the MPI library, as the loader has found it.
const char *siafu_file(void);
// siafu_bind has int (*call)(void *) called with context before each call of MPI that
// may move messages, on the same thread; no call: nothing is.
void siafu_bind(void *call, void *context);

int siafu_ibarrier(MPI_Comm comm, MPI_Request *req);
int siafu_ibcast(void *buf, int n, int root, MPI_Comm comm, MPI_Request *req);
int siafu_iallgatherv(const void *send, int n, void *recv, const int *counts, const int *displs,
	MPI_Comm comm, MPI_Request *req);
int siafu_ialltoallv(const void *send, const int *send_counts, const int *send_displs,
	void *recv, const int *recv_counts, const int *recv_displs, MPI_Comm comm, MPI_Request *req);

int siafu_isend(const void *buf, int n, int dst, int tag, MPI_Comm comm, MPI_Request *req);
int siafu_irecv(void *buf, int n, int src, int tag, MPI_Comm comm, MPI_Request *req);
// source and tag may be negative: any.
int siafu_improbe(int source, int tag, MPI_Comm comm, siafu_probe *out);
int siafu_imrecv(void *buf, int n, MPI_Message *message, MPI_Request *req);

// siafu_clear sets requests to the null request, which has always ended.
void siafu_clear(MPI_Request *reqs, int n);
// siafu_test tests reqs[next..n) in order and returns the index of the first
// that has not ended, n if all have, and minus MPI's code for an error.
int siafu_test(MPI_Request *reqs, int n, int next);

// siafu_outlive makes the library continue after lost TCP connections (lost.c). It returns an errno.
int siafu_outlive(void);

// siafu_error writes the text of a code, at most MPI_MAX_ERROR_STRING bytes.
int siafu_error(int code, char *text);
// siafu_name writes the host's name, at most MPI_MAX_PROCESSOR_NAME bytes.
int siafu_name(char *text);
// siafu_library writes the name and the version of the library, at most MPI_MAX_LIBRARY_VERSION_STRING
// bytes. It may be called before MPI is started.
int siafu_library(char *text);
// siafu_abort ends all processes of the world with an exit code.
void siafu_abort(int code);

#endif
