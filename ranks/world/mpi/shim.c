//go:build mpi

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "shim.h"

static int careful(int rc, MPI_Comm *comm) {
	return rc == MPI_SUCCESS ? MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN) : rc;
}

int siafu_dup(MPI_Comm comm, MPI_Comm *out) { return careful(MPI_Comm_dup(comm, out), out); }

int siafu_world(MPI_Comm *out) {
	// Calls without a communicator report to the world's handler.
	int rc = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	return rc == MPI_SUCCESS ? siafu_dup(MPI_COMM_WORLD, out) : rc;
}

int siafu_subset(MPI_Comm comm, int n, const int *ranks, MPI_Comm *out) {
	MPI_Group all, some;
	int rc = MPI_Comm_group(comm, &all);
	if (rc != MPI_SUCCESS) return rc;
	rc = MPI_Group_incl(all, n, ranks, &some);
	if (rc == MPI_SUCCESS) {
		rc = careful(MPI_Comm_create_group(comm, some, 0, out), out);
		MPI_Group_free(&some);
	}
	MPI_Group_free(&all);
	return rc;
}

void *siafu_symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }

const char *siafu_file(void) {
	Dl_info found;
	void *call = siafu_symbol("MPI_Init");
	return call && dladdr(call, &found) ? found.dli_fname : "";
}

int siafu_ask(void *question) { return ((int (*)(void))question)(); }

static int (*bind_thread)(void *);
static void *bind_to;

void siafu_bind(void *call, void *context) {
	bind_to = context;
	bind_thread = (int (*)(void *))call;
}

// Any call may move messages on, and with them memory of the device, on whatever
// thread its goroutine is.
#define BOUND(call) (bind_thread ? bind_thread(bind_to) : 0, call)

int siafu_ibarrier(MPI_Comm comm, MPI_Request *req) { return BOUND(MPI_Ibarrier(comm, req)); }

int siafu_ibcast(void *buf, int n, int root, MPI_Comm comm, MPI_Request *req) {
	return BOUND(MPI_Ibcast(buf, n, MPI_BYTE, root, comm, req));
}

int siafu_iallgatherv(const void *send, int n, void *recv, const int *counts, const int *displs,
	MPI_Comm comm, MPI_Request *req) {
	return BOUND(MPI_Iallgatherv(send, n, MPI_BYTE, recv, counts, displs, MPI_BYTE, comm, req));
}

int siafu_ialltoallv(const void *send, const int *send_counts, const int *send_displs,
	void *recv, const int *recv_counts, const int *recv_displs, MPI_Comm comm, MPI_Request *req) {
	return BOUND(MPI_Ialltoallv(send, send_counts, send_displs, MPI_BYTE,
		recv, recv_counts, recv_displs, MPI_BYTE, comm, req));
}

int siafu_isend(const void *buf, int n, int dst, int tag, MPI_Comm comm, MPI_Request *req) {
	return BOUND(MPI_Isend(buf, n, MPI_BYTE, dst, tag, comm, req));
}

int siafu_irecv(void *buf, int n, int src, int tag, MPI_Comm comm, MPI_Request *req) {
	return BOUND(MPI_Irecv(buf, n, MPI_BYTE, src, tag, comm, req));
}

int siafu_improbe(int source, int tag, MPI_Comm comm, siafu_probe *out) {
	MPI_Status status;
	int rc = BOUND(MPI_Improbe(source < 0 ? MPI_ANY_SOURCE : source, tag < 0 ? MPI_ANY_TAG : tag,
		comm, &out->found, &out->message, &status));
	if (rc != MPI_SUCCESS || !out->found) return rc;
	out->source = status.MPI_SOURCE;
	out->tag = status.MPI_TAG;
	return MPI_Get_count(&status, MPI_BYTE, &out->count);
}

int siafu_imrecv(void *buf, int n, MPI_Message *message, MPI_Request *req) {
	return BOUND(MPI_Imrecv(buf, n, MPI_BYTE, message, req));
}

void siafu_clear(MPI_Request *reqs, int n) {
	for (int i = 0; i < n; i++) reqs[i] = MPI_REQUEST_NULL;
}

int siafu_test(MPI_Request *reqs, int n, int next) {
	for (; next < n; next++) {
		int ended = 0;
		int rc = BOUND(MPI_Test(&reqs[next], &ended, MPI_STATUS_IGNORE));
		if (rc != MPI_SUCCESS) return -rc;
		if (!ended) break;
	}
	return next;
}

int siafu_error(int code, char *text) {
	int length = 0;
	return MPI_Error_string(code, text, &length);
}

int siafu_name(char *text) {
	int length = 0;
	return MPI_Get_processor_name(text, &length);
}

int siafu_library(char *text) {
	int length = 0;
	return MPI_Get_library_version(text, &length);
}

void siafu_abort(int code) {
	fflush(NULL);
	MPI_Abort(MPI_COMM_WORLD, code);
}
