package importers

import (
	"cmp"
	"strings"
)

// debVersionCompare orders two versions "[epoch:]upstream[-revision]" as dpkg does
// (deb-version(7)): negative when a is older than b. No version is invalid: the order is
// total.
func debVersionCompare(a, b string) int {
	aEpoch, aUp, aRev := debVersionParts(a)
	bEpoch, bUp, bRev := debVersionParts(b)
	return cmp.Or(
		debPartCompare(aEpoch, bEpoch),
		debPartCompare(aUp, bUp),
		debPartCompare(aRev, bRev),
	)
}

// debVersionParts splits at the first colon and the last hyphen.
func debVersionParts(v string) (epoch, upstream, revision string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// debPartCompare alternates between runs of non-digits, compared by debOrder, and of digits,
// compared as numbers of any length.
func debPartCompare(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a = debCut(a, false)
		y, b = debCut(b, false)
		if c := debTextCompare(x, y); c != 0 {
			return c
		}
		x, a = debCut(a, true)
		y, b = debCut(b, true)
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
	}
	return 0
}

// debCut cuts the leading run of digits, or of non-digits, from s.
func debCut(s string, digits bool) (head, rest string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9') == digits {
		i++
	}
	return s[:i], s[i:]
}

func debTextCompare(a, b string) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(debOrder(a, i), debOrder(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

// debOrder ranks byte i of s: a tilde comes before the end of the text, the
// end before letters, letters before everything else.
func debOrder(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case 'a' <= s[i] && s[i] <= 'z' || 'A' <= s[i] && s[i] <= 'Z':
		return int(s[i])
	}
	return int(s[i]) + 256
}
