package tune

import (
	"fmt"
	"slices"
	"strings"

	"siafu/halo/codec"
	"siafu/internal/catalog"
	"siafu/internal/fault"
)

// Names lists the names that Candidates accepts.
func Names() string {
	names := []string{"auto"}
	for _, class := range codec.Classes() {
		names = append(names, "auto:"+class)
	}
	return catalog.List(names, "or")
}

// Choices describes the values of --codec.
func Choices() []catalog.Entry {
	help := "the fastest codec by measurement, among those of CLASS and of the classes before it"
	before := 0
	for _, class := range codec.Classes() {
		names := codec.Automatic(class)
		help += fmt.Sprintf("; %s: `%s`", class, strings.Join(names[before:], "`, `"))
		before = len(names)
	}
	return append(codec.Choices(), catalog.Entry{Name: "auto", Form: "auto[:CLASS]", Help: help + " (default)"})
}

// Candidates returns the codecs of an automatic choice, the most exact first. name is auto
// or auto:CLASS, which limits the error to that of the class: lossless, bf16, int8 or int4
// (the default). The result is empty if name requests no automatic choice; a fault has kind
// Usage.
func Candidates(name string) ([]string, error) {
	classes := codec.Classes()
	class, limited := strings.CutPrefix(name, "auto:")
	switch {
	case name == "auto":
		class = classes[len(classes)-1]
	case !limited:
		return nil, nil
	case !slices.Contains(classes, class):
		return nil, fault.New(fault.Usage, "codec", "", "unknown automatic codec %q", name).Then("use %s", Names())
	}
	return codec.Automatic(class), nil
}
