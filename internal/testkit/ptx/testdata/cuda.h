// The part of CUDA that the kernels here use. clang compiles device code without
// NVIDIA's headers, and then knows no names of theirs.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

#define threadX __nvvm_read_ptx_sreg_tid_x()
#define threadY __nvvm_read_ptx_sreg_tid_y()
#define blockX __nvvm_read_ptx_sreg_ctaid_x()
#define blockY __nvvm_read_ptx_sreg_ctaid_y()
#define threadsX __nvvm_read_ptx_sreg_ntid_x()
#define blocksX __nvvm_read_ptx_sreg_nctaid_x()
#define warpThreads 32
#define allLanes 0xffffffffu

#define barrier() __nvvm_bar_sync(0)
#define shuffleDown(x, n) __nvvm_shfl_sync_down_f32(allLanes, x, n, 31)
#define shuffleXor(x, n) __nvvm_shfl_sync_bfly_f32(allLanes, x, n, 31)
#define atomicAddInt(p, x) __nvvm_atom_add_gen_i(p, x)
#define atomicAddFloat(p, x) __nvvm_atom_add_gen_f(p, x)

typedef unsigned int uint;
typedef long long int64;
struct alignas(16) float4 { float x, y, z, w; };
