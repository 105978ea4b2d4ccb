package download

import (
	_ "embed"
	"strings"

	"siafu/internal/fault"

	"github.com/BurntSushi/toml"
)

// dataset is an entry of the manifest; manifest.toml explains the fields.
type dataset struct {
	Name       string `toml:"name"`
	Format     string `toml:"format"`
	Base       string `toml:"base"`
	Unzip      string `toml:"unzip"`
	Blocked    string `toml:"blocked"`
	Symmetrise bool   `toml:"symmetrise"`
	Files      []file `toml:"files"`
}

type file struct {
	Name   string `toml:"name"`
	Bytes  int64  `toml:"bytes"`  // 0: unknown
	SHA256 string `toml:"sha256"` // hexadecimal, "": unknown
}

//go:embed manifest.toml
var manifestText string

// manifest parses the embedded manifest. An invalid manifest is a programming error.
func manifest() []dataset {
	var m struct {
		Dataset []dataset `toml:"dataset"`
	}
	if _, err := toml.Decode(manifestText, &m); err != nil {
		panic("download: invalid manifest")
	}
	return m.Dataset
}

// Names returns the names that Get accepts.
func Names() []string {
	var names []string
	for _, d := range manifest() {
		names = append(names, d.Name)
	}
	return names
}

func find(name string) (dataset, error) {
	for _, d := range manifest() {
		if d.Name == strings.ToLower(name) {
			return d, nil
		}
	}
	return dataset{}, fault.New(fault.Usage, op, "", "no dataset %q", name).Then("use one of %s", strings.Join(Names(), ", "))
}
