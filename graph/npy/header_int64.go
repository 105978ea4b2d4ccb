package npy

// HeaderInt64 is HeaderFloat32 for an int64 vector [n].
func HeaderInt64(n int) []byte { return encodeHeader("<i8", []int{n}) }
