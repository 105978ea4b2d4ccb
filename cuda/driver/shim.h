// Wrappers of the driver's calls. A function returns the driver's code. A context belongs to a
// thread, but a goroutine to no thread, so that each call that needs a context sets it.

#ifndef SIAFU_DRIVER_SHIM_H
#define SIAFU_DRIVER_SHIM_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

// The calls of the library, in the order of SIAFU_CALLS.
typedef struct {
#define SIAFU_FIELD(name, parameters) CUresult(*name) parameters;
	SIAFU_CALLS(SIAFU_FIELD)
} siafu_driver;

// siafu_open sets calls to the functions of a library, which stays open, and returns NULL. On
// failure it returns the error, which the caller must copy before the next call.
static const char *siafu_open(const char *library, siafu_driver *calls) {
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) return dlerror();
#define SIAFU_FIND(name, parameters) \
	*(void **)&calls->name = dlsym(handle, #name); \
	if (!calls->name) return dlerror();
	SIAFU_CALLS(SIAFU_FIND)
	return NULL;
}

// siafu_text returns the driver's text for a code, in static memory.
static const char *siafu_text(siafu_driver *d, CUresult code, int name) {
	const char *text = NULL;
	CUresult unknown = name ? d->cuGetErrorName(code, &text) : d->cuGetErrorString(code, &text);
	return unknown || !text ? "" : text;
}

static CUresult siafu_init(siafu_driver *d) { return d->cuInit(0); }
static CUresult siafu_version(siafu_driver *d, int *version) { return d->cuDriverGetVersion(version); }
static CUresult siafu_count(siafu_driver *d, int *count) { return d->cuDeviceGetCount(count); }
static CUresult siafu_device(siafu_driver *d, CUdevice *device, int n) { return d->cuDeviceGet(device, n); }
static CUresult siafu_name(siafu_driver *d, char *name, int length, CUdevice device) {
	return d->cuDeviceGetName(name, length, device);
}
static CUresult siafu_id(siafu_driver *d, CUuuid *id, CUdevice device) { return d->cuDeviceGetUuid_v2(id, device); }
static CUresult siafu_attribute(siafu_driver *d, int *value, int which, CUdevice device) {
	return d->cuDeviceGetAttribute(value, which, device);
}
static CUresult siafu_total(siafu_driver *d, size_t *bytes, CUdevice device) {
	return d->cuDeviceTotalMem_v2(bytes, device);
}
static CUresult siafu_retain(siafu_driver *d, CUcontext *context, CUdevice device) {
	return d->cuDevicePrimaryCtxRetain(context, device);
}
static CUresult siafu_release(siafu_driver *d, CUdevice device) { return d->cuDevicePrimaryCtxRelease_v2(device); }

// All functions below run in a context.
#define SIAFU_IN(name, call, ...) \
	static CUresult name(siafu_driver *d, CUcontext context, ##__VA_ARGS__) { \
		CUresult code = d->cuCtxSetCurrent(context); \
		return code ? code : d->call; \
	}

SIAFU_IN(siafu_synchronize, cuCtxSynchronize())
SIAFU_IN(siafu_memory, cuMemGetInfo_v2(unused, total), size_t *unused, size_t *total)
SIAFU_IN(siafu_alloc, cuMemAlloc_v2(at, bytes), CUdeviceptr *at, size_t bytes)
SIAFU_IN(siafu_free, cuMemFree_v2(at), CUdeviceptr at)
SIAFU_IN(siafu_pin, cuMemHostRegister_v2(at, bytes, SIAFU_HOST_REGISTER_PORTABLE), void *at, size_t bytes)
SIAFU_IN(siafu_unpin, cuMemHostUnregister(at), void *at)
SIAFU_IN(siafu_unload, cuModuleUnload(module), CUmodule module)
SIAFU_IN(siafu_function, cuModuleGetFunction(function, module, name), CUfunction *function, CUmodule module, const char *name)
SIAFU_IN(siafu_global, cuModuleGetGlobal_v2(at, bytes, module, name), CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
SIAFU_IN(siafu_stream, cuStreamCreate(stream, SIAFU_STREAM_NON_BLOCKING), CUstream *stream)
SIAFU_IN(siafu_stream_end, cuStreamDestroy_v2(stream), CUstream stream)
SIAFU_IN(siafu_stream_synchronize, cuStreamSynchronize(stream), CUstream stream)
SIAFU_IN(siafu_stream_wait, cuStreamWaitEvent(stream, event, 0), CUstream stream, CUevent event)
SIAFU_IN(siafu_in, cuMemcpyHtoDAsync_v2(to, from, bytes, stream), CUstream stream, CUdeviceptr to, const void *from, size_t bytes)
SIAFU_IN(siafu_out, cuMemcpyDtoHAsync_v2(to, from, bytes, stream), CUstream stream, void *to, CUdeviceptr from, size_t bytes)
SIAFU_IN(siafu_copy, cuMemcpyDtoDAsync_v2(to, from, bytes, stream), CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t bytes)
SIAFU_IN(siafu_set, cuMemsetD8Async(to, value, bytes, stream), CUstream stream, CUdeviceptr to, unsigned char value, size_t bytes)
SIAFU_IN(siafu_event, cuEventCreate(event, 0), CUevent *event)
SIAFU_IN(siafu_event_end, cuEventDestroy_v2(event), CUevent event)
SIAFU_IN(siafu_event_record, cuEventRecord(event, stream), CUevent event, CUstream stream)
SIAFU_IN(siafu_event_query, cuEventQuery(event), CUevent event)
SIAFU_IN(siafu_event_synchronize, cuEventSynchronize(event), CUevent event)
SIAFU_IN(siafu_event_since, cuEventElapsedTime(milliseconds, start, end), float *milliseconds, CUevent start, CUevent end)

// siafu_load compiles PTX that ends with a zero. log [length] gets the compiler's errors, which
// end with a zero.
static CUresult siafu_load(siafu_driver *d, CUcontext context, CUmodule *module, const char *text, char *log, unsigned int length) {
	CUjit_option options[] = {SIAFU_JIT_ERROR_LOG_BUFFER, SIAFU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(size_t)length};
	memset(log, 0, length);
	CUresult code = d->cuCtxSetCurrent(context);
	if (!code) code = d->cuModuleLoadDataEx(module, text, 2, options, values);
	log[length - 1] = 0;
	return code;
}

// siafu_launch runs a grid with parameters in the given bytes.
static CUresult siafu_launch(siafu_driver *d, CUcontext context, CUstream stream, CUfunction function,
		const unsigned int *grid, const unsigned int *block, unsigned int shared, void *parameters, size_t bytes) {
	// CU_LAUNCH_PARAM_BUFFER_POINTER, …_SIZE, …_END of cuda.h
	void *extra[] = {(void *)1, parameters, (void *)2, &bytes, (void *)0};
	CUresult code = d->cuCtxSetCurrent(context);
	if (code) return code;
	return d->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream,
		NULL, bytes ? extra : NULL);
}

#endif
