package importers

import "strings"

// debRelation is a package in a relation field, with the properties of the relation.
type debRelation struct {
	name string
	says debSays
}

// debSays is a bit set of a relation's properties. The lower bits are the field, by its index
// in debRelations; the last two bits are the constants below.
type debSays uint8

const (
	debOfVersions debSays = 1 << (5 + iota) // only for certain versions
	debFurther                              // after another alternative
)

// debBits is the number of bits of a debSays.
const debBits = 7

// debParseRelations appends to dst the packages that a relation field
// speaks of: "a (>= 1) | b:any, c [amd64] <!nocheck>" names a, b and c. Each
// alternative counts as one relation, whatever its version or architecture, and says
// what it says beside field.
// An empty entry between commas is allowed, as apt allows it. A syntax error
// is returned as the offending alternative and its offset in value.
func debParseRelations(dst []debRelation, field debSays, value string) (list []debRelation, bad string, at int) {
	for entry := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(entry) != "" {
			var offset int
			if dst, bad, offset = debAlternatives(dst, field, entry); bad != "" {
				return dst, bad, at + offset
			}
		}
		at += len(entry) + 1
	}
	return dst, "", 0
}

// debAlternatives appends the packages of "a | b".
func debAlternatives(dst []debRelation, says debSays, entry string) (list []debRelation, bad string, at int) {
	for alt := range strings.SplitSeq(entry, "|") {
		trimmed := strings.TrimSpace(alt)
		name, versioned, ok := debRelationName(trimmed)
		switch {
		case ok:
			r := debRelation{name, says}
			if versioned {
				r.says |= debOfVersions
			}
			dst, says = append(dst, r), says|debFurther
		case trimmed == "": // shown with its neighbours
			return dst, strings.TrimSpace(entry), at
		default:
			return dst, trimmed, at + strings.Index(alt, trimmed)
		}
		at += len(alt) + 1
	}
	return dst, "", 0
}

// debRelationName parses one alternative: a name, an architecture qualifier, a
// version in round, architectures in square and build profiles in angle
// brackets (Debian policy 7.1), all but the name optional.
func debRelationName(s string) (name string, versioned, ok bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return !debNameRune(r) })
	if end < 0 {
		end = len(s)
	}
	name, s = s[:end], s[end:]
	if strings.HasPrefix(s, ":") {
		end := strings.IndexAny(s, " \t\n([<")
		if end < 0 {
			end = len(s)
		}
		if end == 1 {
			return "", false, false
		}
		s = s[end:]
	}
	s = strings.TrimSpace(s)
	versioned = strings.HasPrefix(s, "(")
	if s, ok = debBrackets(s, '(', ')', debVersioned); !ok {
		return "", false, false
	}
	if s, ok = debBrackets(s, '[', ']', debNonEmpty); !ok {
		return "", false, false
	}
	for s != "" && s[0] == '<' && ok {
		s, ok = debBrackets(s, '<', '>', debNonEmpty)
	}
	return name, versioned, ok && s == "" && debPackageName(name)
}

// debBrackets cuts a leading bracket from s, when there is one, if its inside
// is valid.
func debBrackets(s string, open, shut byte, valid func(string) bool) (rest string, ok bool) {
	if s == "" || s[0] != open {
		return s, true
	}
	end := strings.IndexByte(s, shut)
	if end < 0 || !valid(strings.TrimSpace(s[1:end])) {
		return s, false
	}
	return strings.TrimSpace(s[end+1:]), true
}

func debNonEmpty(s string) bool { return s != "" }

// debVersioned reports whether s is an operator and a version; "<" and ">" are
// the old spellings of "<=" and ">=".
func debVersioned(s string) bool {
	version := strings.TrimLeft(s, "<>=")
	switch s[:len(s)-len(version)] {
	case "<<", "<=", "=", ">=", ">>", "<", ">":
		return strings.TrimSpace(version) != ""
	}
	return false
}

// debPackageName reports whether s can name a package: a letter or digit, then
// letters, digits and "+-._" (what dpkg accepts; policy 5.6.1 is narrower).
func debPackageName(s string) bool {
	if s == "" || strings.IndexByte("+-._", s[0]) >= 0 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !debNameRune(r) }) < 0
}

func debNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r == '+' || r == '-' || r == '.' || r == '_'
}
