// cuBLAS and cuSPARSE together with the driver of fake.c, in one library. They log their
// arguments, and fail on threads without the driver's context.

#include "fake.c"

#include "../libraries.h"

static struct cublasContext *const the_blas = (struct cublasContext *)0x7000;
static struct cusparseContext *const the_sparse = (struct cusparseContext *)0x8000;

#define INSIDE() if (current != the_context) return 99
#define OF(handle, own) if (handle != own) return 7

int cublasGetProperty(int which, int *value) { *value = 12 + which; return 0; }
const char *cublasGetStatusName(int status) { return status == 3 ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_OTHER"; }
int cublasCreate_v2(cublasHandle_t *handle) { INSIDE(); CALL(cublasCreate_v2, ""); *handle = the_blas; return 0; }
int cublasDestroy_v2(cublasHandle_t handle) { INSIDE(); OF(handle, the_blas); CALL(cublasDestroy_v2, ""); return 0; }
int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
	INSIDE(); OF(handle, the_blas); CALL(cublasSetStream_v2, " %p", (void *)stream); return 0;
}
int cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
	INSIDE(); OF(handle, the_blas); CALL(cublasSetWorkspace_v2, " %zu", bytes); return workspace ? 0 : 7;
}
int cublasSetMathMode(cublasHandle_t handle, int mode) { INSIDE(); OF(handle, the_blas); CALL(cublasSetMathMode, " %d", mode); return 0; }
int cublasSgemm_v2(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *a, int lda,
		const float *b, int ldb, const float *beta, float *c, int ldc) {
	INSIDE(); OF(handle, the_blas);
	CALL(cublasSgemm_v2, " %d %d %d %d %d %g %p %d %p %d %g %p %d", transa, transb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
	return 0;
}

int cusparseGetProperty(int which, int *value) { *value = 11 + which; return 0; }
const char *cusparseGetErrorName(int status) { return status == 11 ? "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES" : "CUSPARSE_STATUS_OTHER"; }
int cusparseCreate(cusparseHandle_t *handle) { INSIDE(); CALL(cusparseCreate, ""); *handle = the_sparse; return 0; }
int cusparseDestroy(cusparseHandle_t handle) { INSIDE(); OF(handle, the_sparse); CALL(cusparseDestroy, ""); return 0; }
int cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
	INSIDE(); OF(handle, the_sparse); CALL(cusparseSetStream, " %p", (void *)stream); return 0;
}
int cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t cols, int64_t edges, void *offsets, void *index, void *values,
		int offsets_type, int index_type, int base, int type) {
	CALL(cusparseCreateCsr, " %ld %ld %ld %p %p %p %d %d %d %d", (long)rows, (long)cols, (long)edges, offsets, index, values,
		offsets_type, index_type, base, type);
	*matrix = (cusparseSpMatDescr_t)0x8100;
	return 0;
}
int cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) { CALL(cusparseDestroySpMat, " %p", (void *)matrix); return 0; }
int cusparseCreateDnMat(cusparseDnMatDescr_t *matrix, int64_t rows, int64_t cols, int64_t stride, void *values, int type, int order) {
	CALL(cusparseCreateDnMat, " %ld %ld %ld %p %d %d", (long)rows, (long)cols, (long)stride, values, type, order);
	*matrix = (cusparseDnMatDescr_t)((char *)values + 0x8000);
	return 0;
}
int cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) { CALL(cusparseDestroyDnMat, " %p", (void *)matrix); return 0; }
#define PRODUCT(name, last_type, last) \
	int name(cusparseHandle_t handle, int transa, int transb, const void *alpha, cusparseConstSpMatDescr_t a, \
			cusparseConstDnMatDescr_t b, const void *beta, cusparseDnMatDescr_t c, int type, int algorithm, last_type last) { \
		INSIDE(); OF(handle, the_sparse); \
		CALL(name, " %d %d %g %p %p %g %p %d %d", transa, transb, *(const float *)alpha, (void *)a, (void *)b, \
			*(const float *)beta, (void *)c, type, algorithm);
PRODUCT(cusparseSpMM_bufferSize, size_t *, bytes) *bytes = 48; return 0; }
PRODUCT(cusparseSpMM_preprocess, void *, workspace) return workspace ? 0 : 7; }
PRODUCT(cusparseSpMM, void *, workspace) return workspace ? 0 : 7; }
