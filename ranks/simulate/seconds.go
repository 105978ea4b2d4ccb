package simulate

// Epoch returns the modelled seconds of an epoch, and the dollars of a named cluster's hosts and
// of functions.
func (o *Options) Epoch() (seconds, usd float64, err error) {
	past, err := o.read()
	if err != nil {
		return 0, 0, err
	}
	c, err := o.cluster(past)
	if err != nil {
		return 0, 0, err
	}
	epochs := o.Epochs
	if epochs == 0 {
		epochs = len(past.Epochs)
	}
	m := c.Run(epochs)
	return m.Epoch, m.Epoch/3600*o.hostCost(c) + m.USD, nil
}

// MedianEpoch returns the median of the modelled epochs in seconds.
func (o *Options) MedianEpoch() (seconds float64, err error) {
	past, err := o.read()
	if err != nil {
		return 0, err
	}
	c, err := o.cluster(past)
	if err != nil {
		return 0, err
	}
	return c.Run(o.epochs(past, c)).Median, nil
}
