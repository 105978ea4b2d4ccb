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
	const digits = "0123456789"
	for a != "" || b != "" {
		x, y := debUpToAny(a, digits), debUpToAny(b, digits)
		for i := range max(len(x), len(y)) {
			if c := cmp.Compare(debOrder(x, i), debOrder(y, i)); c != 0 {
				return c
			}
		}
		a, b = a[len(x):], b[len(y):]
		restA, restB := strings.TrimLeft(a, digits), strings.TrimLeft(b, digits)
		x, y = strings.TrimLeft(a[:len(a)-len(restA)], "0"), strings.TrimLeft(b[:len(b)-len(restB)], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return 0
}

// debUpToAny returns s up to the first of the given characters.
func debUpToAny(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
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
