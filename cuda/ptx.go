package cuda

import (
	"embed"
	"path"
	"strings"
	"sync"
)

//go:embed kernels/ptx/*.ptx
var ptxFiles embed.FS

const ptxFolder = "kernels/ptx"

// ptxModule is the PTX of a .cu file.
type ptxModule struct {
	Name, Text string
	Entries    []string // names of its kernels
}

// ptxModules returns all modules by name. The caller must not change the list.
var ptxModules = sync.OnceValue(func() []ptxModule {
	list, err := ptxFiles.ReadDir(ptxFolder)
	if err != nil {
		panic("cuda: no PTX in this build")
	}
	var modules []ptxModule
	for _, f := range list {
		modules = append(modules, readPTX(f.Name()))
	}
	return modules
})

func readPTX(file string) ptxModule {
	text, err := ptxFiles.ReadFile(path.Join(ptxFolder, file))
	if err != nil {
		panic("cuda: no PTX in this build")
	}
	m := ptxModule{Name: strings.TrimSuffix(file, ".ptx"), Text: string(text)}
	for line := range strings.Lines(m.Text) {
		if rest, ok := strings.CutPrefix(line, ".visible .entry "); ok {
			name, _, _ := strings.Cut(rest, "(")
			m.Entries = append(m.Entries, strings.TrimSpace(name))
		}
	}
	return m
}
