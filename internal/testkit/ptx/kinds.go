package ptx

// kind is a type of PTX.
type kind uint8

const (
	none kind = iota
	pred
	b8
	b16
	b32
	b64
	u8
	u16
	u32
	u64
	s8
	s16
	s32
	s64
	f16
	bf16
	f32
	f64
)

var kinds = map[string]kind{
	"pred": pred, "b8": b8, "b16": b16, "b32": b32, "b64": b64,
	"u8": u8, "u16": u16, "u32": u32, "u64": u64,
	"s8": s8, "s16": s16, "s32": s32, "s64": s64,
	"f16": f16, "bf16": bf16, "f32": f32, "f64": f64,
	"f16x2": b32, "bf16x2": b32,
}

// sizes are the bytes of a value of each kind.
var sizes = [...]int{
	none: 0, pred: 1, b8: 1, u8: 1, s8: 1, b16: 2, u16: 2, s16: 2, f16: 2, bf16: 2,
	b32: 4, u32: 4, s32: 4, f32: 4, b64: 8, u64: 8, s64: 8, f64: 8,
}

// size returns the bytes of a value.
func (k kind) size() int { return sizes[k] }

func (k kind) signed() bool { return k >= s8 && k <= s64 }
func (k kind) float() bool  { return k >= f16 }

func (k kind) integer() bool { return k >= b8 && k <= s64 }

// unsigned returns the unsigned kind of k's width.
func (k kind) unsigned() kind {
	return map[int]kind{1: u8, 2: u16, 4: u32, 8: u64}[k.size()]
}

// space is an address space.
type space uint8

const (
	generic space = iota
	global
	constant
	shared
	local
	param
)

var spaces = map[string]space{
	"global": global, "const": constant, "shared": shared, "local": local, "param": param,
}

func (s space) String() string {
	return [...]string{"generic", "global", "constant", "shared", "local", "parameter"}[s]
}

// Addresses. As on a device, addresses in a space differ from the generic addresses of the
// same bytes, except global and constant ones: cvta adds window. Address ranges of spaces are
// disjoint, so that an address used in the wrong space is out of bounds.
const (
	sharedBase  = 1 << 24
	dynamicBase = 1 << 26 // of dynamic shared memory
	localBase   = 1 << 27
	paramBase   = 1 << 30
	spaceEnd    = 1 << 32
	window      = 1 << 44
	globalBase  = 1 << 46
	// guard is the gap between two allocations or variables.
	guard = 1 << 16
)
