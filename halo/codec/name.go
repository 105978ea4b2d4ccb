package codec

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"siafu/internal/fault"
)

// Codec numbers in block headers.
const (
	idNone = iota
	idBF16
	idInt2
	idInt4
	idInt8
	idAdaptive
	idPolyline
	idZeros
)

// Names lists the names that ByName accepts.
const Names = "none, s2, zstd, zeros, bf16, int8, int4, adaptive[:BITS], polyline[:DECIMALS], " +
	"those after zstd also with the suffix +s2 or +zstd, and the last five with the suffix +ef"

// ByName returns the codec with a name of the form NAME[:PARAMETER][+s2|+zstd][+ef]. With
// +ef it returns a Corrected. Its faults have kind Usage.
func ByName(name string) (Codec, error) {
	rest, corrected := strings.CutSuffix(name, "+ef")
	rest, pack, isPacked := strings.Cut(rest, "+")
	c, ok := byBase(rest)
	if isPacked && ok {
		c, ok = byPack(c, pack)
	}
	if !ok || corrected && c.Lossless() {
		return nil, fault.New(fault.Usage, "codec", "", "unknown codec %q", name).Then("use one of %s", Names)
	}
	if corrected {
		return Corrected{c}, nil
	}
	return c, nil
}

// Kinds returns one name for each kind of codec, in the form that ByName accepts.
func Kinds() []string {
	return []string{"none", "s2", "zstd", "zeros", "bf16", "int8", "int4", "adaptive", "polyline"}
}

// Exact returns c if it is lossless, otherwise none. Use it for rows that are sent once and
// cached, whose errors would never average out.
func Exact(c Codec) Codec {
	if c.Lossless() {
		return c
	}
	return none{}
}

// byBase is the codec of a name without suffixes.
func byBase(name string) (Codec, bool) {
	name, param, hasParam := strings.Cut(name, ":")
	if p, ok := parametric[name]; ok {
		value := p.def
		if hasParam {
			var err error
			if value, err = strconv.Atoi(param); err != nil || value < p.least || value > p.most {
				return nil, false
			}
		}
		return p.make(value), true
	}
	if hasParam {
		return nil, false
	}
	switch name {
	case "s2", "zstd":
		return byPack(none{}, name)
	}
	i := slices.IndexFunc(simple, func(c Codec) bool { return c.Name() == name })
	if i < 0 {
		return nil, false
	}
	return simple[i], true
}

// byPack returns c followed by a general compressor.
func byPack(c Codec, name string) (Codec, bool) {
	switch name {
	case "s2":
		return newPacked(c, s2Pack{}, name, 1), true
	case "zstd":
		return newPacked(c, zstdPacker(), name, 2), true
	}
	return nil, false
}

// zstdPacker is made on first use.
var zstdPacker = sync.OnceValue(newZstdPack)

// simple lists the codecs without a parameter.
var simple = []Codec{none{}, zeros{}, bfloat16{}, &uniform{idInt2, "int2", 2}, &uniform{idInt4, "int4", 4}, &uniform{idInt8, "int8", 8}}

// parametric lists the codecs with a parameter.
var parametric = map[string]struct {
	def, least, most int
	make             func(int) Codec
}{
	"adaptive": {defaultBudget, leastBudget, mostBudget, newAdaptive},
	"polyline": {defaultDecimals, 0, mostDecimals, newPolyline},
}
