package mapped

import "unsafe"

// Touch is Fetch on systems that cannot populate pages.
var Touch = touch

// BreakDirect makes direct reads of the file with b fail, which a pool serves.
func BreakDirect(b []byte) { mappingOf(uintptr(unsafe.Pointer(&b[0]))).direct.Close() }
