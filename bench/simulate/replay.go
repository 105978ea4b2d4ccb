package simulate

// Replay is the seconds of an epoch of the recorded run, by its folder, and of the same
// on a graph that is so many times as large: work and rows in proportion, on the links
// and ranks that the options say.
func (o *Options) Replay(times float64) (recorded, modelled float64, err error) {
	past, err := o.read()
	if err != nil {
		return 0, 0, err
	}
	c, err := o.cluster(past)
	if err != nil {
		return 0, 0, err
	}
	c.grow(times)
	epochs := o.Epochs
	if epochs == 0 {
		epochs = len(past.Epochs)
	}
	return past.seconds, c.Run(epochs).Epoch, nil
}

// grow makes all tasks of layers and all rows so many times as large.
func (c *Cluster) grow(times float64) {
	ranks := make([]*Rank, len(c.Ranks))
	for n, r := range c.Ranks {
		ranks[n] = r.scaled(Counts{1, 1, 1}, Counts{times, times, times})
	}
	c.Ranks = ranks
	for _, row := range c.Rows {
		for to := range row {
			row[to] *= times
		}
	}
}
