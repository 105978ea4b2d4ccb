//go:build !race

package avx

import "golang.org/x/sys/cpu"

// Compiled is the best instruction set of this build.
const Compiled = AVX512

// detected returns the best instruction set of this machine.
func detected() Set {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2:
		return AVX2
	}
	return None
}
