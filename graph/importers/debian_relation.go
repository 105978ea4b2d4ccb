package importers

import (
	"cmp"
	"slices"
	"strings"
)

// debRelations are the fields whose packages become neighbours.
var debRelations = []string{"depends", "pre-depends", "recommends", "suggests", "enhances"}

// debProperties names the bits of a debProps.
var debProperties = append(slices.Clone(debRelations), "version", "alternative")

// debProps is a bit set of a relation's properties: its field, by the index in debRelations, and
// the constants below.
type debProps uint8

const (
	debHasVersion  debProps = 1 << (5 + iota) // only for certain versions
	debAlternative                            // after another alternative
)

// debRelation is a package in a relation field, with the properties of the relation.
type debRelation struct {
	name  string
	props debProps
}

// debParseRelations appends the packages of a relation field to dst: "a (>= 1) | b:any, c
// [amd64] <!nocheck>" names a, b and c. Each alternative is one relation, for any version and
// architecture. Its properties are field and those that its text gives. An empty entry between
// commas is allowed, as apt allows it. A syntax error is returned as the offending alternative
// and its offset in value.
func debParseRelations(dst []debRelation, field debProps, value string) (list []debRelation, bad string, at int) {
	for entry := range strings.SplitSeq(value, ",") {
		props := field
		for alternative := range strings.SplitSeq(entry, "|") {
			trimmed := strings.TrimSpace(alternative)
			name, versioned, ok := debRelationName(trimmed)
			r := debRelation{name, props}
			if versioned {
				r.props |= debHasVersion
			}
			switch {
			case ok:
				dst, props = append(dst, r), props|debAlternative
			case strings.TrimSpace(entry) == "":
			case trimmed == "": // shown with its neighbours
				return dst, strings.TrimSpace(entry), at
			default:
				return dst, trimmed, at + strings.Index(alternative, trimmed)
			}
			at += len(alternative) + 1
		}
	}
	return dst, "", 0
}

// debRelationName parses one alternative: a name, an architecture qualifier, a
// version in round, architectures in square and build profiles in angle
// brackets (Debian policy 7.1), all but the name optional.
func debRelationName(s string) (name string, versioned, ok bool) {
	rest := strings.TrimLeftFunc(s, debNameRune)
	name = s[:len(s)-len(rest)]
	ok = debPackageName(name)
	if qualifier, found := strings.CutPrefix(rest, ":"); found {
		rest = strings.TrimLeftFunc(qualifier, func(r rune) bool { return !strings.ContainsRune(" \t\n([<", r) })
		ok = ok && len(rest) < len(qualifier)
	}
	rest = strings.TrimSpace(rest)
	versioned = strings.HasPrefix(rest, "(")
	for _, brackets := range []string{"()", "[]", "<>"} {
		for ok && strings.HasPrefix(rest, brackets[:1]) {
			var inside string
			inside, rest, ok = strings.Cut(rest[1:], brackets[1:])
			inside, rest = strings.TrimSpace(inside), strings.TrimSpace(rest)
			ok = ok && inside != "" && (brackets != "()" || debVersioned(inside))
			if brackets != "<>" {
				break // only profiles may be repeated
			}
		}
	}
	return name, versioned, ok && rest == ""
}

// debVersioned reports whether s is an operator and a version; "<" and ">" are
// the old spellings of "<=" and ">=".
func debVersioned(s string) bool {
	version := strings.TrimLeft(s, "<>=")
	operator := s[:len(s)-len(version)]
	return slices.Contains([]string{"<<", "<=", "=", ">=", ">>", "<", ">"}, operator) && strings.TrimSpace(version) != ""
}

// debPackageName reports whether s can name a package: a letter or digit, then
// letters, digits and "+-._" (what dpkg accepts; policy 5.6.1 is narrower).
func debPackageName(s string) bool {
	return s != "" && !strings.ContainsAny(s[:1], "+-._") && strings.TrimLeftFunc(s, debNameRune) == ""
}

func debNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-._", r)
}

// debVersionCompare orders two versions "[epoch:]upstream[-revision]" as dpkg does
// (deb-version(7)): negative when a is older than b. No version is invalid: the order is total.
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
