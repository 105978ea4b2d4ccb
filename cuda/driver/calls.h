// The calls of the CUDA driver that siafu makes, as declared in cuda.h of CUDA 11.4 and later:
// the exported name and the parameters. A test compares them with a cuda.h if there is one.

#ifndef SIAFU_CALLS_H
#define SIAFU_CALLS_H

#include <stddef.h>

// Handles are pointers to structs that only the driver knows. Names have the prefix CU, so that
// a file can include both cuda.h and this file.
#ifndef SIAFU_WITH_CUDA_H
typedef int CUresult, CUdevice, CUjit_option, CUdevice_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct { char bytes[16]; } CUuuid;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
#endif

#define SIAFU_CALLS(CALL) \
	CALL(cuInit, (unsigned int flags)) \
	CALL(cuGetErrorName, (CUresult code, const char **name)) \
	CALL(cuGetErrorString, (CUresult code, const char **text)) \
	CALL(cuDriverGetVersion, (int *version)) \
	CALL(cuDeviceGetCount, (int *count)) \
	CALL(cuDeviceGet, (CUdevice *device, int ordinal)) \
	CALL(cuDeviceGetName, (char *name, int length, CUdevice device)) \
	CALL(cuDeviceGetUuid_v2, (CUuuid *id, CUdevice device)) \
	CALL(cuDeviceGetAttribute, (int *value, CUdevice_attribute which, CUdevice device)) \
	CALL(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
	CALL(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
	CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
	CALL(cuCtxSetCurrent, (CUcontext context)) \
	CALL(cuCtxSynchronize, (void)) \
	CALL(cuMemGetInfo_v2, (size_t *unused, size_t *total)) \
	CALL(cuMemAlloc_v2, (CUdeviceptr *at, size_t bytes)) \
	CALL(cuMemFree_v2, (CUdeviceptr at)) \
	CALL(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned int flags)) \
	CALL(cuMemHostUnregister, (void *at)) \
	CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	CALL(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)) \
	CALL(cuModuleLoadDataEx, (CUmodule *module, const void *text, unsigned int count, CUjit_option *options, void **values)) \
	CALL(cuModuleUnload, (CUmodule module)) \
	CALL(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
	CALL(cuModuleGetGlobal_v2, (CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)) \
	CALL(cuLaunchKernel, (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, \
		unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, \
		void **parameters, void **extra)) \
	CALL(cuStreamCreate, (CUstream *stream, unsigned int flags)) \
	CALL(cuStreamDestroy_v2, (CUstream stream)) \
	CALL(cuStreamSynchronize, (CUstream stream)) \
	CALL(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags)) \
	CALL(cuEventCreate, (CUevent *event, unsigned int flags)) \
	CALL(cuEventDestroy_v2, (CUevent event)) \
	CALL(cuEventRecord, (CUevent event, CUstream stream)) \
	CALL(cuEventQuery, (CUevent event)) \
	CALL(cuEventSynchronize, (CUevent event)) \
	CALL(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))

// Constants of cuda.h.
enum {
	SIAFU_OUT_OF_MEMORY = 2,
	SIAFU_NO_DEVICE = 100,
	SIAFU_NOT_FOUND = 500,
	SIAFU_NOT_READY = 600,

	SIAFU_STREAM_NON_BLOCKING = 1,
	SIAFU_HOST_REGISTER_PORTABLE = 1,
	SIAFU_JIT_ERROR_LOG_BUFFER = 5,
	SIAFU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,

	SIAFU_MAX_THREADS_PER_BLOCK = 1,
	SIAFU_MAX_BLOCK_DIM_X = 2,
	SIAFU_MAX_GRID_DIM_X = 5,
	SIAFU_MAX_SHARED_MEMORY_PER_BLOCK = 8,
	SIAFU_WARP_SIZE = 10,
	SIAFU_MULTIPROCESSOR_COUNT = 16,
	SIAFU_MEMORY_CLOCK_RATE = 36,
	SIAFU_GLOBAL_MEMORY_BUS_WIDTH = 37,
	SIAFU_COMPUTE_CAPABILITY_MAJOR = 75,
	SIAFU_COMPUTE_CAPABILITY_MINOR = 76
};

#endif
