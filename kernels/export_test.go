package kernels

// UseIn chooses the instructions of an optimiser, as Use does those of a Team.
func UseIn(o Optimizer, kernel string) error {
	var t Team
	if err := t.Use(kernel); err != nil {
		return err
	}
	switch o := o.(type) {
	case *sgd:
		o.set = t.set
	case *adam:
		o.set = t.set
	}
	return nil
}
