package pickle

import (
	"reflect"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	list := func(items ...any) *List { return &List{items} }
	for _, c := range []struct {
		name, pickle string
		want         any
	}{
		{"none", "N.", nil},
		{"numbers", "\x80\x02(K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x00\x8a\x01\x80\x8a\x03\x00\x00\x01G\x3f\xf8\x00\x00\x00\x00\x00\x00t.",
			Tuple{int64(255), int64(65535), int64(-1), int64(0), int64(-128), int64(65536), 1.5}},
		{"words", "U\x02abT\x02\x00\x00\x00cdX\x02\x00\x00\x00ef\x87.", Tuple{"ab", "cd", "ef"}},
		{"protocol 4", "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00\x8c\x01m\x94\x8c\x01f\x93\x94h\x00\x86.", Tuple{Global("m f"), "m"}},
		{"memo", "]q\x01K\x01ah\x01\x86.", Tuple{list(int64(1)), list(int64(1))}},
		{"dict", "}(K\x01NK\x02\x88uK\x03\x89s.", &Dict{Keys: []any{int64(1), int64(2), int64(3)}, Values: []any{nil, true, false}}},
		{"call", "cm\nf\n)R]b.", &Object{Class: "m f", Args: Tuple{}, State: list()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decode([]byte(c.pickle))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, c.want)
			}
		})
	}
	for _, c := range []struct{ name, pickle, want string }{
		{"empty", "", "byte 0: truncated"},
		{"no stop", "N", "byte 1: truncated"},
		{"two values", "NN.", "does not hold one value"},
		{"a mark", "(.", "does not hold one value"},
		{"code", "cos\nsystem\nU\x02ls\x85R.", ""}, // a description, nothing more
		{"unknown", "N\xff.", "byte 1: instruction 0xff"},
		{"protocol", "\x80\x09N.", "pickle protocol 9"},
		{"length", "T\xff\xff\xff\xff.", "4294967295 bytes expected, 1 left"},
		{"longer", "\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "length"},
		{"no memo", "h\x05.", "memo 5 is empty"},
		{"not a list", "NNa.", "not a list"},
		{"half an item", "}(Nu.", "not a dict"},
		{"build", "NNb.", "not an object"},
		{"call of a number", "K\x01)R.", "not a name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(c.pickle))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
