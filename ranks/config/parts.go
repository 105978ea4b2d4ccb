package config

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"siafu/internal/fault"

	"github.com/alecthomas/kong"
)

// Part is an option that the command line has as a part of another flag, as in
// --predict lstm-gcn:window=4,every=10. The tag part of its field has the name of the flag and,
// unless it is the option's name or the rest of it after the flag's name, the name of the part. A
// part without a value is a switch. Files of options and the environment have the option's name.
type Part struct {
	Flag, Name, Option string
	Switch             bool
}

// partTable has the parts by flag and by option.
type partTable struct {
	of       map[string][]Part // by flag, in the order of the options
	options  map[string]Part
	switches map[string]bool // flags without a value
}

var parts = sync.OnceValue(func() partTable {
	t := partTable{map[string][]Part{}, map[string]Part{}, map[string]bool{}}
	for _, f := range optionFields() {
		option := f.Tag.Get("toml")
		t.switches[option] = f.Type.Kind() == reflect.Bool
		flag, name, named := strings.Cut(f.Tag.Get("part"), ",")
		if flag == "" {
			continue
		}
		if !named {
			name = strings.TrimPrefix(option, flag+"-")
		}
		p := Part{flag, name, option, t.switches[option]}
		t.of[flag] = append(t.of[flag], p)
		t.options[option] = p
	}
	return t
})

// PartOf returns the part that an option is.
func PartOf(option string) (Part, bool) {
	p, ok := parts().options[option]
	return p, ok
}

// OptionOf returns the option that a part of a flag is, or the flag's own one if it has no such part.
func OptionOf(flag, part string) string {
	for _, p := range parts().of[flag] {
		if p.Name == part {
			return p.Option
		}
	}
	return flag
}

// Spell returns the words of the command line that set an option, such as "--hidden=64" and
// "--predict window=4".
func Spell(option, value string) string {
	p, ok := PartOf(option)
	switch {
	case !ok:
		return "--" + option + "=" + value
	case p.Switch && value == "true":
		return "--" + p.Flag + " " + p.Name
	}
	return "--" + p.Flag + " " + p.Name + "=" + value
}

// Spelled returns a text with the flags of options that are parts as the parts, such as
// "--predict window" for "--predict-window".
func Spelled(text string) string {
	return flagName.ReplaceAllStringFunc(text, func(flag string) string {
		if p, ok := PartOf(flag[2:]); ok {
			return "--" + p.Flag + " " + p.Name
		}
		return flag
	})
}

var flagName = regexp.MustCompile(`--[a-z-]+`)

// Separate returns a command line with each part as the flag of its option. Words after -- are
// unchanged.
func Separate(args []string) (list []string, err error) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(list, args[i:]...), nil
		}
		word, value, joined := strings.Cut(args[i], "=")
		flag, isFlag := strings.CutPrefix(word, "--")
		if isFlag && !joined && i+1 < len(args) {
			value = args[i+1]
		}
		head, set, err := separate(flag, value)
		switch {
		case err != nil && isFlag:
			return nil, err
		case len(set) == 0 || !isFlag:
			list = append(list, args[i])
			continue
		case !joined:
			i++
		}
		if head != "" {
			list = append(list, word+"="+head)
		} else if parts().switches[flag] {
			list = append(list, word)
		}
		for _, s := range set {
			list = append(list, "--"+s.Option+"="+s.value)
		}
	}
	return list, nil
}

// Parse sets a struct of options, a Config or one that embeds it, to the flags of a line and to the
// defaults of others. Its faults have kind Usage.
func Parse(options any, op string, line ...string) error {
	parser, err := kong.New(options, Variables())
	if err != nil {
		return err
	}
	if line, err = Separate(line); err != nil {
		return err
	}
	if _, err = parser.Parse(line); err != nil {
		return fault.New(fault.Usage, op, "", "%s", Spelled(err.Error()))
	}
	return nil
}

// Values returns the values of options that a flag with this value sets, by option.
func Values(flag, value string) (map[string]string, error) {
	head, set, err := separate(flag, value)
	values := map[string]string{}
	if head != "" || len(set) == 0 {
		values[flag] = head
	} else if parts().switches[flag] {
		values[flag] = "true"
	}
	for _, s := range set {
		values[s.Option] = s.value
	}
	return values, err
}

// setting is a part with its value.
type setting struct {
	Part
	value string
}

// separate splits [VALUE:]PART=V,PART=V. The value of a part ends before the next name of a part.
func separate(flag, value string) (head string, set []setting, err error) {
	list := parts().of[flag]
	head, p, rest := cutPart(list, value)
	for p != nil {
		s := setting{Part: *p}
		s.value, p, rest = cutPart(list, rest)
		if s.Switch && s.value == "" {
			s.value = "true"
		}
		set = append(set, s)
	}
	if word := partName.FindStringSubmatch(head); word != nil && list != nil {
		var names []string
		for _, p := range list {
			names = append(names, p.Name)
		}
		return "", nil, fault.New(fault.Usage, "", "", "--%s=%s: there is no part %q", flag, value, word[1]).
			Then("its parts are %s", strings.Join(names, ", "))
	}
	return head, set, nil
}

// partName matches the name of a part that has a value.
var partName = regexp.MustCompile(`(?:^|[:,])([a-z-]+)=`)

// cutPart cuts text before and behind the first name of a part; p is nil if there is none.
func cutPart(list []Part, text string) (before string, p *Part, rest string) {
	for i := range text {
		if i > 0 && text[i-1] != ',' && text[i-1] != ':' {
			continue
		}
		for k := range list {
			rest, ok := strings.CutPrefix(text[i:], list[k].Name)
			switch {
			case ok && strings.HasPrefix(rest, "="):
				return text[:max(i-1, 0)], &list[k], rest[1:]
			case ok && list[k].Switch && (rest == "" || rest[0] == ','):
				return text[:max(i-1, 0)], &list[k], rest
			}
		}
	}
	return text, nil, ""
}
