package codec

import (
	"slices"
	"strconv"
	"strings"

	"siafu/internal/catalog"
	"siafu/internal/fault"
)

// entry names and describes a choice.
type entry = catalog.Entry

// kind describes a codec. A new codec is one kind in the file of the codec and a line in
// kinds.
type kind struct {
	entry
	// make returns the codec; nil for compressor, which then follows none.
	make       func(param int) Codec
	param      *parameter  // nil: none
	compressor *compressor // set: +NAME may follow other codecs
	bytes      int         // of a number, by which compressors split payloads; 0: 1
	class      string      // of classes; empty: its error has no limit relative to a row
	// auto lists the suffixes of the forms that --codec auto may choose, such as "" and "+s2".
	auto   []string
	hidden bool // help does not list it
}

// parameter is the number after a codec's name.
type parameter struct{ def, least, most int }

// withParameter returns the name of a codec with a parameter, which the name omits if it is def.
func withParameter(name string, value, def int) string {
	if value == def {
		return name
	}
	return name + ":" + strconv.Itoa(value)
}

// kinds lists the codecs, the most exact first.
var kinds = []*kind{
	&noneKind,
	&zerosKind,
	&s2Kind,
	&zstdKind,
	&bf16Kind,
	&int8Kind,
	&adaptiveKind,
	&int4Kind,
	&int2Kind,
	&polylineKind,
}

// lossless is the class of codecs that change no bit.
const lossless = "lossless"

// classes lists the classes of errors, the smallest first.
var classes = []string{lossless, "bf16", "int8", "int4"}

// Classes returns the limits of Automatic, the smallest error first.
func Classes() []string { return slices.Clone(classes) }

// Automatic returns the names of the codecs among which --codec auto chooses, the most exact
// first. Their errors are at most the errors of a class of Classes.
func Automatic(class string) (names []string) {
	for _, allowed := range classes[:slices.Index(classes, class)+1] {
		for _, k := range kinds {
			if k.class != allowed {
				continue
			}
			for _, suffix := range k.auto {
				names = append(names, k.Name+suffix)
			}
		}
	}
	return names
}

// Choices describes the codecs that help lists.
func Choices() []catalog.Entry {
	return catalog.Entries(kinds, func(k *kind) bool { return !k.hidden })
}

// Kinds returns one name for each kind of codec, in the form that ByName accepts.
func Kinds() []string { return catalog.Names(Choices()) }

// Names lists the names that ByName accepts.
func Names() string { return withoutFeedback() + " and, unless exact, +ef" }

// withoutFeedback lists the names without +ef.
func withoutFeedback() string {
	listed := func(exact bool) string {
		list := catalog.Entries(kinds, func(k *kind) bool { return !k.hidden && exact == (k.class == lossless) })
		return strings.Join(catalog.Forms(list), ", ")
	}
	var suffixes []string
	for _, e := range catalog.Entries(kinds, func(k *kind) bool { return k.compressor != nil }) {
		suffixes = append(suffixes, "+"+e.Name)
	}
	return listed(true) + " (exact), " + listed(false) + ", with " + catalog.List(suffixes, "or")
}

// ByName returns the codec with a name of the form NAME[:PARAMETER][+s2|+zstd][+ef]. With
// +ef it returns a Corrected. Its faults have kind Usage.
func ByName(name string) (Codec, error) {
	rest, corrected := strings.CutSuffix(name, "+ef")
	rest, suffix, isPacked := strings.Cut(rest, "+")
	c, bytes, ok := byBase(rest)
	if isPacked && ok {
		c, ok = compress(c, bytes, suffix)
	}
	if !ok || corrected && c.Lossless() {
		return nil, fault.New(fault.Usage, "codec", "", "unknown codec %q", name).Then("use one of %s", Names())
	}
	if corrected {
		return Corrected{c}, nil
	}
	return c, nil
}

// Exact returns c if it is lossless, otherwise none. Use it for rows that are sent once and
// cached, whose errors would never average out.
func Exact(c Codec) Codec {
	if c.Lossless() {
		return c
	}
	return none{}
}

// byBase returns the codec of a name without suffixes, and the bytes of a number in its
// payloads.
func byBase(name string) (c Codec, bytes int, ok bool) {
	name, text, hasParam := strings.Cut(name, ":")
	k, ok := catalog.Find(kinds, name)
	if !ok || hasParam && k.param == nil {
		return nil, 0, false
	}
	if k.compressor != nil {
		return newPacked(none{}, k.compressor, noneKind.bytes), noneKind.bytes, true
	}
	value := 0
	if k.param != nil {
		value = k.param.def
	}
	if hasParam {
		var err error
		if value, err = strconv.Atoi(text); err != nil || value < k.param.least || value > k.param.most {
			return nil, 0, false
		}
	}
	return k.make(value), max(k.bytes, 1), true
}

// compress returns c, which has numbers of some bytes, followed by a compressor.
func compress(c Codec, bytes int, name string) (Codec, bool) {
	k, ok := catalog.Find(kinds, name)
	if !ok || k.compressor == nil {
		return nil, false
	}
	return newPacked(c, k.compressor, bytes), true
}

// always makes one codec for any parameter.
func always(c Codec) func(int) Codec { return func(int) Codec { return c } }
