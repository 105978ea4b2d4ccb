package pytorch

import (
	"strings"

	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

// exportedPrefix begins the names that the state dict of model.py's Net gives weights.
const exportedPrefix = "weights."

// exported converts the state dict of a network that model.py has built: its names are
// siafu's with underscores for points, and its shapes are siafu's. ok is false if the list
// is of another kind.
func exported(path string, list []safetensors.Tensor, s model.Spec) (renamed []safetensors.Tensor, ok bool, err error) {
	names := map[string]string{}
	for _, p := range s.Params() {
		names[exportedPrefix+strings.ReplaceAll(p.Name, ".", "_")] = p.Name
	}
	unknown := ""
	for _, t := range list {
		name, known := names[t.Name]
		if !known {
			unknown = t.Name
			continue
		}
		t.Name = name
		renamed = append(renamed, t)
	}
	if len(renamed) == 0 {
		return nil, false, nil
	}
	if unknown != "" {
		return nil, true, (&state{path: path}).bad("tensor %q is not a weight of an exported %s", unknown, s.Kind).
			Then("use the network that was exported, and save it alone: torch.save(net.state_dict(), FILE)")
	}
	return renamed, true, nil
}
