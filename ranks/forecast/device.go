package forecast

import (
	"unsafe"

	"siafu/graph/mapped"
	"siafu/kernels"
)

// elsewhere is an Ops of a sketch whose memory is a GPU's: arrays are counted in an
// arena of its own, whatever their purpose, and nothing is copied.
type elsewhere struct {
	kernels.Ops
	arena *mapped.Arena
}

var _ kernels.Wire = elsewhere{}

func (elsewhere) Remote() bool { return true }

func (e elsewhere) Alloc(_ *mapped.Arena, bytes int) unsafe.Pointer {
	if bytes == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(mapped.Make[byte](e.arena, bytes)))
}

func (elsewhere) Upload(unsafe.Pointer, []byte)   {}
func (elsewhere) Download([]byte, unsafe.Pointer) {}
func (elsewhere) Copy(kernels.Mat, kernels.Mat)   {}
func (elsewhere) Clear(kernels.Mat)               {}

func (e elsewhere) Crossing(*mapped.Arena) kernels.Crossing               { return kernels.AtOnce(e) }
func (elsewhere) EncodeRows(kernels.Vector[uint8], int, kernels.Outgoing) {}
func (elsewhere) DecodeRows(kernels.Incoming, int, kernels.Vector[uint8]) {}
