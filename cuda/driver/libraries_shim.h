// Wrappers of the calls of cuBLAS and cuSPARSE. A function returns the library's status, or
// minus the driver's code if the context cannot be set.

#ifndef SIAFU_LIBRARIES_SHIM_H
#define SIAFU_LIBRARIES_SHIM_H

#include "libraries.h"
#include "shim.h"

#define SIAFU_CALL(result, name, parameters) result(*name) parameters;
#define SIAFU_LOOK(result, name, parameters) \
	*(void **)&calls->name = dlsym(handle, #name); \
	if (!calls->name) return dlerror();

// An opener sets calls to the functions of a library, which stays open, like siafu_open.
#define SIAFU_LIBRARY(type, open, CALLS) \
	typedef struct { CALLS(SIAFU_CALL) } type; \
	static const char *open(const char *library, type *calls) { \
		void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); \
		if (!handle) return dlerror(); \
		CALLS(SIAFU_LOOK) \
		return NULL; \
	}

SIAFU_LIBRARY(siafu_blas, siafu_blas_open, SIAFU_BLAS_CALLS)
SIAFU_LIBRARY(siafu_sparse, siafu_sparse_open, SIAFU_SPARSE_CALLS)

static int siafu_blas_property(siafu_blas *l, int which, int *value) { return l->cublasGetProperty(which, value); }
static const char *siafu_blas_name(siafu_blas *l, int status) { return l->cublasGetStatusName(status); }
static int siafu_sparse_property(siafu_sparse *l, int which, int *value) { return l->cusparseGetProperty(which, value); }
static const char *siafu_sparse_name(siafu_sparse *l, int status) { return l->cusparseGetErrorName(status); }

// Each function starts with this, because a context belongs to a thread.
#define SIAFU_ENTER(d, context) \
	do { \
		CUresult code = (d)->cuCtxSetCurrent(context); \
		if (code) return -(int)code; \
	} while (0)

static int siafu_blas_create(siafu_driver *d, CUcontext context, siafu_blas *l, cublasHandle_t *handle) {
	SIAFU_ENTER(d, context);
	return l->cublasCreate_v2(handle);
}

// siafu_blas_prepare sets a handle's stream, and then its workspace, which a new stream would
// reset.
static int siafu_blas_prepare(siafu_driver *d, CUcontext context, siafu_blas *l, cublasHandle_t handle, CUstream stream,
		CUdeviceptr workspace, size_t bytes) {
	SIAFU_ENTER(d, context);
	int status = l->cublasSetStream_v2(handle, stream);
	if (!status) status = l->cublasSetWorkspace_v2(handle, (void *)(uintptr_t)workspace, bytes);
	return status ? status : l->cublasSetMathMode(handle, SIAFU_BLAS_DEFAULT_MATH);
}

static int siafu_blas_destroy(siafu_driver *d, CUcontext context, siafu_blas *l, cublasHandle_t handle) {
	SIAFU_ENTER(d, context);
	return l->cublasDestroy_v2(handle);
}

static int siafu_gemm(siafu_driver *d, CUcontext context, siafu_blas *l, cublasHandle_t handle, int transa, int transb,
		int m, int n, int k, CUdeviceptr a, int lda, CUdeviceptr b, int ldb, float beta, CUdeviceptr c, int ldc) {
	float alpha = 1;
	SIAFU_ENTER(d, context);
	return l->cublasSgemm_v2(handle, transa, transb, m, n, k, &alpha, (const float *)(uintptr_t)a, lda,
		(const float *)(uintptr_t)b, ldb, &beta, (float *)(uintptr_t)c, ldc);
}

static int siafu_sparse_create(siafu_driver *d, CUcontext context, siafu_sparse *l, cusparseHandle_t *handle, CUstream stream) {
	SIAFU_ENTER(d, context);
	int status = l->cusparseCreate(handle);
	if (status) return status;
	status = l->cusparseSetStream(*handle, stream);
	if (status) l->cusparseDestroy(*handle);
	return status;
}

static int siafu_sparse_destroy(siafu_driver *d, CUcontext context, siafu_sparse *l, cusparseHandle_t handle) {
	SIAFU_ENTER(d, context);
	return l->cusparseDestroy(handle);
}

// siafu_spmm is a prepared product.
typedef struct {
	cusparseSpMatDescr_t a;
	cusparseDnMatDescr_t b, c;
	cusparseSpMMAlg_t algorithm;
	void *workspace;
} siafu_spmm;

static const float siafu_one = 1, siafu_zero = 0;

#define SIAFU_SPMM(l, call, handle, p, last) \
	(l)->call(handle, SIAFU_OP_N, SIAFU_OP_N, &siafu_one, (p)->a, (p)->b, &siafu_zero, (p)->c, SIAFU_R_32F, (p)->algorithm, last)

// siafu_spmm_describe creates the descriptors of a product with float32 sums, and returns the
// size of its workspace.
static int siafu_spmm_describe(siafu_driver *d, CUcontext context, siafu_sparse *l, cusparseHandle_t handle, siafu_spmm *p,
		int64_t rows, int64_t cols, int64_t edges, CUdeviceptr offsets, CUdeviceptr index, CUdeviceptr values, int type,
		int64_t width, CUdeviceptr b, CUdeviceptr c, int algorithm, size_t *bytes) {
	SIAFU_ENTER(d, context);
	p->algorithm = algorithm;
	int status = l->cusparseCreateCsr(&p->a, rows, cols, edges, (void *)(uintptr_t)offsets, (void *)(uintptr_t)index,
		(void *)(uintptr_t)values, SIAFU_INDEX_32I, SIAFU_INDEX_32I, SIAFU_INDEX_BASE_ZERO, type);
	if (!status) status = l->cusparseCreateDnMat(&p->b, cols, width, width, (void *)(uintptr_t)b, type, SIAFU_ORDER_ROW);
	if (!status) status = l->cusparseCreateDnMat(&p->c, rows, width, width, (void *)(uintptr_t)c, SIAFU_R_32F, SIAFU_ORDER_ROW);
	return status ? status : SIAFU_SPMM(l, cusparseSpMM_bufferSize, handle, p, bytes);
}

static int siafu_spmm_preprocess(siafu_driver *d, CUcontext context, siafu_sparse *l, cusparseHandle_t handle, siafu_spmm *p,
		CUdeviceptr workspace) {
	SIAFU_ENTER(d, context);
	p->workspace = (void *)(uintptr_t)workspace;
	return SIAFU_SPMM(l, cusparseSpMM_preprocess, handle, p, p->workspace);
}

static int siafu_spmm_run(siafu_driver *d, CUcontext context, siafu_sparse *l, cusparseHandle_t handle, siafu_spmm *p) {
	SIAFU_ENTER(d, context);
	return SIAFU_SPMM(l, cusparseSpMM, handle, p, p->workspace);
}

// siafu_spmm_end frees the existing descriptors.
static int siafu_spmm_end(siafu_driver *d, CUcontext context, siafu_sparse *l, siafu_spmm *p) {
	SIAFU_ENTER(d, context);
	int status = p->a ? l->cusparseDestroySpMat(p->a) : 0;
	if (p->b && !status) status = l->cusparseDestroyDnMat(p->b);
	if (p->c && !status) status = l->cusparseDestroyDnMat(p->c);
	return status;
}

#endif
