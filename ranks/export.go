package ranks

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/safetensors"
	"siafu/ranks/pytorch"
	"siafu/ranks/runfolder"
)

// ExportOptions are the options of "siafu export".
type ExportOptions struct {
	Run     string `arg:"" help:"Run folder."`
	PyTorch bool   `name:"pytorch" help:"Write model.py, the network in plain PyTorch. It loads model.safetensors from its folder, and compares logits or pair scores with those of siafu predict --logits or --pairs."`
	Out     string `placeholder:"DIR" help:"Folder for model.py and a copy of model.safetensors. Empty: RUN, without a copy."`
}

// Export writes the model of a run folder in a form for other programs.
func Export(o ExportOptions, w io.Writer) error {
	if !o.PyTorch {
		return fault.New(fault.Usage, "export", o.Run, "no export format is given").Then("run siafu export %s --pytorch", o.Run)
	}
	list, md, err := safetensors.Read(modelFile(o.Run))
	if err != nil {
		return err
	}
	m, err := describedBy(modelFile(o.Run), md)
	if err != nil {
		return err
	}
	if m.Design.Kinds != "" {
		return fault.New(fault.Config, "export", modelFile(o.Run),
			"model.py does not implement layers of several kinds: %s", m.Design.Kinds).
			Then("train without --layer-kinds")
	}
	if !pytorch.Knows(m.Kind) {
		return fault.New(fault.Config, "export", modelFile(o.Run), "model.py does not implement the network %s", m.Kind).
			Then("train a network that it implements: %s", strings.Join(pytorch.Networks(), ", "))
	}
	dir := o.Run
	if o.Out != "" {
		dir = o.Out
		if runfolder.ReadMarker(dir) != nil {
			return fault.New(fault.Usage, "export", dir, "it is a run folder, whose model is not replaced").Then("choose another --out")
		}
		if err := inventory.Overwrite("export", modelFile(dir), isModel); err != nil {
			return err
		}
		if err := durable.MkdirAll("export", dir); err != nil {
			return err
		}
		if err := safetensors.Write(modelFile(dir), list, md); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, runfolder.ScriptFile)
	if err := pytorch.WriteScript(path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "wrote script=%s model=%s\n", path, modelFile(dir))
	return err
}

// isModel reports whether siafu has written a weights file with this beginning: its metadata come first, and theirs is
// the dataset.
func isModel(head []byte) bool {
	return len(head) > 8 && bytes.HasPrefix(head[8:], []byte(`{"__metadata__":{"data`))
}
