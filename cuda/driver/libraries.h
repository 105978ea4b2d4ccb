// The calls of cuBLAS and cuSPARSE that siafu makes, as declared in cublas_v2.h and cusparse.h
// of CUDA 11.5 and later: the result, the exported name and the parameters.

#ifndef SIAFU_LIBRARIES_H
#define SIAFU_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

#ifndef SIAFU_WITH_CUDA_H
typedef struct CUstream_st *cudaStream_t;
typedef int libraryPropertyType, cudaDataType;
typedef int cublasStatus_t, cublasOperation_t, cublasMath_t;
typedef struct cublasContext *cublasHandle_t;
typedef int cusparseStatus_t, cusparseOperation_t, cusparseIndexType_t, cusparseIndexBase_t, cusparseOrder_t, cusparseSpMMAlg_t;
typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef struct cusparseSpMatDescr const *cusparseConstSpMatDescr_t;
typedef struct cusparseDnMatDescr const *cusparseConstDnMatDescr_t;
#elif CUSPARSE_VERSION < 12000 // which has no descriptors of constants
#define cusparseConstSpMatDescr_t cusparseSpMatDescr_t
#define cusparseConstDnMatDescr_t cusparseDnMatDescr_t
#endif

#define SIAFU_BLAS_CALLS(CALL) \
	CALL(cublasStatus_t, cublasGetProperty, (libraryPropertyType type, int *value)) \
	CALL(const char *, cublasGetStatusName, (cublasStatus_t status)) \
	CALL(cublasStatus_t, cublasCreate_v2, (cublasHandle_t *handle)) \
	CALL(cublasStatus_t, cublasDestroy_v2, (cublasHandle_t handle)) \
	CALL(cublasStatus_t, cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream)) \
	CALL(cublasStatus_t, cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes)) \
	CALL(cublasStatus_t, cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode)) \
	CALL(cublasStatus_t, cublasSgemm_v2, (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, \
		int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, \
		const float *beta, float *c, int ldc))

#define SIAFU_SPARSE_CALLS(CALL) \
	CALL(cusparseStatus_t, cusparseGetProperty, (libraryPropertyType type, int *value)) \
	CALL(const char *, cusparseGetErrorName, (cusparseStatus_t status)) \
	CALL(cusparseStatus_t, cusparseCreate, (cusparseHandle_t *handle)) \
	CALL(cusparseStatus_t, cusparseDestroy, (cusparseHandle_t handle)) \
	CALL(cusparseStatus_t, cusparseSetStream, (cusparseHandle_t handle, cudaStream_t stream)) \
	CALL(cusparseStatus_t, cusparseCreateCsr, (cusparseSpMatDescr_t *matrix, int64_t rows, int64_t cols, int64_t edges, \
		void *offsets, void *index, void *values, cusparseIndexType_t offsets_type, cusparseIndexType_t index_type, \
		cusparseIndexBase_t base, cudaDataType type)) \
	CALL(cusparseStatus_t, cusparseDestroySpMat, (cusparseConstSpMatDescr_t matrix)) \
	CALL(cusparseStatus_t, cusparseCreateDnMat, (cusparseDnMatDescr_t *matrix, int64_t rows, int64_t cols, int64_t stride, \
		void *values, cudaDataType type, cusparseOrder_t order)) \
	CALL(cusparseStatus_t, cusparseDestroyDnMat, (cusparseConstDnMatDescr_t matrix)) \
	CALL(cusparseStatus_t, cusparseSpMM_bufferSize, (cusparseHandle_t handle, cusparseOperation_t transa, \
		cusparseOperation_t transb, const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, \
		const void *beta, cusparseDnMatDescr_t c, cudaDataType type, cusparseSpMMAlg_t algorithm, size_t *bytes)) \
	CALL(cusparseStatus_t, cusparseSpMM_preprocess, (cusparseHandle_t handle, cusparseOperation_t transa, \
		cusparseOperation_t transb, const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, \
		const void *beta, cusparseDnMatDescr_t c, cudaDataType type, cusparseSpMMAlg_t algorithm, void *workspace)) \
	CALL(cusparseStatus_t, cusparseSpMM, (cusparseHandle_t handle, cusparseOperation_t transa, \
		cusparseOperation_t transb, const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, \
		const void *beta, cusparseDnMatDescr_t c, cudaDataType type, cusparseSpMMAlg_t algorithm, void *workspace))

// Constants of the headers.
enum {
	SIAFU_BLAS_ALLOC_FAILED = 3,
	SIAFU_SPARSE_ALLOC_FAILED = 2,
	SIAFU_SPARSE_INSUFFICIENT_RESOURCES = 11,

	SIAFU_BLAS_DEFAULT_MATH = 0,
	SIAFU_OP_N = 0, // in both libraries
	SIAFU_OP_T = 1,

	SIAFU_R_32F = 0,
	SIAFU_R_16BF = 14,
	SIAFU_INDEX_32I = 2,
	SIAFU_INDEX_BASE_ZERO = 0,
	SIAFU_ORDER_ROW = 2,
	SIAFU_SPMM_DEFAULT = 0,
	SIAFU_SPMM_CSR_ALG2 = 6,
	SIAFU_SPMM_CSR_ALG3 = 12
};

#endif
