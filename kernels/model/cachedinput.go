package model

import "siafu/kernels"

// cachedInput is ÂX of the own vertices [n x in], in float32 or bfloat16, once there is
// room for it.
type cachedInput struct{ rows kernels.Mat }
