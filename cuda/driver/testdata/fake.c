// A library with the driver's calls but without a GPU. Device memory is host memory, and a
// launch logs its parameters. Calls fail on threads without the context, as in the driver.
//
//	FAKE_LOG         file for the log of calls, one line each
//	FAKE_FAIL        CALL=CODE, the code that a call returns
//	FAKE_COUNT       number of devices; default 1
//	FAKE_MAJOR       their compute capability; default 8
//	FAKE_PARAMETERS  sizes of a kernel's parameters, such as 4,8, for launches with a list of them

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../calls.h"

static struct CUctx_st *the_context = (struct CUctx_st *)0x1000;
static __thread CUcontext current;

static int number(const char *variable, int otherwise) {
	const char *text = getenv(variable);
	return text && *text ? atoi(text) : otherwise;
}

// fails logs a call and returns its code, 0 if it continues.
static CUresult fails(const char *call, const char *format, ...) {
	const char *path = getenv("FAKE_LOG"), *fail = getenv("FAKE_FAIL");
	size_t n = strlen(call);
	if (path && *path) {
		FILE *f = fopen(path, "a");
		va_list list;
		va_start(list, format);
		fputs(call, f);
		vfprintf(f, format, list);
		fputc('\n', f);
		fclose(f);
		va_end(list);
	}
	return fail && !strncmp(fail, call, n) && fail[n] == '=' ? atoi(fail + n + 1) : 0;
}

#define CALL(name, ...) do { CUresult code = fails(#name, __VA_ARGS__); if (code) return code; } while (0)
#define IN_CONTEXT() do { if (current != the_context) return 201; } while (0)

CUresult cuInit(unsigned int flags) { CALL(cuInit, " %u", flags); return 0; }
CUresult cuGetErrorName(CUresult code, const char **name) {
	*name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 218 ? "CUDA_ERROR_INVALID_PTX" :
		code == 500 ? "CUDA_ERROR_NOT_FOUND" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
	return *name ? 0 : 1;
}
CUresult cuGetErrorString(CUresult code, const char **text) { *text = code == 700 ? "an illegal memory access was encountered" : "as a test asks"; return 0; }
CUresult cuDriverGetVersion(int *version) { CALL(cuDriverGetVersion, ""); *version = 12040; return 0; }
CUresult cuDeviceGetCount(int *count) { CALL(cuDeviceGetCount, ""); *count = number("FAKE_COUNT", 1); return 0; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { CALL(cuDeviceGet, " %d", ordinal); *device = 40 + ordinal; return ordinal < number("FAKE_COUNT", 1) ? 0 : 101; }
CUresult cuDeviceGetName(char *name, int length, CUdevice device) { CALL(cuDeviceGetName, " %d", device); snprintf(name, length, "Fake %d", device); return 0; }
CUresult cuDeviceGetUuid_v2(CUuuid *id, CUdevice device) { CALL(cuDeviceGetUuid_v2, ""); memset(id, device, sizeof *id); return 0; }
CUresult cuDeviceGetUuid(CUuuid *id, CUdevice device) { return cuDeviceGetUuid_v2(id, device); } // of gorgonia.org/cu
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
	CALL(cuDeviceGetAttribute, " %d", which);
	*value = which == 75 ? number("FAKE_MAJOR", 8) : 1000 + which;
	return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) { CALL(cuDeviceTotalMem_v2, ""); *bytes = 5ull << 30; return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { CALL(cuDevicePrimaryCtxRetain, " %d", device); *context = the_context; return 0; }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { CALL(cuDevicePrimaryCtxRelease_v2, " %d", device); return 0; }
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return 0; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = current; return 0; }
CUresult cuCtxSynchronize(void) { IN_CONTEXT(); CALL(cuCtxSynchronize, ""); return 0; }
CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) { IN_CONTEXT(); CALL(cuMemGetInfo_v2, ""); *unused = 3ull << 30; *total = 5ull << 30; return 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
	IN_CONTEXT();
	CALL(cuMemAlloc_v2, " %zu", bytes);
	if (!bytes) return 1;
	*at = (CUdeviceptr)aligned_alloc(256, (bytes + 255) / 256 * 256);
	return 0;
}
CUresult cuMemFree_v2(CUdeviceptr at) { IN_CONTEXT(); CALL(cuMemFree_v2, ""); free((void *)at); return 0; }
CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned int flags) {
	IN_CONTEXT(); CALL(cuMemHostRegister_v2, " %zu %u", bytes, flags); return at ? 0 : 1;
}
CUresult cuMemHostUnregister(void *at) { IN_CONTEXT(); CALL(cuMemHostUnregister, ""); return at ? 0 : 1; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
	IN_CONTEXT(); CALL(cuMemcpyHtoDAsync_v2, " %zu", bytes); memcpy((void *)to, from, bytes); return 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
	IN_CONTEXT(); CALL(cuMemcpyDtoHAsync_v2, " %zu", bytes); memcpy(to, (void *)from, bytes); return 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
	IN_CONTEXT(); CALL(cuMemcpyDtoDAsync_v2, " %zu", bytes); memcpy((void *)to, (void *)from, bytes); return 0;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
	IN_CONTEXT(); CALL(cuMemsetD8Async, " %d %zu", value, bytes); memset((void *)to, value, bytes); return 0;
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *text, unsigned int count, CUjit_option *options, void **values) {
	IN_CONTEXT();
	for (unsigned int i = 0; i < count; i++) // CU_JIT_ERROR_LOG_BUFFER and its size
		if (options[i] == 5) snprintf(values[i], (size_t)values[1 - i], "ptxas: line 1");
	CALL(cuModuleLoadDataEx, " %zu", strlen(text));
	*module = (CUmodule)0x2000;
	return 0;
}
CUresult cuModuleUnload(CUmodule module) { IN_CONTEXT(); CALL(cuModuleUnload, ""); return module == (CUmodule)0x2000 ? 0 : 400; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	IN_CONTEXT(); CALL(cuModuleGetFunction, " %s", name);
	*function = (CUfunction)0x3000;
	return strcmp(name, "absent") ? 0 : 500;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name) {
	IN_CONTEXT(); CALL(cuModuleGetGlobal_v2, " %s", name);
	*at = 0x4000, *bytes = 12;
	return strcmp(name, "absent") ? 0 : 500;
}
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
		unsigned int bz, unsigned int shared, CUstream stream, void **parameters, void **extra) {
	char bytes[256] = "";
	IN_CONTEXT();
	if (function != (CUfunction)0x3000 || stream != (CUstream)0x5000 || parameters && extra) return 400;
	const char *sizes = parameters ? getenv("FAKE_PARAMETERS") : NULL;
	for (size_t at = 0, i = 0; sizes && *sizes; i++) { // each at its natural alignment
		char *end;
		size_t size = strtoul(sizes, &end, 10), start = (at + size - 1) / size * size;
		while (at < start) sprintf(bytes + 2 * at++, "00");
		for (size_t k = 0; k < size; k++) sprintf(bytes + 2 * at++, "%02x", ((unsigned char *)parameters[i])[k]);
		sizes = *end ? end + 1 : end;
	}
	if (extra) {
		if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return 1;
		for (size_t i = 0; i < *(size_t *)extra[3] && i < 100; i++)
			sprintf(bytes + 2 * i, "%02x", ((unsigned char *)extra[1])[i]);
	}
	CALL(cuLaunchKernel, " %ux%ux%u %ux%ux%u %u %s", gx, gy, gz, bx, by, bz, shared, bytes);
	return 0;
}
CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { IN_CONTEXT(); CALL(cuStreamCreate, " %u", flags); *stream = (CUstream)0x5000; return 0; }
CUresult cuStreamDestroy_v2(CUstream stream) { IN_CONTEXT(); CALL(cuStreamDestroy_v2, ""); return 0; }
CUresult cuStreamSynchronize(CUstream stream) { IN_CONTEXT(); CALL(cuStreamSynchronize, ""); return 0; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) { IN_CONTEXT(); CALL(cuStreamWaitEvent, " %u", flags); return 0; }
CUresult cuEventCreate(CUevent *event, unsigned int flags) { IN_CONTEXT(); CALL(cuEventCreate, " %u", flags); *event = (CUevent)0x6000; return 0; }
CUresult cuEventDestroy_v2(CUevent event) { IN_CONTEXT(); CALL(cuEventDestroy_v2, ""); return 0; }
CUresult cuEventRecord(CUevent event, CUstream stream) { IN_CONTEXT(); CALL(cuEventRecord, ""); return event == (CUevent)0x6000 && stream == (CUstream)0x5000 ? 0 : 400; }
CUresult cuEventQuery(CUevent event) { IN_CONTEXT(); CALL(cuEventQuery, ""); return 0; }
CUresult cuEventSynchronize(CUevent event) { IN_CONTEXT(); CALL(cuEventSynchronize, ""); return 0; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) { IN_CONTEXT(); CALL(cuEventElapsedTime, ""); *milliseconds = 1.5; return 0; }
