#include "textflag.h"

// The macros have the loops for vectors of BYTES, so that both sets of instructions run the same ones.

// ROWS loads rows, and prefetches the row ahead unless that is 0. Without prefetches, rows of one and two vectors
// have shorter loops. Nothing uses what is loaded.
#define ROWS(BYTES, V) \
	MOVQ x+0(FP), SI       \
	MOVQ stride+8(FP), DX  \
	MOVQ vectors+16(FP), R8 \
	MOVQ ids+24(FP), DI    \
	MOVQ n+32(FP), CX      \
	MOVQ ahead+40(FP), R9  \
	TESTQ R9, R9           \
	JNE  row               \
	CMPQ R8, $1            \
	JEQ  single            \
	CMPQ R8, $2            \
	JEQ  pair              \
row:                       \
	TESTQ R9, R9           \
	JEQ  load              \
	MOVL (DI)(R9*4), AX    \
	IMULQ DX, AX           \
	ADDQ SI, AX            \
	MOVQ R8, BX            \
fetch:                     \
	PREFETCHT0 (AX)        \
	ADDQ $64, AX           \
	SUBQ $(64/BYTES), BX   \
	JGT  fetch             \
load:                      \
	MOVL (DI), AX          \
	IMULQ DX, AX           \
	ADDQ SI, AX            \
	MOVQ R8, BX            \
	SUBQ $4, BX            \
	JLT  few               \
four:                      \
	VMOVUPS (AX), V        \
	VMOVUPS BYTES(AX), V   \
	VMOVUPS (2*BYTES)(AX), V \
	VMOVUPS (3*BYTES)(AX), V \
	ADDQ $(4*BYTES), AX    \
	SUBQ $4, BX            \
	JGE  four              \
few:                       \
	ADDQ $4, BX            \
	JEQ  next              \
one:                       \
	VMOVUPS (AX), V        \
	ADDQ $BYTES, AX        \
	DECQ BX                \
	JNE  one               \
next:                      \
	ADDQ $4, DI            \
	DECQ CX                \
	JNE  row               \
	VZEROUPPER             \
	RET                    \
single:                    \
	MOVL (DI), AX          \
	IMULQ DX, AX           \
	VMOVUPS (SI)(AX*1), V  \
	ADDQ $4, DI            \
	DECQ CX                \
	JNE  single            \
	VZEROUPPER             \
	RET                    \
pair:                      \
	MOVL (DI), AX          \
	IMULQ DX, AX           \
	VMOVUPS (SI)(AX*1), V  \
	VMOVUPS BYTES(SI)(AX*1), V \
	ADDQ $4, DI            \
	DECQ CX                \
	JNE  pair              \
	VZEROUPPER             \
	RET

// MULTIPLYADDS adds X times Y to 14 vectors, which hide the latency of two multipliers.
#define MULTIPLYADDS(X, Y, A, B, C, D, E, F, G, H, I, J, K, L, M, N) \
	MOVQ n+0(FP), CX       \
	VBROADCASTSS x+8(FP), X \
	VBROADCASTSS y+12(FP), Y \
	VMOVAPS X, A; VMOVAPS X, B; VMOVAPS X, C; VMOVAPS X, D; VMOVAPS X, E; VMOVAPS X, F; VMOVAPS X, G \
	VMOVAPS X, H; VMOVAPS X, I; VMOVAPS X, J; VMOVAPS X, K; VMOVAPS X, L; VMOVAPS X, M; VMOVAPS X, N \
step:                      \
	VFMADD231PS X, Y, A; VFMADD231PS X, Y, B; VFMADD231PS X, Y, C; VFMADD231PS X, Y, D; VFMADD231PS X, Y, E \
	VFMADD231PS X, Y, F; VFMADD231PS X, Y, G; VFMADD231PS X, Y, H; VFMADD231PS X, Y, I; VFMADD231PS X, Y, J \
	VFMADD231PS X, Y, K; VFMADD231PS X, Y, L; VFMADD231PS X, Y, M; VFMADD231PS X, Y, N \
	DECQ CX                \
	JNE  step              \
	VZEROUPPER             \
	RET

// EXPONENTIALS sets P to 2^T times a polynomial of X - T ln 2. SHIFT, 1.5 * 2^23, leaves the integer T in the low
// bits of N.
#define EXPONENTIALS(BYTES, LOG2E, SHIFT, LN2, C6, C5, C4, C3, C2, ONE, X, N, T, P) \
	MOVQ dst+0(FP), DI     \
	MOVQ x+8(FP), SI       \
	MOVQ vectors+16(FP), CX \
	MOVQ constants+24(FP), AX \
	VBROADCASTSS 0(AX), LOG2E; VBROADCASTSS 4(AX), SHIFT; VBROADCASTSS 8(AX), LN2; VBROADCASTSS 12(AX), C6 \
	VBROADCASTSS 16(AX), C5; VBROADCASTSS 20(AX), C4; VBROADCASTSS 24(AX), C3; VBROADCASTSS 28(AX), C2 \
	VBROADCASTSS 32(AX), ONE \
vector:                    \
	VMOVUPS (SI), X        \
	VMOVAPS SHIFT, N       \
	VFMADD231PS LOG2E, X, N \
	VSUBPS SHIFT, N, T     \
	VFNMADD231PS LN2, T, X \
	VMOVAPS C6, P          \
	VFMADD213PS C5, X, P   \
	VFMADD213PS C4, X, P   \
	VFMADD213PS C3, X, P   \
	VFMADD213PS C2, X, P   \
	VFMADD213PS ONE, X, P  \
	VFMADD213PS ONE, X, P  \
	VPSLLD $23, N, N       \
	VPADDD N, P, P         \
	VMOVUPS P, (DI)        \
	ADDQ $BYTES, SI        \
	ADDQ $BYTES, DI        \
	DECQ CX                \
	JNE  vector            \
	VZEROUPPER             \
	RET

TEXT ·rows512(SB), NOSPLIT, $0-48
	ROWS(64, Z0)

TEXT ·rows256(SB), NOSPLIT, $0-48
	ROWS(32, Y0)

TEXT ·multiplyAdds512(SB), NOSPLIT, $0-16
	MULTIPLYADDS(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)

TEXT ·multiplyAdds256(SB), NOSPLIT, $0-16
	MULTIPLYADDS(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15)

TEXT ·exponentials512(SB), NOSPLIT, $0-32
	EXPONENTIALS(64, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12)

TEXT ·exponentials256(SB), NOSPLIT, $0-32
	EXPONENTIALS(32, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12)

// func cpuid(leaf, sub uint32) (a, b, c uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	RET
