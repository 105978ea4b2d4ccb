package simulate

// Seconds is what Print prints of an epoch: how long it takes, modelled.
func (o *Options) Seconds() (float64, error) {
	past, err := o.read()
	if err != nil {
		return 0, err
	}
	c, err := o.cluster(past)
	if err != nil {
		return 0, err
	}
	epochs := o.Epochs
	if epochs == 0 {
		epochs = len(past.Epochs)
	}
	return c.Run(epochs).Epoch, nil
}
