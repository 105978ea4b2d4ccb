package model

// StateDict describes the tensors of a layer of PyTorch Geometric, or of PyTorch, in a state
// dict, by their names after the layer's. Versions 1 and 2 may have different names.
type StateDict map[string]TorchTensor

// TorchTensor relates a tensor of PyTorch to a weight. Weights that the network lacks are not used.
type TorchTensor struct {
	Weight    string // name of the weight; empty: the tensor is a number that must be 0
	Also      string // name of another weight with the same values; tensors of one weight are added
	Copy      bool   // the tensor equals that of the same weight without Copy
	Transpose bool   // the tensor is [out x in], the weight [in x out]
	Flat      bool   // the tensor has 3 dimensions or more, of which all but the last are rows of the weight
	Part      string // kind of the layer with the weight (Part); empty: the network's own
}

// LinearTensors describes a Linear as a layer of the given kind; empty: the network's own.
func LinearTensors(part string) StateDict {
	return StateDict{"weight": {Weight: "weight", Transpose: true, Part: part}, "bias": {Weight: "bias", Part: part}}
}
